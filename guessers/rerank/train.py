"""Command `sqa train guesser configs/train_guessers.yaml:rerank`: learn the order of retrieved pages.

The texts are tossups of the fold `buzzer`: unchanged, with words corrupted (sqa/data/texts.py), and translated back and
forth.  The unchanged tossups are used a second time at their last word alone.  In training, retrieval and the kinds of
pages are counted on the fold `guesser` alone.  The finished model combines weights from the whole fold `buzzer` with
the published counts.  A buzzer learns from guesses for tossups that no part of its guesser saw.  Therefore the guesser
in `work` has weights from the first half of the fold `buzzer`, and buzzers use the second half.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor, nn
from tqdm import tqdm

from guessers.rerank.answer_types import Kinds
from guessers.rerank.evidence import Knowledge
from guessers.rerank.guesser import CLIP, RerankGuesser, Scorer, candidates
from guessers.retrieval.bm25 import Index
from guessers.training_texts import training_texts
from sqa.core import Count, DataError, NotNegative, Positive, Share, Whole, checked, key
from sqa.data.texts import Fold, Half, Tossup, corrupt, tossups_of, translations
from sqa.files import Arithmetic, Device, Dtype, place, resolve_model
from sqa.training.trainer import Trainer, scale_of

KEPT_BACK = 8  # one in this many texts is used to select the epoch


@dataclass(frozen=True, slots=True)
class Counts:
    """A retrieval model, and the texts whose terms it counts."""

    model: Annotated[str, "a bundled BM25 model or a folder"]
    folds: Annotated[tuple[Fold, ...], "folds of the tossups"]
    bonus: Annotated[bool, "whether bonus parts are counted, too"]


@dataclass(frozen=True, slots=True, kw_only=True)
@checked
class RerankTraining:
    """Settings of the entry `rerank` in configs/train_guessers.yaml, which documents their meanings and units."""

    limit: Annotated[int, Meta(ge=KEPT_BACK)] | None
    noise: Share
    translated: tuple[Path, ...]
    points: Count
    hidden: Count
    epochs: Count
    batch: Count
    learning_rate: Positive
    weight_decay: NotNegative
    seed: Whole
    kind: Literal["rerank"]
    output: Path
    work: Path
    learnt: Counts
    published: Counts
    least: Count
    device: Annotated[Device, "auto = a GPU if there is one"] = "cpu"
    dtype: Annotated[Dtype, "auto or float32"] = "auto"
    ARITHMETIC: ClassVar = Arithmetic(("float32",))

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        seen = "buzzer" in self.learnt.folds
        return ["learnt.folds: must not contain buzzer, from which the weights are learnt"] if seen else []


class Lesson(NamedTuple):
    """A text, queried at some of its words."""

    rows: np.ndarray  # (M + T, D) float32, as `Candidates.rows`
    step: np.ndarray  # (M + T,) int64
    target: np.ndarray  # (T,) int64, the row of the answer, or of "none of them"


def drawn_ends(words: int, points: int, seed: int, number: int) -> list[int]:
    """Return numbers of words to read: `words`, and `points` - 1 drawn at random from 1 to `words`."""
    rng = np.random.default_rng([seed, number])
    return sorted({words, *map(int, rng.integers(1, words + 1, points - 1))})


def lesson_of(rows: np.ndarray, step: np.ndarray, right: np.ndarray) -> Lesson:
    """Return the lesson of M candidates in T steps; `rows` has shape (M + T, D), and `right` is True for the answer."""
    m, t = len(right), len(rows) - len(right)
    target = m + np.arange(t)
    target[step[right]] = np.flatnonzero(right)
    return Lesson(rows.astype(np.float32), np.concatenate([step, np.arange(t)]), target)


def fitted(config: RerankTraining, lessons: Sequence[Lesson]) -> Scorer:
    """Fit the weights; return those of the epoch with the lowest cross entropy on every KEPT_BACK-th lesson."""
    learnt = [lesson for number, lesson in enumerate(lessons) if number % KEPT_BACK]
    kept = lessons[::KEPT_BACK]
    torch.manual_seed(config.seed)
    seen = np.concatenate([lesson.rows for lesson in learnt])
    scale = scale_of(seen)
    network = nn.Sequential(nn.Linear(seen.shape[1], config.hidden), nn.ReLU(), nn.Linear(config.hidden, 1))
    device = place(config).device
    network.to(device)
    optimiser = torch.optim.AdamW(network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, config.epochs)
    batches = [joined(learnt[i : i + config.batch], scale, device) for i in range(0, len(learnt), config.batch)]
    kept_batches = [joined(kept[i : i + config.batch], scale, device) for i in range(0, len(kept), config.batch)]
    trainer = Trainer("training", optimiser, {"network": network})
    for _ in trainer.rounds(config.epochs):
        for number in torch.randperm(len(batches)).tolist():
            trainer.descend([cross_entropy(network, batches[number])])
        decay.step()
        with torch.no_grad():
            trainer.judge(-float(np.mean([cross_entropy(network, batch).item() for batch in kept_batches])))
        trainer.say(best=f"{-trainer.best_score:.4f}")
    names = {"0.weight": "hidden.weight", "0.bias": "hidden.bias", "2.weight": "output.weight", "2.bias": "output.bias"}
    tensors = {names[name]: tensor.cpu().numpy() for name, tensor in trainer.best["network"].items()}
    return Scorer(tensors | {"mean": scale[0], "deviation": scale[1]}, seen.shape[1])


class Batch(NamedTuple):
    """A batch of R rows for S steps of several texts."""

    rows: Tensor  # (R, D), standardised
    step: Tensor  # (R,) int64
    target: Tensor  # (S,) int64, index of a row


def joined(lessons: Sequence[Lesson], scale: tuple[np.ndarray, np.ndarray], device: str = "cpu") -> Batch:
    """Join several texts into one batch; `scale` is the mean and standard deviation, each of shape (D,)."""
    rows, steps, targets, row, step = [], [], [], 0, 0
    for lesson in lessons:
        rows.append(np.clip((lesson.rows - scale[0]) / scale[1], -CLIP, CLIP))
        steps.append(lesson.step + step)
        targets.append(lesson.target + row)
        row, step = row + len(lesson.rows), step + len(lesson.target)
    return Batch(*(torch.from_numpy(np.concatenate(arrays)).to(device) for arrays in (rows, steps, targets)))


def cross_entropy(network: nn.Module, batch: Batch) -> Tensor:
    """Return the mean over the steps of -ln of the target's probability."""
    logits = network(batch.rows)[:, 0]
    highest = logits.new_full((len(batch.target),), -torch.inf).scatter_reduce(0, batch.step, logits.detach(), "amax")
    total = logits.new_zeros(len(batch.target)).index_add(0, batch.step, torch.exp(logits - highest[batch.step]))
    return (torch.log(total) + highest - logits[batch.target]).mean()


