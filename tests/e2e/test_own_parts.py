"""Parts from a file outside the project, by `file.py:build`, through the real command: no line elsewhere."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from refusals import refused

from sqa.cli.keys import keys_of
from sqa.core.errors import ConfigError
from sqa.data import perturb
from sqa.files.store import Store
from sqa.run.config import load_run, run_from_mapping, to_mapping
from sqa.run.folder import read
from sqa.run.paired import compare
from sqa.run.pipeline import RunResult, run
from sqa.run.saving import save
from sqa_services.board.sqa_task import QuestionData, question_of

PARTS = '''
from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from helper import PAGE
from sqa.data.perturb import Perturbation
from sqa.core.types import Buzz, Guess
from sqa.metrics.latency import SIMULEVAL_1_1, Convention, Formula


@dataclass(frozen=True)
class Config:
    k: int = 3


class Behind:
    """Copies each word, k words late."""

    def __init__(self, k: int) -> None:
        self.k = k

    def translate(self, source):
        read = []
        for word in source:
            read.append(word)
            if len(read) >= self.k:
                yield read[len(read) - self.k]
        yield from read[len(read) - self.k + 1 :]


class Always:
    """The same page, whatever was read."""

    def guess(self, texts, n):
        return [[Guess(PAGE, 1.0)] for _ in texts]


class AtOnce:
    """Buzzes at every step."""

    def decide(self, history):
        return [Buzz(1.0, True) for _ in history]


class Words:
    """Target words of a question."""

    name, label, unit, digits, kind, higher_is_better = "words", "Words", "words", 1, "lag", True

    def signature(self):
        return "words"

    def stats(self, trace):
        return np.array([len(trace.emissions), 1.0])

    def score(self, stats):
        return float(stats[0] / stats[1])


class Pairs:
    """Shows an even number of words."""

    start = 1

    def show(self, shown, translations, ended):
        newest = translations[-1]
        return newest if ended else newest[: max(len(shown), len(newest) // 2 * 2)]


def pairs(config: Config) -> Pairs:
    return Pairs()


def translator(config: Config) -> Behind:
    return Behind(config.k)


def guesser(config: Config) -> Always:
    return Always()


def buzzer(config: Config) -> AtOnce:
    return AtOnce()


def words():
    return Words()


def last():
    """A formula of latency: the delay of the last word."""
    return Formula("last", "Last", lambda delays, _: delays.flat[np.cumsum(delays.hypothesis.astype(int)) - 1])


def late() -> Convention:
    """SimulEval's rules, each delay one word more."""
    return Convention("late", "here", False, False, 1, "length", True, "first", SIMULEVAL_1_1.formulas)


def shout() -> Perturbation:
    """Capital letters throughout."""
    def louder(question, rng):
        return replace(question, sentences=tuple(tuple(w.upper() for w in s) for s in question.sentences))

    return Perturbation("shout", "robustness", louder)


@dataclass(frozen=True, slots=True)
class FigureConfig:
    run: Path  # below the folder of runs
    metric: str


def figure(config: Path, runs: Path) -> None:
    """A metric of every question of a run, as a line."""
    from sqa.report.plots import save, style
    from sqa.run.config import load
    from sqa.run.folder import read

    import matplotlib.pyplot as plt

    settings = load(config, FigureConfig)
    found = read(runs / settings.run)
    with style():
        figure, axes = plt.subplots()
        axes.plot(found.stats[settings.metric][:, 0])
        for path in save(figure, runs / "mine", "words"):
            print(path)


def alone() -> None:
    """No figure: it takes nothing."""
