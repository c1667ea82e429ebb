"""Models trained by fairseq compute equal logits and write equal words after conversion.

Needs fairseq (the package ve-fairseq) in this interpreter or in the one that SQA_FAIRSEQ_PYTHON names.
"""

import functools
import importlib.util
import io
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import sentencepiece
import torch
from needs import reason
from unit.engines.fairseq_reference import LINES, VARIANTS, K

from smt.engines.fairseq import ORDER, convert
from smt.models.bundle import load_model
from smt.models.decode import decode_batch
from smt.models.transformer import Transformer
from smt.models.transformer_stepper import TransformerWriter
from smt.models.vocab import BOS, EOS
from smt.policies.waitk import FULL, Schedule

SOURCE = "perro gato casa libro mesa agua cielo tierra mano noche camino rey ciudad puerta fuego viento piedra bosque"
TARGET = "hound kitten house volume table water heaven earth hand night road king town gate fire wind stone forest"
OURS = [ORDER.index(i) for i in range(len(ORDER))]  # our ids of fairseq's special symbols


@functools.cache
def interpreter() -> str | None:
    """Return a Python that has fairseq, or None."""
    named = os.environ.get("SQA_FAIRSEQ_PYTHON")
    return named or (sys.executable if importlib.util.find_spec("fairseq") else None)


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(interpreter() is None, reason=reason("SQA_FAIRSEQ_PYTHON")),
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model of every variant, trained by fairseq, and fairseq's outputs for some sentences."""
    folder = tmp_path_factory.mktemp("fairseq")
    translation = dict(zip(SOURCE.split(), TARGET.split(), strict=True))
    rng = random.Random(1)
    sentences = [rng.sample(SOURCE.split(), rng.randint(2, 6)) for _ in range(200)]
    sides = {"es": [" ".join(s) for s in sentences], "en": [" ".join(translation[w] for w in s) for s in sentences]}
    model = io.BytesIO()
    lines, options = iter(sides["es"] + sides["en"]), {"vocab_size": 70, "model_type": "bpe", "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=lines, model_writer=model, **options)
    (folder / "spm.model").write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    for side, lines in sides.items():
        cut = [" ".join(processor.encode_as_pieces(line)) for line in lines]
        (folder / f"train.{side}").write_text("\n".join(cut) + "\n", encoding="utf-8")
        (folder / f"words.{side}").write_text("\n".join(lines[:LINES]), encoding="utf-8")
    script = Path(__file__).with_name("fairseq_reference.py")
    done = subprocess.run([str(interpreter()), str(script), str(folder)], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def ours(ids: torch.Tensor) -> list[int]:
    """Convert fairseq's ids to ours."""
    return [OURS[i] if i < len(OURS) else i for i in ids.tolist()]


def greedy(model: Transformer, source: list[int], k: int) -> list[int]:
    """Return the pieces decoded greedily, where target piece j attends to the first k + j - 1 source pieces."""
    out = [BOS]
    while out[-1] != EOS and len(out) < 60:
        visible = torch.arange(len(source)) < torch.arange(len(out))[:, None] + k  # (T, S)
        x, _, _ = model(torch.tensor([source]), torch.tensor([out]), visible[None])
        out.append(int(model.logits(x[0, -1:], None).argmax()))
    return out[1:-1]


@pytest.mark.parametrize("name", VARIANTS)
@torch.no_grad()
def test_logits_and_greedy_words_equal_fairseq(name: str, trained: Path) -> None:
    data = trained / name / "data"
    dictionaries = data / "dict.es.txt", data / "dict.en.txt"
    checkpoint = trained / name / "checkpoint_last.pt"
    made = convert(checkpoint, *dictionaries, trained / name / "ours", "sentencepiece", trained / "spm.model")
    model, vocabulary, _ = load_model(made.folder)
    k = K if name == "waitk" else FULL
    assert made.k == (K if name == "waitk" else "full")
    rows = torch.load(trained / name / "reference.pt", weights_only=True)
    sentences = [line.split() for line in (trained / "words.es").read_text(encoding="utf-8").splitlines()]
    columns = torch.tensor([*OURS, *range(len(OURS), vocabulary.size)])
    worst = 0.0
    for row, words in zip(rows, sentences, strict=True):
        source, output = ours(row["source"]), ours(torch.tensor(row["output"]))
        assert source == [*vocabulary.words(words)[0], EOS]
        visible = torch.arange(len(source)) < torch.arange(len(output) + 1)[:, None] + k
        x, _, _ = model(torch.tensor([source]), torch.tensor([[BOS, *output]]), visible[None])
        logits = model.logits(x[0], None)[:, columns]
        torch.testing.assert_close(logits, row["logits"], atol=1e-5, rtol=1e-6)
        worst = max(worst, float((logits - row["logits"]).abs().max()))
        assert greedy(model, source, k) == output
    print(f"{name}: largest difference of a logit {worst:.1e}")
    if name == "waitk":
        return  # fairseq's k counts pieces, decode_batch's counts words
    written = [
        " ".join(word.token for word in row)
        for row in decode_batch(TransformerWriter(model, vocabulary), sentences, Schedule(FULL))
    ]
    assert written == [row["words"] for row in rows] == [row["generated"] for row in rows]
    assert len(set(written)) > LINES // 2  # the model has learnt its pairs
