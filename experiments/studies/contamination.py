"""Test whether the language model saw the questions in training.

The English side of XQB has been public for years and may be in a pretrained model's training text.  A translation
could then be memorised.  The item `contamination` compares XQB with newer questions (tournaments of 2023 to 2025, and
separately the tournaments after August 2024, the reported end of Gemma 3's training text) by two measures:

    - nats per word of the base model on the English text
    - share of the next words that the model reproduces greedily after the first half of a question

A memorised text has far fewer nats per word and is continued word for word.  Both measures are means over texts
with 95% intervals; "most of one text" is the largest share of a single text.

The item `contamination-paraphrases` replaces some words of a text by synonyms and measures the additional nats per
replaced word.  A synonym costs more in a memorised text than in a text that the model has not seen.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from experiments.lab.item import Item, inputs_of
from experiments.lab.ledger import Row
from experiments.lab.tables import columns, pivot
from smt.lm.base import Base, base_folder, load_base
from smt.lm.network import Memory
from sqa.core.significance import percentiles
from sqa.data.datasets import load_questions
from sqa.data.download import path_of
from sqa.files.devices import Place, is_fast
from sqa.files.records import json_lines

TEXTS = 147  # texts per set
CHANGED = 40  # texts of each set in which words are replaced by synonyms
NEXT = 12  # number of words that the model continues
SYNONYMS = dict(
    pair.split("=")
    for pair in (
        "began=started begins=starts big=large book=volume called=named character=figure city=town country=nation "
        "depicted=portrayed depicts=portrays describes=portrays died=perished during=throughout element=component "
        "event=incident famous=celebrated fought=battled founded=established group=band killed=slew king=monarch "
        "large=big leader=head led=guided location=place main=chief man=fellow many=numerous near=beside novel=book "
        "often=frequently opera=musical painter=artist people=folk person=individual poem=verse region=area "
        "river=stream ruler=monarch shows=displays started=began story=tale title=name type=kind used=employed "
        "uses=employs war=conflict woman=lady work=piece writer=author written=penned wrote=penned"
    ).split()
)
AFTER = frozenset({"2024 ACF Fall", "2024 ACF Winter", "2024 Penn Bowl", "2025 ACF Regionals"})  # from October 2024 on


def measure(_: Path, __: Path) -> Iterator[Row]:
    """Yield nats per word and the share of the next words that the model reproduces, for each set of texts."""
    base = model()
    for of_set, sample in samples().items():
        nats, next_words = nats_per_word(base, sample), continued(base, sample)
        yield Row((of_set,), "nats a word", *interval(nats), len(sample), "nats")
        yield Row((of_set,), "continued", *interval(next_words), len(sample), "0-1")
        yield Row((of_set,), "most of one text", float(next_words.max()), n=len(sample), unit="share")


def measure_paraphrased(_: Path, __: Path) -> Iterator[Row]:
    """Yield the additional nats per synonym, and the mean number of synonyms per text, for each set of texts."""
    base = model()
    for of_set, sample in samples().items():
        with_synonyms = [text for text in sample if paraphrased(text) != text]
        changed = {text: paraphrased(text) for text in spread(with_synonyms, CHANGED)}
        words = np.array([len(text.split()) for text in changed])
        replaced = np.array([differing(text, new) for text, new in changed.items()])
        rise = (nats_per_word(base, list(changed.values())) - nats_per_word(base, list(changed))) * words / replaced
        yield Row((of_set,), "nats a synonym costs", *interval(rise), len(changed), "nats")
        yield Row((of_set,), "synonyms", float(replaced.mean()), n=len(changed), unit="count")


def model() -> Base:
    """Return the base model."""
    base = load_base(base_folder("gemma3-270m"))
    base.network.place(Place("cpu", "bfloat16" if is_fast("bfloat16") else "float32"))
    return base


def samples() -> dict[str, list[str]]:
    """Return up to TEXTS texts of each set."""
    young, late = load_questions("human-buzzes"), played_in(AFTER)
    sets = {
        "XQB Spanish, reference": [q.reference_text for q in load_questions("xqb-es")],
        "XQB Polish, reference": [q.reference_text for q in load_questions("xqb-pl")],
        "tournaments of 2023-25": [q.reference_text for q in young],
        "tournaments after August 2024": [q.reference_text for q in young if q.id in late],
    }
    return {of_set: spread(texts, TEXTS) for of_set, texts in sets.items()}


def paraphrased(text: str) -> str:
    """Return a text in which every lower-case word with an entry in SYNONYMS is replaced."""
    return re.sub(r"\b[a-z]+\b", lambda word: SYNONYMS.get(word[0], word[0]), text)


def differing(text: str, other: str) -> int:
    """Return the number of positions at which the words of two texts of equal length differ."""
    return sum(a != b for a, b in zip(text.split(), other.split(), strict=True))


def played_in(tournaments: frozenset[str]) -> frozenset[str]:
    """Return the ids of the questions with recorded buzzes that were played at the given tournaments."""
    records = json_lines(path_of("human-buzz-questions"))
    return frozenset(record["id"] for record in records if tournaments.intersection(record["sets"]))


def spread(texts: Sequence[str], n: int) -> list[str]:
    """Return n evenly spaced texts of a list, or all if there are fewer."""
    return [texts[i] for i in np.linspace(0, len(texts) - 1, min(n, len(texts))).astype(int)]


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """Return the mean and its 95% bootstrap interval over texts."""
    drawn = np.random.default_rng(0).integers(len(values), size=(1000, len(values)))
    return float(values.mean()), *percentiles(values[drawn].mean(1))


@torch.inference_mode()
def nats_per_word(base: Base, texts: Sequence[str]) -> np.ndarray:
    """Return the cross-entropy of each text per word, in nats, as an array of shape (n,)."""
    nats = []
    for text in texts:
        pieces = opened(base, text)  # (1, N)
        states = base.network.read(pieces)
        loss = F.cross_entropy(scores(base, states[0, :-1]), pieces[0, 1:], reduction="sum")
        nats.append(float(loss) / len(text.split()))
    return np.array(nats)


def continued(base: Base, texts: Sequence[str]) -> np.ndarray:
    """Return, for each text, the share of the NEXT words after its first half that the model reproduces."""
    shares = []
    for words in map(str.split, texts):
        half = len(words) // 2
        expected = words[half : half + NEXT]
        own = greedy(base, " ".join(words[:half]), 2 * NEXT).split()[:NEXT]
        blocks = SequenceMatcher(None, expected, own, autojunk=False).get_matching_blocks()
        shares.append(sum(block.size for block in blocks) / len(expected))
    return np.array(shares)


def opened(base: Base, text: str) -> Tensor:
    """Return a text's token ids (1, N), preceded by the start symbol if the model has one."""
    start = [] if base.tokens.bos is None else [base.tokens.bos]
    return torch.tensor([start + base.tokens.text(text)])


