"""Does blindness to word order belong to the task or to retrieval?  A language model reads the known groups.

The base model of the extra `lm` scores BM25's best titles for the text up to the end of each sentence
(guessers/llm/base.py).  Three readers rank the same titles:

    retrieval        by the BM25 score
    language model   by the likelihood of the title after the text and its likelihood without a text
    combined         by the score and both likelihoods

A fourth reader, `own titles`, writes the title itself after the whole text, without retrieval.  The weights of a
reader, and the confidence at which it answers, are fitted on guessdev.  Nothing is chosen on XQB.

    nats     ln of the right title's probability among the titles, for questions whose right title is listed for both
             texts
    a page   whether the title that the model writes is a page of the retrieval index
    change   metric of the group minus that of the intact text, paired, with its interval over questions
    effect   mean change divided by the standard deviation of the changes (Cohen's d of paired values)
    excess   change of a reader minus that of retrieval on the same questions

`nats per word` is the negative log-likelihood of the text itself, with the vocabulary limited to the tokens of all
texts read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from functools import partial
from itertools import accumulate, chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from buzzers.histories import GuessHistory
from buzzers.wins import best_threshold, wins
from experiments.lab.item import Item, inputs_of
from experiments.lab.ledger import Ledger, Row, row_of
from experiments.lab.tables import number
from experiments.validity import damage
from experiments.validity.damage import INTACT, Sentence
from guessers.llm.base import BaseConfig, Candidate, Weights, weighed
from guessers.llm.fit import FOLDS, Step, fitted
from guessers.llm.guesser import LlmConfig, LlmGuesser, build
from guessers.llm.reply import Titles, parse
from sqa.core.answers import is_right
from sqa.core.differences import compare_many
from sqa.core.significance import Mean, means
from sqa.core.types import Floats, Guess, Question
from sqa.data.datasets import load_questions
from sqa.files.records import parse_json
from sqa.pipeline.paired import intervals
from sqa.results import markdown

HARMLESS, SHUFFLED = "lower case, no punctuation", "shuffled within sentences"
DATASETS, SIZE, BOTH = ("xqb-es", "xqb-pl"), 100, "both sets"
DEVELOPMENT, DEVELOPMENT_SIZE = "guessdev", 50
GROUPS = (INTACT, HARMLESS, SHUFFLED, "roles swapped", "negated")
EACH_SENTENCE = (INTACT, SHUFFLED)  # read after each sentence, for EW; the other groups are read once
WRITTEN = (INTACT, HARMLESS, SHUFFLED)  # answered by `own titles`
PROMPTS = {"solved questions": None, "no solved question": "Question: {text}\nAnswer:"}  # None: the guesser's prompt
PROMPT = "solved questions"  # the better prompt on guessdev
WHOLE = 10_000  # number of words read at once, large enough for a whole text
RETRIEVAL, MODEL, OWN, TEXT = "retrieval", "language model", "own titles", "-"
PER_WORD, LISTED = "nats per word", "a page"
UNITS = {"accuracy": "0-1", "ew": "0-1", LISTED: "0-1", "nats": "nats", PER_WORD: "nats"}
Answers = Sequence[Sequence[Guess]]  # best first, after each sentence


class Reader(NamedTuple):
    """Weights of a title's three scores, and the confidence threshold above which the reader answers."""

    weights: Weights
    threshold: float


USED: Mapping[str, tuple[int, int, int]] = {  # reader -> whether it uses retrieval score, likelihood and prior
    RETRIEVAL: (1, 0, 0),
    MODEL: (0, 1, 1),
    "combined": (1, 1, 1),
}


class Asked(NamedTuple):
    """The model's replies after each sentence or at the end of a text, and the shares of the source read by then."""

    page: str
    fraction: Floats
    replies: tuple[str, ...]

    def steps(self, question: int, used: Sequence[int]) -> Iterator[Step]:
        """Yield the steps for `fitted`; features that are 0 in `used` are set to 0."""
        for reply in self.replies:
            candidates = [Candidate(**candidate) for candidate in parse_json(reply)["candidates"]]
            if candidates:
                features = np.array([[c.retrieval, c.likelihood, c.prior] for c in candidates]) * used
                yield Step(question, features, np.array([is_right(c.page, self.page) for c in candidates]))

    def answers(self, weights: Weights) -> Answers:
        """Return the titles after each sentence, best first."""
        return [weighed(reply, weights).guesses for reply in self.replies]


