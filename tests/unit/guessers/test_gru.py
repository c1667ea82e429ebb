"""The GRU guesser on generated tossups that it learns in seconds."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from refusals import refused
from stand_ins.clues import tossups
from tables import tables_of

from guessers.gru.examples import Material, batches
from guessers.gru.guesser import GruGuesser
from guessers.gru.network import BidirectionalGru, PrefixGru, Shape
from guessers.gru.train import GruTraining, dev_accuracy, set_start, start_from_svd, train, vector_table
from sqa.core import ROOT, DataError
from sqa.pipeline import config as configs

TABLES = tables_of(__file__)

TOSSUPS = tossups(6)


@pytest.fixture(scope="module")
def material() -> Material:
    return Material.of(TOSSUPS, TOSSUPS[::3], 500)


SMALL = """{vocabulary: 500, embedding: 2, hidden: 8, bottleneck: 2, dropout: 0.1, word_dropout: 0.1, points: 1,
batch: 6, label_smoothing: 0.0, learning_rate: 0.03, epochs: 6, patience: 3, stop_after: 9}"""


def small(folder: Path) -> GruTraining:
    """Return the bundled training config, scaled down to the generated tossups."""
    shipped = configs.load(ROOT / "configs" / "train_guessers.yaml:gru", GruTraining)
    return dataclasses.replace(shipped, output=folder / "out", work=folder / "work", **yaml.safe_load(SMALL))


@pytest.fixture
def config(tmp_path) -> GruTraining:
    return small(tmp_path)


@pytest.fixture(scope="module")
def learnt(material, tmp_path_factory) -> GruGuesser:
    """Return a guesser that has learnt the clues."""
    config = small(tmp_path_factory.mktemp("learnt"))
    return train(dataclasses.replace(config, epochs=25, stop_after=25), material)


@pytest.fixture
def published(config) -> GruTraining:
    """Return a config that trains a bidirectional network on one example per sentence."""
    return dataclasses.replace(config, direction="bidirectional", bottleneck=None, examples="sentence")


def test_both_networks_learn_the_clues(learnt, published, material):
    both = train(dataclasses.replace(published, start="random", embedding=8, epochs=40, stop_after=40), material)
    for guesser in (learnt, both):
        actual = guesser.guess(["Pizarro Pacific", "Norway skiing", "Egypt Nile dunes"], 3)
        assert [guesses[0].page for guesses in actual] == ["Lima", "Oslo", "Cairo"]
        assert sum(guess.score for guess in guesser.guess(["Peru"], 3)[0]) == pytest.approx(1.0, abs=1e-6)


def test_bidirectional_network_reads_only_the_prefix():
    torch.manual_seed(0)
    both = BidirectionalGru(Shape(20, 5, 4, 8, 0, 0.5, "bidirectional")).eval().double()
    ids = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]]).repeat(2, 40)  # 320 prefixes fill several blocks
    columns = torch.arange(320)
    with torch.inference_mode():
        actual = both.features_at(ids, torch.ones_like(columns), columns)
        for end in (1, 2, 128, 129, 320):
            states, _ = both.gru(both.embedding(ids[:1, :end]))  # (1, end, 2 H)
            expected = torch.cat([states[0, -1, :8], states[0, 0, 8:]])
            torch.testing.assert_close(actual[end - 1], expected, rtol=0, atol=1e-12)


def test_dev_accuracy_is_computed_over_prefixes(learnt, material):
    """The prefixes have a quarter, a half, three quarters and all of the tokens."""
    network, first = learnt._network, material.dev[0]
    others = [e for e in material.dev if len(e.ids) and e.page != first.page]
    examples = [dataclasses.replace(e, ids=np.concatenate([first.ids, e.ids])) for e in others]  # texts of two pages
    examples += [dataclasses.replace(first, ids=first.ids[:1]), *others]
    right = dict.fromkeys((0.25, 0.5, 0.75, 1.0), 0)
    for example in examples:
        for share in right:
            ids = torch.tensor(example.ids[: max(1, int(len(example.ids) * share))])[None]
            with torch.inference_mode():
                last = network.features_at(ids, torch.tensor([0]), torch.tensor([ids.shape[1] - 1]))
                right[share] += int(network.logits(last).argmax()) == example.page
    expected = {share: count / len(examples) for share, count in right.items()}
    assert dev_accuracy(network, examples, 2) == dev_accuracy(network, examples, 50) == expected
    assert len(set(expected.values())) > 1


def test_no_batch_has_a_single_row(config, material):
    chosen = dataclasses.replace(config, batch=5)
    sizes = [len(ids) for ids, *_ in batches(material, chosen, 0)]
    assert sum(sizes) == len(material.train) and min(sizes) >= 5 and max(sizes) < 10


def test_too_few_tossups_are_an_error(config, material):
    with pytest.raises(DataError, match="two tossups, and one for early stopping, got 1 and 6"):
        train(config, dataclasses.replace(material, train=material.train[:1]))


def test_svd_start_relates_pages_to_their_words(material):
    torch.manual_seed(0)
    started = PrefixGru(Shape(len(material.words), 3, 2, 4, 2, 0.0)).eval()
    start_from_svd(started, material.train)
    with torch.inference_mode():
        mean = torch.stack([started.embedding(torch.from_numpy(e.ids).long()).mean(0) for e in material.train])
        actual = (mean @ started.pages.weight.T).argmax(1).numpy()
    assert np.mean(actual == [example.page for example in material.train]) > 0.6


# --- invalid models


# --- pretrained word vectors

ROWS = {"Peru": [1.0, 0.0], "Norway": [0.0, 1.0], "vikings": [2.0, 2.0], "viking": [4.0, 0.0], "zebra": [9.0, 9.0]}


def write_vectors(path: Path, rows: dict[str, list[float]] = ROWS, header: str = "") -> Path:
    lines = (f"{word} {' '.join(map(str, vector))}\n" for word, vector in rows.items())
    path.write_text(header + "".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize(("header", "words", "stems", "rows"), TABLES["vectors_are_found_by_word_or_stem"])
def test_vectors_are_found_by_word_or_stem(tmp_path, header, words, stems, rows):
    table, known = vector_table(write_vectors(tmp_path / "v.txt", header=header), words, 2, stems=stems)
    assert known == 2 and table[1:].tolist() == rows[1:] and (stems or table[0].tolist() == rows[0])


def test_training_starts_from_the_vectors(config, material, tmp_path):
    path = write_vectors(tmp_path / "v.txt")
    chosen = dataclasses.replace(config, start="random", vectors=path)
    started = PrefixGru(Shape(len(material.words), 3, 2, 4, 2, 0.0))
    set_start(started, chosen, material)
    assert started.embedding.weight[1 + material.words.index("peru")].tolist() == [1, 0]
    assert len(train(dataclasses.replace(chosen, epochs=1), material).guess(["Peru"], 3)[0]) == 3


@pytest.mark.parametrize(("text", "message"), TABLES["bad_lines_of_vectors_are_refused"])
def test_bad_lines_of_vectors_are_refused(tmp_path, text, message):
    (tmp_path / "v.txt").write_text(text)
    refused(DataError, message, vector_table, tmp_path / "v.txt", ["peru"], 2, stems=False)
