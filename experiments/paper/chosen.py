"""Which questions Figure 5 and Tables 2 and 5 show, by rule: nothing is picked by hand.

A question whose answer is not known shows nothing, for log MRR lies at its floor: those count whose answer comes first
when the whole human translation has been read.  Of the systems asked for,

    (a) the hallucination at which log MRR falls most: up to SHORT words, content words among them, that no source word
        stands behind, in an output at most LONG times as long as the human translation (longer ones are loops)
    (b) the under-translation with the longest silence while the answer is not first: words of the source are lost, and
        nothing more is written of their sentence; the silence is the share of the question's characters read meanwhile

is shown of each data set.  A translator that cannot be had is left out, so that the examples may be others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from experiments.grid import AblationConfig
from experiments.made import LeftOut
from experiments.stepwise.rows import RULES, Subject
from experiments.stepwise.systems import check_guesser, systems
from sqa.core.errors import ConfigError
from sqa.diagnose.step_errors import Finding
from sqa.run.config import load

SHORT = 5
LONG = 1.5
Panel = Literal["a", "b"]
KINDS: dict[Panel, Literal["hallucination", "under-translation"]] = {"a": "hallucination", "b": "under-translation"}


@dataclass(frozen=True, slots=True)
class ExamplesConfig:
    """What Figure 5 and Tables 2 and 5 read; configs/examples.yaml explains each key."""

    name: str
    ablation: Path
    guesser: str
    translators: tuple[str, ...]
    hallucination: int | str
    under_translation: int | str
    shown: tuple[int | str, ...]
    pages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        wrong = [f"{key}: at least one is needed" for key in ("translators", "shown") if not getattr(self, key)]
        if wrong:
            raise ConfigError(wrong)

    def k(self, panel: Panel) -> int | str:
        """Of the systems whose errors a panel is about."""
        return self.hallucination if panel == "a" else self.under_translation


class Systems(NamedTuple):
    """What the items are made from."""

    config: ExamplesConfig
    subjects: list[Subject]
    left_out: list[LeftOut]
    folder: Path  # of the results

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(subject.dataset for subject in self.subjects))


class Example(NamedTuple):
    """One error of one system."""

    panel: Panel
    subject: Subject
    finding: Finding
    size: float  # nats lost (a), or share of the question read in silence (b)

    @property
    def stem(self) -> str:
        return f"figure5{self.panel}_{self.subject.dataset}"


def load_systems(config_path: Path, runs: Path) -> Systems:
    """The systems of a config, from the ablation's runs; what the store lacks is run."""
    config = load(config_path, ExamplesConfig)
    text = (config_path.read_bytes(), (config_path.parent / config.ablation).read_bytes())
    return _systems(config_path.resolve(), runs.resolve(), text)


@lru_cache(maxsize=1)
def _systems(config_path: Path, runs: Path, _: tuple[bytes, bytes]) -> Systems:
    """Looked up once for the three items of one `sqa reproduce all`; the texts of both configs are in the key."""
    config = load(config_path, ExamplesConfig)
    base = load(config_path.parent / config.ablation, AblationConfig)
    if problems := check_guesser(base, config.guesser, config.ablation):
        raise ConfigError(problems)
    ks = {config.hallucination, config.under_translation, *config.shown}
    asked = {(translator, k) for translator in config.translators for k in ks}
    found, left_out = systems(base, config.guesser, asked, runs)
    return Systems(config, found, left_out, runs / config.name)


def known(subject: Subject, place: int) -> bool:
    """Whether the answer of a question comes first when its whole human translation has been read."""
    log = subject.human[place].log_mrr
    return bool(len(log)) and log[-1] == 0


def tells(panel: Panel, subject: Subject, finding: Finding) -> bool:
    """Whether an error can show anything, see the module's docstring."""
    place = subject.place(finding)
    line = subject.lines[place]
    if not known(subject, place):
        return False
    if panel == "b":
        before = np.flatnonzero(line.sentence <= finding.sentence)
        return not (len(before) and line.log_mrr[before[-1]] == 0)
    if len(finding.words) > SHORT or finding.loss <= RULES.drop:
        return False
    question = subject.run.questions[place]
    return len(line.read) <= LONG * len(question.reference_text.split())


def silence(subject: Subject, finding: Finding) -> tuple[float, float]:
    """The shares of the question's characters read when the last word before an under-translation was written, and when
    the next one was, after its sentence; 1 where none follows."""
    line = subject.lines[subject.place(finding)]
    before = np.flatnonzero(line.sentence <= finding.sentence)
    after = np.flatnonzero(line.sentence > finding.sentence)
    start = float(line.fraction[before[-1]]) if len(before) else 0.0
    return start, float(line.fraction[after[0]]) if len(after) else 1.0


def candidates(found: Systems, dataset: str, panel: Panel) -> list[Example]:
    """The errors of a data set that a panel could show, largest first."""
    examples = []
    for subject in found.subjects:
        if (subject.dataset, subject.k) != (dataset, found.config.k(panel)):
            continue
        for finding in subject.findings():
            if subject.kind(finding) == KINDS[panel] and tells(panel, subject, finding):
                start, end = silence(subject, finding)
                examples.append(Example(panel, subject, finding, finding.loss if panel == "a" else end - start))
    large = (example for example in examples if example.size > 0)
    return sorted(large, key=lambda e: (-e.size, e.subject.system, e.finding.question, e.finding.first))


def chosen(found: Systems) -> Iterator[Example]:
    """The largest error of each data set and panel; nothing for a panel without one."""
    for dataset in found.datasets:
        for panel in KINDS:
            yield from candidates(found, dataset, panel)[:1]


def missing(found: Systems, examples: Iterable[Example]) -> list[tuple[str, str]]:
    """(data set, why a panel of it is not there) of each panel that no example is of."""
    there = {(example.subject.dataset, example.panel) for example in examples}
    names = ", ".join(found.config.translators)
    return [
        (dataset, f"5{panel}: {names} at k={found.config.k(panel)} have no {kind} in a question whose answer is known")
        for dataset in found.datasets
        for panel, kind in KINDS.items()
        if (dataset, panel) not in there
    ]


def marks(example: Example) -> list[Finding]:
    """The hallucinations of an example's question as they were written: (1), (2), ... in the text."""
    errors = example.subject.errors[example.subject.place(example.finding)]
    return sorted((f for f in errors.findings if f.kind == "hallucination"), key=lambda f: f.first)
