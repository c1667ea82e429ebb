"""Tuning of a phrase-based system: weights of the language model, then of the log-linear model.

Minimum error rate training (Och 2003) searches for weights that rank translations with a high BLEU first in n-best
lists.

BLEU changes only if another candidate becomes the best, so it has no gradient.  The search moves one weight at a time
in steps of decreasing size, from several starts.  Statistics are sacrebleu's, summed over sentences.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

from smt.statistical import tokens
from smt.statistical.packed import LANGUAGE, WEIGHTS, pack, set_weights, unpack, write_model
from smt.statistical.pbmt import Engine, finish
from smt.statistical.phrase_table import only_ngrams_of, read_tokens, write_language_weights, write_tokens
from smt.statistical.stages_config import PbmtConfig
from sqa.files import json_document, write_text

STEPS = (1.0, 0.5, 0.2, 0.1, 0.05)  # step sizes, relative to the mean size of the weights
STARTS = 6  # number of starts: the given weights and perturbed ones
KEEP = 1e-4  # minimum gain in BLEU (0 to 1) for a change of the weights


@dataclass(frozen=True, slots=True)
class Candidates:
    """N-best lists of all sentences, padded: row (s, n) is translation n of sentence s."""

    scores: np.ndarray  # (S, N, W) float64, components of the log-linear model; finite; padding repeats row 0
    stats: np.ndarray  # (S, N, 10) float64, see `bleu`

    @classmethod
    def of(cls, lists: Sequence[Sequence[tuple[Sequence[float], Sequence[float]]]]) -> Candidates:
        """Pad n-best lists of (components, statistics) to equal length; none may be empty."""
        width = max(map(len, lists))
        padded = [[*rows, *[rows[0]] * (width - len(rows))] for rows in lists]
        return cls(
            np.array([[scores for scores, _ in rows] for rows in padded], dtype=np.float64),
            np.array([[stats for _, stats in rows] for rows in padded], dtype=np.float64),
        )

    def bleu(self, weights: np.ndarray) -> float:
        """Return corpus BLEU (0 to 1) of the candidates that `weights` (W,) rank first; earlier ones win ties."""
        best = (self.scores @ weights).argmax(1)  # (S,)
        return bleu(self.stats[np.arange(len(best)), best].sum(0))


def bleu(stats: np.ndarray) -> float:
    """Return unsmoothed BLEU (0 to 1) of summed statistics (10,): 4 matches, 4 totals, words, reference words."""
    matches, totals, words, reference = stats[:4], stats[4:8], stats[8], stats[9]
    if not matches.all():
        return 0.0
    return float(np.exp(np.log(matches / totals).mean() + min(0.0, 1.0 - reference / words)))


def search(candidates: Candidates, start: Sequence[float], free: Sequence[int], seed: int) -> tuple[list[float], float]:
    """Return the best weights found and their BLEU (0 to 1).

    Only the weights with an index in `free` move.  The result is scaled so that the absolute values of these weights
    have mean 1.
    """
    rng = np.random.default_rng(seed)
    index = list(free)
    first = np.array(start, dtype=np.float64)
    best, best_bleu = first, candidates.bleu(first)
    for attempt in range(STARTS):
        weights = first.copy()
        if attempt:
            weights[index] *= np.exp(rng.normal(0.0, 0.5, len(index)))
        weights, value = _climb(candidates, weights, index)
        if value > best_bleu + KEEP:
            best, best_bleu = weights, value
    scale = np.abs(best[index]).mean()
    return (best / scale).tolist(), best_bleu


def _climb(candidates: Candidates, weights: np.ndarray, index: list[int]) -> tuple[np.ndarray, float]:
    """Run coordinate ascent with every step size in turn, until no step helps."""
    value = candidates.bleu(weights)
    for step in STEPS:
        before: np.ndarray | None = None
        while before is not weights:
            before, size = weights, np.abs(weights[index]).mean() * step
            for i, sign in product(index, (1, -1)):
                trial = weights.copy()
                trial[i] += sign * size
                result = candidates.bleu(trial) if trial[index].any() else 0.0  # all-zero weights would rank nothing
                if result > value + KEEP:
                    weights, value = trial, result
    return weights, value


START = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0)  # log-linear weights before tuning


def make_development(config: PbmtConfig, folder: Path) -> None:
    """Write the tuning sentences: dev.json (source and target as text), dev.source and dev.target."""
    from sqa.data.texts import load_parallel

    parts = [load_parallel(config.corpus.pair, part) for part in config.tuning.development]
    pairs = [(row.source, row.target) for part in parts for row in islice(part, config.tuning.sentences)]
    write_development(folder, pairs, json_document(folder / "forms.json"))


def write_development(folder: Path, pairs: Sequence[tuple[str, str]], forms: Sequence[Mapping[str, str]]) -> None:
    """Write the files of `make_development`; `forms` is the usual case of words, per side."""
    for side, name in enumerate(("dev.source", "dev.target")):
        write_tokens(folder / name, (tokens.truecase(tokens.tokenise(pair[side]), forms[side]) for pair in pairs))
    write_text(folder / "dev.json", json.dumps(pairs, ensure_ascii=False))


def tune_language(config: PbmtConfig, folder: Path) -> None:
    """Choose interpolation weights with the least perplexity on the development references (Nelder and Mead 1965)."""
    from scipy.optimize import minimize
    from thot.common import NGramLanguageModel

    sentences, order = read_tokens(folder / "dev.target"), config.language.order
    small = folder / "tuning" / "ngrams"  # only the needed n-grams, since every measurement rereads them
    small.mkdir(parents=True)
    prefix = small / LANGUAGE
    only_ngrams_of(folder / "model" / LANGUAGE, sentences, order, prefix)
    (small / f"{LANGUAGE}.wp").write_text("")

    def loss(weights: np.ndarray) -> float:
        if weights.min() < 0 or weights.max() >= 1:
            return float("inf")
        write_language_weights(prefix, order, weights.tolist())
        model = NGramLanguageModel()
        model.load(str(prefix))
        total = sum(model.get_sentence_log_probability(sentence) for sentence in sentences)  # base-10 logarithm
        model.clear()
        return -total / sum(len(sentence) + 1 for sentence in sentences)

    optimum = minimize(loss, np.full(3 * order, 0.5), method="Nelder-Mead", options={"maxfev": 200, "xatol": 1e-2})
    write_language_weights(folder / "model" / LANGUAGE, order, optimum.x.tolist())
    print(f"sqa: development perplexity {10**optimum.fun:.1f}", file=sys.stderr)


def tune(config: PbmtConfig, folder: Path) -> None:
    """Write the model's config.json with the log-linear weights of the best development BLEU of all rounds."""
    weights = list(START)
    rounds: list[dict[str, Any]] = []
    shutil.rmtree(folder / "tuning", ignore_errors=True)
    if config.tuning.sentences:
        make_development(config, folder)
        tune_language(config, folder)
        shutil.rmtree(folder / "tuning")
        weights, rounds = tune_weights(config, folder, folder / "model")
    forms = json_document(folder / "forms.json")[0]
    write_model(folder / "model", weights, config.decoding, forms, {"training": asdict(config), "tuning": rounds})