# ------------------------------------------------------------------------------------------------------------- reading


def guesser_of(runs: Path, prompt: str = PROMPT, base: BaseConfig | None = None) -> LlmGuesser:
    """Return the guesser with the given prompt, whose replies are cached in `runs`."""
    cache, unlimited = runs / "word-order.sqlite", 1_000_000
    config = LlmConfig(
        base=base or BaseConfig(), every=WHOLE, prompt=PROMPTS[prompt], max_requests=unlimited, cache=cache
    )
    return build(config)


def asked(
    guesser: LlmGuesser, questions: Sequence[Question], groups: Mapping[str, Sequence[Sequence[Sentence]]]
) -> dict[str, list[Asked]]:
    """Return the replies to each text of each group, asked question by question."""
    prompts = {
        group: [prompts_of(guesser, text)[0 if group in EACH_SENTENCE else -1 :] for text in texts]
        for group, texts in groups.items()
    }
    by_question = chain.from_iterable(zip(*prompts.values(), strict=True))
    replies = guesser.chat.ask(list(dict.fromkeys(chain.from_iterable(by_question))))
    return {
        group: [
            Asked(
                question.page, fractions(question)[-len(of_text) :], tuple(replies[prompt].text for prompt in of_text)
            )
            for question, of_text in zip(questions, of_texts, strict=True)
        ]
        for group, of_texts in prompts.items()
    }


def prompts_of(guesser: LlmGuesser, text: Sequence[Sentence]) -> list[str]:
    """Return the prompt after each sentence of a text."""
    read = (" ".join(chain.from_iterable(text[: end + 1])) for end in range(len(text)))
    return [guesser.config.asked.replace("{text}", words) for words in read]


def fractions(question: Question) -> Floats:
    """Return the share of the source's characters read at the end of each sentence."""
    ends = np.array([*accumulate(sum(len(word) + 1 for word in sentence) for sentence in question.sentences)]) - 1
    return np.asarray(ends / ends[-1])


def history(each: Asked, weights: Weights) -> tuple[GuessHistory, Floats]:
    """Return a reader's answers to a text as input of a buzzer, and their confidences."""
    answers = each.answers(weights)
    right = np.array([bool(guesses) and is_right(guesses[0].page, each.page) for guesses in answers])
    guessed = np.array([bool(guesses) for guesses in answers])
    score = np.array([guesses[0].score if guesses else -np.inf for guesses in answers])
    return GuessHistory(np.zeros((len(right), 0)), np.zeros((len(right), 0)), right, guessed, each.fraction), score


def values(texts: Sequence[Asked], reader: Reader) -> dict[str, Floats]:
    """Return accuracy after the whole text, EW and nats of each question; nats are nan without the right title."""
    played = [history(each, reader.weights) for each in texts]
    won = wins([one for one, _ in played], [score for _, score in played], np.array([reader.threshold]))
    return {
        "accuracy": np.array([float(one.right[-1]) for one, _ in played]),
        "nats": np.array([nats(each.answers(reader.weights)[-1], each.page) for each in texts]),
        "ew": won[:, 0],
    }


def nats(guesses: Sequence[Guess], page: str) -> float:
    """Return ln of the right page's share of the guesses' total score; nan if it is not among the guesses."""
    right = sum(guess.score for guess in guesses if is_right(guess.page, page))
    return float(np.log(right / sum(guess.score for guess in guesses))) if right > 0 else float("nan")


# ---------------------------------------------------------------------------------------------------------- development


def fit(texts: Sequence[Asked], used: Sequence[int]) -> Reader:
    """Return the reader with the most likely weights and with the threshold that maximises expected wins."""
    found = fitted([step for number, each in enumerate(texts) for step in each.steps(number, used)])
    weights = Weights(*(np.array(astuple(found)) * (*used, 1)).tolist())
    histories, scores = zip(*(history(each, weights) for each in texts), strict=True)
    return Reader(weights, best_threshold(histories, scores)[0])


def crossed(texts: Sequence[Asked], used: Sequence[int]) -> dict[str, Floats]:
    """Return the values of each question by a reader fitted on the other folds."""
    found: dict[str, Floats] = {}
    for fold in range(FOLDS):
        reader = fit([each for number, each in enumerate(texts) if number % FOLDS != fold], used)
        for name, column in values(texts[fold::FOLDS], reader).items():
            found.setdefault(name, np.zeros(len(texts)))[fold::FOLDS] = column
    return found