def scores(base: Base, states: Tensor) -> Tensor:
    """Return the logits (N, V) for hidden states (N, D)."""
    return F.linear(states, base.network.output_rows()).float()


@torch.inference_mode()
def greedy(base: Base, text: str, pieces: int) -> str:
    """Return the model's greedy continuation of a text, `pieces` tokens long."""
    given, written, memory = opened(base, text), list[int](), Memory()
    states = base.network.read(given, memory)
    for step in range(pieces):
        best = scores(base, states[:, -1]).argmax(-1)[:, None]  # (1, 1)
        written.append(int(best))
        states = base.network.read(best, memory, given.shape[1] + step)
    return base.tokens.decode(written)


SHOWN = columns("nats a word", digits=2) + columns("continued: of the next 12 words", "most of one text")
INPUTS = inputs_of(datasets=("xqb-es", "xqb-pl", "human-buzzes"))
KEPT = "minutes of the language model"
ITEMS = (
    Item(
        "contamination",
        "test whether the language model saw the questions in training",
        "",
        ("texts",),
        measure,
        INPUTS,
        {"table": pivot(("texts",), SHOWN)},
        kept=KEPT,
    ),
    Item(
        "contamination-paraphrases",
        "cost of synonyms in questions that the language model may have seen",
        "",
        ("texts",),
        measure_paraphrased,
        INPUTS,
        {"table": pivot(("texts",), columns("nats a synonym costs", "synonyms: synonyms a text", digits=2))},
        kept=KEPT,
    ),
)