def tune_packed(config: PbmtConfig, folder: Path) -> None:
    """Write the folder `packed`: a small model (smt/statistical/packed.py) with its own tuning."""
    pack(folder / "model", folder / "packed", config.packing)
    if config.tuning.sentences:
        whole = folder / "tuning"
        shutil.rmtree(whole, ignore_errors=True)
        whole.mkdir()
        unpack(folder / "packed", whole)
        set_weights(folder / "packed", *tune_weights(config, folder, whole))
        shutil.rmtree(whole)


def tune_weights(config: PbmtConfig, folder: Path, model: Path) -> tuple[list[float], list[dict[str, Any]]]:
    """Return the weights of the tables in `model` with the best BLEU, and weights and BLEU of each round."""
    source = read_tokens(folder / "dev.source")
    pairs = json_document(folder / "dev.json")
    # for each sentence: words of a candidate -> its components and statistics
    known: list[dict[tuple[str, ...], tuple[list[float], list[float]]]] = [{} for _ in source]
    weights = list(START)
    rounds: list[dict[str, Any]] = []
    engine = Engine(model, weights, config.decoding)
    for number in range(config.tuning.rounds + 1):
        engine.model.weights = weights
        firsts = []
        for row, n_best, pair in zip(known, engine.candidates(source, config.tuning.candidates), pairs, strict=True):
            finished = [(finish(target, pair[0]), components) for target, components in n_best]
            for words, components in finished:
                if words not in row:
                    row[words] = components, statistics(words, pair[1])
            firsts.append(row[finished[0][0]][1])
        value = 100 * bleu(np.sum(firsts, axis=0))
        rounds.append({"bleu": value, "weights": weights})
        print(f"sqa: tuning round {number}: development BLEU {value:.2f}", file=sys.stderr)
        lists = [list(row.values()) for row in known]
        weights, _ = search(Candidates.of(lists), weights, range(WEIGHTS - 1), config.tuning.seed + number)
    engine.close()
    return max(rounds, key=lambda row: float(row["bleu"]))["weights"], rounds


def statistics(words: Sequence[str], reference: str) -> list[float]:
    """Return the statistics of `bleu` for one sentence, with sacrebleu's tokens (13a)."""
    import sacrebleu

    score = sacrebleu.sentence_bleu(" ".join(words), [reference], use_effective_order=True)
    return [*map(float, score.counts), *map(float, score.totals), float(score.sys_len), float(score.ref_len)]