def development(runs: Path) -> tuple[list[Row], dict[str, Reader]]:
    """Return the rows of guessdev (whole texts with each prompt, then sentence by sentence) and the fitted readers."""
    every = load_questions(DEVELOPMENT)
    questions = every[:: len(every) // DEVELOPMENT_SIZE][:DEVELOPMENT_SIZE]
    texts = [damage.sentences(question) for question in questions]
    rows: list[Row] = []
    readers: dict[str, Reader] = {}
    for prompt in PROMPTS:
        [whole] = asked(guesser_of(runs, prompt), questions, {"whole": texts}).values()
        for name, used in USED.items():
            accuracy = means(crossed(whole, used)["accuracy"])
            rows += intervals((DEVELOPMENT, name, prompt, "value"), [(Mean("accuracy"), accuracy)], unit="0-1")
    [read] = asked(guesser_of(runs), questions, {INTACT: texts}).values()
    for name, used in USED.items():
        cell = (DEVELOPMENT, name, "each sentence")
        rows += intervals((*cell, "value"), [(Mean("ew"), means(crossed(read, used)["ew"]))], unit="0-1")
        readers[name] = fit(read, used)
        numbers = {**asdict(readers[name].weights), "threshold": readers[name].threshold}
        rows += [Row((*cell, "fitted"), key, value, n=len(questions)) for key, value in numbers.items()]
    return rows, readers


# -------------------------------------------------------------------------------------------------------------- measure

Table = dict[tuple[str, str, str], Floats]  # reader, metric, group -> values of the questions


def measure(_: Path, runs: Path) -> Iterator[Row]:
    """Yield the rows of guessdev, of each set and of both sets together."""
    chosen, readers = development(runs)
    yield from chosen
    tables: list[Table] = []
    for dataset in DATASETS:
        questions = load_questions(dataset)
        groups = {group: texts[:SIZE] for group, texts in damage.texts(questions).items() if group in GROUPS}
        tables.append(measured(runs, questions[:SIZE], groups, readers))
        yield from rows(dataset, tables[-1])
    joined = {key: np.concatenate([table[key] for table in tables]) for key in tables[0]}
    yield from rows(BOTH, joined)


def measured(
    runs: Path,
    questions: Sequence[Question],
    groups: Mapping[str, Sequence[Sequence[Sentence]]],
    readers: Mapping[str, Reader],
    base: BaseConfig | None = None,
) -> Table:
    """Return the values of each question of a set, for every reader, metric and group."""
    base = base or BaseConfig()
    table: Table = {(TEXT, PER_WORD, group): column for group, column in surprise(base, groups).items()}
    for group, texts in asked(guesser_of(runs, base=base), questions, groups).items():
        for name, reader in readers.items():
            columns = values(texts, reader)
            if group not in EACH_SENTENCE:
                del columns["ew"]
            table |= {(name, metric, group): column for metric, column in columns.items()}
    writer, written = guesser_of(runs, base=replace(base, answers="free")), {group: groups[group] for group in WRITTEN}
    table |= own_titles(writer, questions, written)
    return table


def own_titles(
    guesser: LlmGuesser, questions: Sequence[Question], groups: Mapping[str, Sequence[Sequence[Sentence]]]
) -> Table:
    """Return, for each text, whether the title written by the model is right, and whether it is an indexed page."""
    assert guesser.config.base is not None  # `guesser_of` gives one
    table: Table = {}
    pages = Titles.of(guesser.config.base.retrieval)
    for group, texts in groups.items():
        prompts = [prompts_of(guesser, text)[-1] for text in texts]
        replies = guesser.chat.ask(list(dict.fromkeys(prompts)))
        first = [[guess.page for guess in parse(replies[prompt].text, 1).guesses] for prompt in prompts]
        right = [any(is_right(page, question.page) for page in g) for g, question in zip(first, questions, strict=True)]
        listed = [any(pages.find(page) for page in g) for g in first]
        table[OWN, "accuracy", group] = np.array(right, dtype=np.float64)
        table[OWN, LISTED, group] = np.array(listed, dtype=np.float64)
    return table


def surprise(base: BaseConfig, groups: Mapping[str, Sequence[Sequence[Sentence]]]) -> dict[str, Floats]:
    """Return the nats per word of each text of each group."""
    from smt.lm.lines import TextScorer, load

    lines = {group: [" ".join(chain.from_iterable(text)) for text in texts] for group, texts in groups.items()}
    scorer = TextScorer(load(base), chain.from_iterable(lines.values()))
    return {
        group: np.array([-scorer.likelihood(line) / len(line.split()) for line in texts])
        for group, texts in lines.items()
    }


def rows(dataset: str, table: Table) -> Iterator[Row]:
    """Yield value, change, effect and excess of every reader, metric and group."""
    for (reader, name, group), column in table.items():
        metric, cell = Mean(name), (dataset, reader, group)
        intact = table[reader, name, INTACT]
        known = np.isfinite(column) & np.isfinite(intact)
        unit = UNITS[name]
        yield from intervals((*cell, "value"), [(metric, means(column[np.isfinite(column)]))], unit=unit)
        if group == INTACT:
            continue
        change = column - intact
        [compared] = compare_many([(means(column[known]), means(intact[known]))], [metric])
        yield row_of((*cell, "change"), name, compared, unit)
        yield Row((*cell, "change"), f"{name} p", compared.p, n=compared.n, unit="p")
        yield from effect((*cell, "effect"), name, change[known])
        if reader in USED and reader != RETRIEVAL:
            of_retrieval = table[RETRIEVAL, name, group] - table[RETRIEVAL, name, INTACT]
            both = known & np.isfinite(of_retrieval)
            [excess] = compare_many([(means(change[both]), means(of_retrieval[both]))], [metric])
            yield row_of((*cell, "excess"), name, excess, unit)


@dataclass(frozen=True, slots=True)
class Effect:
    """Mean change divided by the standard deviation of the changes.

    The statistics are the sum of the changes, the sum of their squares, and their number.
    """

    name: str

    def score(self, stats: Floats) -> float:
        return float(self.score_many(stats[None])[0])

    def score_many(self, stats: Floats) -> Floats:
        total, squares, n = stats.T
        spread = n * squares - total**2  # 0 if all changes of a resample are equal: undefined
        return np.where(spread > 0, total / np.sqrt(np.where(spread > 0, spread, 1)), np.nan)


def effect(cell: tuple[str, ...], name: str, change: Floats) -> Iterator[Row]:
    """Yield the row of a change's effect with its interval, or no row if all changes are equal."""
    if len(set(change)) > 1:
        stats = np.column_stack([change, change**2, np.ones(len(change))])
        yield from intervals(cell, [(Effect(name), stats)], unit="standard deviations")


# --------------------------------------------------------------------------------------------------------------- table

SHOWN = (  # heading, reader, metric
    ("nats per word", TEXT, PER_WORD),
    ("accuracy, BM25", RETRIEVAL, "accuracy"),
    ("accuracy, model: BM25's titles", MODEL, "accuracy"),
    ("accuracy, model: own titles", OWN, "accuracy"),
    ("EW, BM25", RETRIEVAL, "ew"),
    ("EW, model: BM25's titles", MODEL, "ew"),
)


def block(ledger: Ledger, dataset: str) -> list[str]:
    """Return a table with the values of the intact text, and their changes by a harmless change and by shuffling."""
    lines = []
    for head, reader, metric in SHOWN:
        cell = {"dataset": dataset, "reader": reader}
        intact = number(ledger.one(metric, group=INTACT, what="value", **cell), 2, interval=False)
        changes = [ledger.one(metric, group=group, what="change", **cell) for group in (HARMLESS, SHUFFLED)]
        lines.append([head, intact, *(number(change, 2, sign=True) for change in changes)])
    return markdown(["", INTACT, HARMLESS, SHUFFLED], lines)


ITEMS = (
    Item(
        name="word-order",
        shows="whether blindness to word order belongs to the task or to retrieval: a language model reads",
        config="",
        columns=("dataset", "reader", "group", "what"),
        measure=measure,
        inputs=inputs_of(models=("bm25",), datasets=(DEVELOPMENT, *DATASETS)),
        blocks={BOTH: partial(block, dataset=BOTH), **{set_: partial(block, dataset=set_) for set_ in DATASETS}},
        kept="half an hour of two cores with the language model (`make lm`)",
    ),
)