HALVES: tuple[Half, Half] = ("first", "second")


def train(config: RerankTraining) -> RerankGuesser:
    """Return the guesser with the published counts; write the guesser for training buzzers to `config.work`."""
    knowledge = knowledge_of(config.learnt, config.least)
    first, second = (read(knowledge, config, half) for half in HALVES)
    RerankGuesser(knowledge, fitted(config, first), config.learnt.model).save(config.work)
    return RerankGuesser(
        knowledge_of(config.published, config.least), fitted(config, [*first, *second]), config.published.model
    )


def read(knowledge: Knowledge, config: RerankTraining, half: Half) -> list[Lesson]:
    """Return the lessons of a half of the fold, except texts without an indexed word."""
    whole = tossups_of(["buzzer"], half)
    unchanged = whole[: config.limit]
    corrupted = corrupt(unchanged, config.noise) if config.noise else []
    texts = [*unchanged, *corrupted, *translations(config.translated, whole)]
    if len(texts) < KEPT_BACK:
        raise DataError(f"{config.output}: only {len(texts)} training texts in the {half} half; raise limit")
    bar = tqdm(texts, f"guessing, {half} half", mininterval=2)
    lessons_of = [lesson_of_text(knowledge, text, number, config) for number, text in enumerate(bar)]
    taught = [lesson for lesson in lessons_of if len(lesson.target)]
    return [*taught, *(at_last_word(lesson) for lesson in lessons_of[: len(unchanged)] if len(lesson.target))]


def at_last_word(lesson: Lesson) -> Lesson:
    """Return only the last step of a lesson."""
    rows = np.flatnonzero(lesson.step == len(lesson.target) - 1)
    return Lesson(lesson.rows[rows], np.zeros(len(rows), np.int64), np.searchsorted(rows, lesson.target[-1:]))


def knowledge_of(counts: Counts, least: int) -> Knowledge:
    """Return the knowledge from a retrieval model and its texts.  Raises DataError if the model lacks a page."""
    index = Index.load(resolve_model(counts.model))
    taught = training_texts(counts.folds, counts.bonus)
    if lacking := {lesson.page for lesson in taught} - set(index.titles):
        raise DataError(
            f"{counts.model}: lacks {len(lacking)} pages of its folds, e.g. {min(map(str, lacking))!r}; "
            "count them again"
        )
    return Knowledge(index, Kinds.of(taught, index.titles, least))


def lesson_of_text(knowledge: Knowledge, text: Tossup, number: int, config: RerankTraining) -> Lesson:
    """Return the candidates at the last word of a text and at `points` - 1 other words, drawn at random."""
    words = text.text.split()
    ends = drawn_ends(len(words), config.points, config.seed, number)
    described = candidates(knowledge, words, ends)
    answer = key(text.page) if text.page is not None else None
    right = [key(knowledge.titles[page]) == answer for page in described.pages.tolist()]
    return lesson_of(described.rows, described.step, np.array(right, np.bool_))