'''
CONFIG = """
dataset: {name: mini-es, limit: 3}
translator: {name: "mine.py:translator", k: 2}
guesser: "mine.py:guesser"
buzzer: "mine.py:buzzer"
metrics: [ew, dal, "mine.py:words", "mine.py:last", "al@mine.py:late"]
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """The folder of a config and its parts."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "mine.py").write_text(PARTS, encoding="utf-8")
    (folder / "helper.py").write_text("PAGE = 'Peru'\n", encoding="utf-8")
    (folder / "mine.yaml").write_text(CONFIG, encoding="utf-8")
    return folder


def played(folder: Path) -> RunResult:
    return run(load_run(folder / "mine.yaml"), Store(folder.parent / "runs"), progress=False)


def test_the_command_runs_them_from_any_folder(mine: Path) -> None:
    """A file is found beside the config; the run's own config.yaml is taken back, also from elsewhere."""
    elsewhere = mine.parent / "elsewhere"
    elsewhere.mkdir()
    runs = mine.parent / "runs"
    command = [sys.executable, "-m", "sqa", "run", "--runs", str(runs)]
    done = subprocess.run([*command, str(mine / "mine.yaml")], cwd=elsewhere, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (
        "translator 'mine.py:translator' has no fingerprint(); its results are stored under its source" in done.stderr
    )
    rows = {line.split("\t")[0]: line.split("\t") for line in done.stdout.splitlines()}
    assert rows["words"][5] == rows["last"][5] == rows["al@late"][5] == "words"
    assert "|source:" in rows["words"][6] and rows["al@late"][6].startswith("al|conv:late|")
    before = (runs / "mine" / "report.tsv").read_bytes()
    again = subprocess.run([*command, str(runs / "mine" / "config.yaml"), "--limit", "2"], cwd=elsewhere)
    assert again.returncode == 0 and (runs / "mine" / "report.tsv").read_bytes() == before


def test_an_edited_part_is_never_answered_from_the_store(mine: Path) -> None:
    first = played(mine)
    assert set(first.made.values()) == {1} and set(played(mine).made.values()) == {0}
    saved = read(save(first, mine.parent / "runs"))
    assert len(compare(saved, saved, 10)[0]) == 5
    (mine / "helper.py").write_text("PAGE = 'Chad'\n", encoding="utf-8")  # of the same size, within the same second
    edited = played(mine)
    assert set(edited.made.values()) == {1} and edited.traces[0].guesses[0][0].page == "Chad"
    text = (mine / "mine.py").read_text(encoding="utf-8")
    (mine / "mine.py").write_text(text.replace("len(trace.emissions), 1.0", "len(trace.emissions), 2.0"), "utf-8")
    halved = played(mine)
    assert halved.stats["words"].sum(axis=0)[1] == 6
    assert [metric.signature() for metric in halved.metrics] != [metric.signature() for metric in first.metrics]


def test_a_policy_of_your_own(mine: Path) -> None:
    """Around `cat` as the system; an edited policy is run anew."""
    text = """
dataset: {name: mini-es, limit: 2}
translator: {name: command, command: [cat], policy: {name: "mine.py:pairs", k: 1}}
metrics: [al]
"""
    (mine / "mine.yaml").write_text(text, encoding="utf-8")
    first = played(mine)
    assert [emission.g for emission in first.traces[0].emissions][:4] == [2, 2, 4, 4]
    assert load_run(save(first, mine.parent / "runs") / "config.yaml") == first.config
    assert set(played(mine).made.values()) == {0}
    source = (mine / "mine.py").read_text(encoding="utf-8").replace("// 2 * 2", "// 3 * 3")
    (mine / "mine.py").write_text(source, encoding="utf-8")
    assert [emission.g for emission in played(mine).traces[0].emissions][:4] == [3, 3, 3, 6]


def reproduced(mine: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`sqa reproduce` from another folder than that of the parts."""
    command = [sys.executable, "-m", "sqa", "reproduce", *arguments, "--runs", str(mine.parent / "runs")]
    return subprocess.run(command, cwd=mine.parent, capture_output=True, text=True)


def test_a_figure_of_your_own(mine: Path) -> None:
    save(played(mine), mine.parent / "runs")
    config = mine / "figure.yaml"
    config.write_text("run: mine\nmetric: words\n", encoding="utf-8")
    done = reproduced(mine, "mine.py:figure", str(config))
    assert done.returncode == 0, done.stderr
    assert [Path(line).name for line in done.stdout.splitlines()] == ["words.pdf", "words.png"]
    assert Path(done.stdout.splitlines()[0]).read_bytes().startswith(b"%PDF")
    alone = reproduced(mine, "mine.py:alone", str(config))
    assert alone.returncode == 2 and "must be a function main(config, runs)" in alone.stderr


CLASSES = """
from dataclasses import dataclass


@dataclass(frozen=True)
class Same:
    page: str
    score: float = 0.5  # of every guess

    def guess(self, texts, n):
        return [[(self.page, self.score)] for _ in texts]


@dataclass(frozen=True)
class Pairs:
    words: int = 2
    start: int = 1

    def show(self, shown, translations, ended):
        newest = translations[-1]
        return newest if ended else newest[: len(newest) // self.words * self.words]
"""


def test_a_dataclass_is_a_part_and_its_fields_are_its_keys(mine: Path) -> None:
    (mine / "mine.py").write_text(CLASSES, encoding="utf-8")
    config = {
        "dataset": {"name": "mini-es", "limit": 2},
        "translator": {"name": "command", "command": ["cat"], "policy": {"name": "mine.py:Pairs", "words": 3}},
        "guesser": {"name": "mine.py:Same", "page": "Peru"},
        "metrics": ["accuracy"],
    }

    def page() -> str:
        made = run(run_from_mapping({"name": "x", **config}, mine), Store(mine / "runs"), progress=False)
        assert made.traces[0].guesses is not None
        assert {e.g for e in made.traces[0].emissions if not e.ended} <= set(range(3, 100, 3))
        return f"{made.traces[0].guesses[-1][0].page} {made.traces[0].guesses[-1][0].score} {made.made['guess']}"

    assert page() == "Peru 0.5 1" and page() == "Peru 0.5 0"
    config["guesser"] = {"name": "mine.py:Same", "page": "Spain", "score": 1.0}
    assert page() == "Spain 1.0 1"
    (mine / "mine.py").write_text(CLASSES.replace("[(self.page, self.score)]", "[(self.page, 2.0)]"), encoding="utf-8")
    assert page() == "Spain 2.0 1"
    assert [(key.key, key.default, key.meaning) for key in keys_of("guesser", f"{mine}/mine.py:Same")] == [
        ("page", "required", ""),
        ("score", "0.5", "of every guess"),
    ]
    back = pickle.loads(pickle.dumps(run_from_mapping({"name": "x", **config}, mine)))
    assert to_mapping(back)["guesser"] == {"name": f"{mine}/mine.py:Same", "page": "Spain", "score": 1.0}
    config["guesser"] = {"name": "mine.py:Same", "pagee": "Peru"}
    refused(ConfigError, "guesser.pagee: unknown, did you mean 'page'", run_from_mapping, {"name": "x", **config}, mine)


def test_a_perturbation_of_your_own(mine: Path) -> None:
    shout = f"{mine / 'mine.py'}:shout"
    loaded = QuestionData("es").load("mini-es", 0, ["typos", shout])
    transforms = {example["transform"] for example in loaded["robustness"]}
    assert transforms == {"typos", "shout"}
    copy = next(question_of(example) for example in loaded["robustness"] if example["transform"] == "shout")
    assert copy.id.endswith("_shout") and copy.text.isupper()
    with pytest.raises(ConfigError) as raised:
        perturb.chosen([f"{mine / 'mine.py'}:words", shout, shout, "typo"])
    assert raised.value.problems == (
        "perturbation: mine.py:words made a Words, expected a Perturbation",
        "perturbation: unknown 'typo', did you mean 'typos'; known: names, gender, typos, casing, punctuation, "
        "diacritics, asr, disfluencies, reordering, or your own 'module:build' or 'file.py:build'",
        "perturbation: the same one is named twice",
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('guesser: "theirs.py:guesser"', "guesser.name: guesser 'theirs.py:guesser': theirs.py: no such file; it is"),
        ('guesser: "broken.py:build"', "broken.py:1: "),
        ('translator: {name: command, command: [cat], policy: "mine.py:words"}', "Words, which has no start and show"),
        ('translator: {name: command, command: [cat], policy: "half.py:Half"}', "made a Half, which has no start"),
        ('translator: {name: command, command: [cat], k: 2, policy: {name: "mine.py:pairs"}}', "takes its own keys"),
        ('metrics: ["mine.py:translator"]', "build() without parameters failed"),
        ('metrics: ["al@mine.py:words"]', "mine.py:words made a Words, expected a Convention"),
        ('metrics: ["mine.py:late"]', "mine.py:late made a Convention, which has no unit, digits, label"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(mine: Path, line: str, problem: str) -> None:
    (mine / "broken.py").write_text("def build(:\n", encoding="utf-8")
    (mine / "half.py").write_text(
        "class Half:\n    def show(self, shown, translations, ended): ...\n", encoding="utf-8"
    )
    kept = [old for old in CONFIG.splitlines() if old.partition(":")[0] != line.partition(":")[0]]
    (mine / "mine.yaml").write_text("\n".join([*kept, line]), encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        load_run(mine / "mine.yaml")
    assert problem in str(raised.value) and len(raised.value.problems) == 1
