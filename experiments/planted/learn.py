"""Train the detector of `sqa diagnose` on planted errors.

    python -m experiments.planted.learn es data/models/errors-es-en

Human translations other than XQB (`TRAINING` in experiments/planted/materials.py) are corrupted by errors of all
kinds.  The rate ranges from one error per text of five sentences to one error per five words.  A small network is
trained to recognise the planted words.  A logistic curve, fitted on held-out texts, turns its output into a
probability.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from experiments.planted.materials import KINDS, Corrupted, plant, training
from sqa.core.registry import SCORERS
from sqa.core.types import Floats
from sqa.data.priors import is_content
from sqa.diagnose.alignment import load_aligner
from sqa.diagnose.detector import FILE, VERSION, Network
from sqa.diagnose.scores import WordScorer
from sqa.diagnose.signals import DIRECT, GROUPS, SIGNS, TARGET, word_signals
from sqa.files.atomic import write_text

RATES: tuple[int | float, ...] = (1, 1, 2, 0.05, 0.1, 0.2)  # errors per text: a number, or a share of its words
HIDDEN, MEMBERS, STEPS, DECAY, RATE = 8, 3, 200, 1e-3, 0.03
TEXTS = 60  # texts per corpus
CALIBRATION = 5  # every fifth text is used for the logistic curve
SERVED = {"language-model": ("words", "lm")}  # scorer -> groups of signals that it provides


@dataclass(frozen=True)
class Signals:
    """Signals of the content words of corrupted texts."""

    signals: Floats  # (N, F)
    kinds: np.ndarray  # (N,) kind of the planted error, "" = none
    texts: np.ndarray  # (N,) ids
    group: str = "words"  # a key of `sqa.diagnose.signals.GROUPS`, which names the F signals


def signals_of(corrupted: Sequence[Corrupted], language: str, scorer: WordScorer) -> Signals:
    """Return the signals of every content word."""
    pairs = [(sentence.source, sentence.words) for sentence in corrupted]
    signals, kinds, texts = [], [], []
    aligned = load_aligner(f"{language}-{TARGET}").align(pairs)
    for sentence, alignment, scores in zip(corrupted, aligned, scorer.score(pairs), strict=True):
        features = word_signals(sentence.source, sentence.words, alignment, language, scores)
        content = [j for j, word in enumerate(sentence.words) if is_content(word, TARGET)]
        signals += [features[j] for j in content]
        kinds += [sentence.kinds[j] for j in content]
        texts += [sentence.text] * len(content)
    return Signals(np.array(signals), np.array(kinds), np.array(texts), scorer.group)


def of_group(data: Signals, group: str) -> Signals:
    """Return the table with only the signals of a group, which are its first columns."""
    return replace(data, signals=data.signals[:, : len(GROUPS[group])], group=group)


def fit(data: Signals, without: Collection[str] = ()) -> Network:
    """Return a network that recognises planted words, trained without the words planted by the kinds in `without`."""
    seen = ~np.isin(data.kinds, list(without))
    held = np.isin(data.texts, sorted(set(data.texts[seen]))[::CALIBRATION])
    learnt, calibrated = data.signals[seen & ~held], seen & held
    mean, deviation = learnt.mean(0), np.maximum(learnt.std(0), 1e-3)
    names = GROUPS[data.group]
    prior = np.array([DIRECT.get(name, 0.0) for name in names])
    signs = np.array([SIGNS.get(name, math.nan) for name in names])
    planted = data.kinds != ""
    standard = (learnt - mean) / deviation
    inner, inner_bias, outer, outer_bias, direct = _descend(learnt, standard, prior, signs, planted[seen & ~held])
    network = Network(mean, deviation, inner, inner_bias, outer, outer_bias, direct, slope=1.0, shift=0.0)
    slope, shift = _logistic(network.logits(data.signals[calibrated]), planted[calibrated])
    return replace(network, slope=slope, shift=shift)


def _descend(signals: Floats, x: Floats, prior: Floats, signs: Floats, planted: np.ndarray) -> tuple[Floats, ...]:
    """Return the weights of MEMBERS randomly initialised networks and of the direct signals, trained with Adam.

    The weights of direct signals start at `prior`, are regularised towards it and stay non-negative.  `signs`
    constrains the networks' weights of each signal: 1 = evidence for an error, -1 = evidence against an error, 0 =
    unconstrained, nan = not used by the networks.
    """
    import torch
    import torch.nn.functional as F

    generator = torch.Generator().manual_seed(0)
    inputs, labels = torch.from_numpy(np.clip(x, -8, 8)).float(), torch.from_numpy(planted).float()
    shapes = ((MEMBERS, x.shape[1], HIDDEN), (MEMBERS, HIDDEN), (MEMBERS, HIDDEN), (MEMBERS,))
    parts = [torch.randn(shape, generator=generator) * 0.2 for shape in shapes]
    direct_signals, start = torch.from_numpy(signals).float(), torch.from_numpy(prior).float()
    lowest, highest, towards = (
        torch.from_numpy(values).float()[None, :, None]
        for values in (
            np.where((signs == 1) | np.isnan(signs), 0.0, -np.inf),
            np.where((signs == -1) | np.isnan(signs), 0.0, np.inf),
            np.where(signs == -1, -1.0, 1.0),
        )
    )
    parts[0] = parts[0].abs() * towards
    parts[0] = parts[0].clamp(lowest, highest)
    parts[2] = parts[2].abs()
    parts.append(start.clone())
    for part in parts:
        part.requires_grad_()
    inner, inner_bias, outer, outer_bias, direct = parts
    adam = torch.optim.Adam(parts, lr=RATE)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(adam, STEPS)
    for _ in range(STEPS):
        hidden = torch.tanh(torch.einsum("nf,mfh->mnh", inputs, inner) + inner_bias[:, None])
        alone = direct_signals @ (direct * (start > 0))
        logits = torch.einsum("mnh,mh->mn", hidden, outer) + outer_bias[:, None] + alone
        loss = F.binary_cross_entropy_with_logits(logits, labels.expand(MEMBERS, -1)) * MEMBERS
        loss = loss + DECAY * (inner.square().sum() + outer.square().sum() + (direct - start).square().sum())
        adam.zero_grad()
        loss.backward()
        adam.step()
        with torch.no_grad():
            direct.clamp_(min=0.0)
            outer.clamp_(min=0.0)
            inner.copy_(inner.clamp(lowest, highest))
        rate.step()
    return tuple(part.detach().double().numpy() for part in parts)


def _logistic(logits: Floats, planted: np.ndarray) -> tuple[float, float]:
    """Fit Platt's logistic curve (1999) by Newton's method; return its slope and shift."""
    slope, shift = 1.0, 0.0
    x = np.stack([logits, np.ones_like(logits)], 1)
    for _ in range(30):
        p = 1 / (1 + np.exp(-(slope * logits + shift)))
        hessian = (x * (p * (1 - p))[:, None]).T @ x + 1e-6 * np.eye(2)
        change = np.linalg.solve(hessian, x.T @ (planted - p))
        slope, shift = slope + float(change[0]), shift + float(change[1])
    return slope, shift


def training_signals(language: str, scorer: WordScorer) -> Signals:
    """Return the signals of the first TEXTS texts of each training corpus, corrupted by errors of all kinds."""
    return signals_of(plant(training(language, TEXTS), RATES, tuple(KINDS), 0), language, scorer)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line described in the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m experiments.planted.learn", description=__doc__.split("\n")[0])
    parser.add_argument("language", choices=("es", "pl"))
    parser.add_argument("folder", type=Path, help="detector.json is written there")
    options = parser.parse_args(arguments)
    networks: dict[str, object] = {}
    for name, groups in SERVED.items():
        data = training_signals(options.language, SCORERS.resolve(name)(f"{options.language}-{TARGET}"))
        networks |= {group: fit(of_group(data, group)).record() for group in groups}
        planted = int((data.kinds != "").sum())
        print(f"trained on {len(data.kinds)} content words, {planted} of them planted", file=sys.stderr)
    options.folder.mkdir(parents=True, exist_ok=True)
    write_text(options.folder / FILE, json.dumps({"version": VERSION, "networks": networks}) + "\n")


if __name__ == "__main__":
    main()
