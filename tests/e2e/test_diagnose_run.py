"""`sqa diagnose RUN`: its table for a finished run, its scoring models, and errors for runs that cannot be read."""

import errno
import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from refusals import refused
from stand_ins.viewer_runs import RECORDS, make

from sqa.core import ConfigError, DataError
from sqa.diagnose import findings
from sqa.diagnose.findings import HEADER, LINKS, main
from sqa.diagnose.signals import WordScores
from sqa.pipeline import open_run
from sqa.report import viewer
from sqa.results import printing

QUESTION = RECORDS[0]


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """Return a run that copies the source; the guesser names Spain after reading the word, and later France."""
    return make(tmp_path, "r", records=[QUESTION])


def test_drop_is_at_the_word_that_caused_it(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(finished, kinds=["drop"])
    captured = capsys.readouterr()
    header, line = captured.out.splitlines()
    assert tuple(header.split("\t")) == HEADER
    cells = dict(zip(HEADER, line.split("\t"), strict=True))
    assert (cells["question"], cells["kind"], cells["target"]) == ("q0", "drop", "France")
    assert (cells["rank_before"], cells["rank_after"], cells["step"], cells["read"]) == ("1", "2", "8", "9")
    assert (cells["source_at"], cells["source"]) == ("8", "France")
    assert "sqa: drop: 1 in 1 of 1 questions, 0.7 nats of log reciprocal rank lost there" in captured.err.splitlines()
    assert (finished / LINKS).is_file()
    with printing("json"):
        main(finished, top=1, questions=["q0"], kinds=["drop"])
    [result] = json.loads(capsys.readouterr().out)
    assert result["loss"] == pytest.approx(math.log(2))


def test_runs_that_cannot_be_diagnosed_are_refused(finished: Path, tmp_path: Path) -> None:
    refused(ConfigError, "is not the folder of a finished run", main, tmp_path)
    refused(ConfigError, "'q' is not a question of .*, did you mean 'q0'", main, finished, questions=["q"])
    refused(ConfigError, "has no guesses", main, make(tmp_path, "unguessed", guesser=None, buzzer=None))


def test_missing_priors_warn_and_mixed_languages_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    german = {**QUESTION, "language": "de"}
    main(make(tmp_path, "german", records=[german]))
    assert "sqa: no priors for de-en; aligned from these texts alone" in capsys.readouterr().err
    mixed = make(tmp_path, "mixed", records=[{**QUESTION, "id": "p"}, german])
    refused(ConfigError, "one language can be aligned at a time", main, mixed)


def test_finished_run_no_longer_needs_its_dataset(finished: Path) -> None:
    before = open_run(finished)
    path = Path(before.config.dataset.name)
    path.write_text(path.read_text().replace("grande", "enorme"))
    assert open_run(finished).questions == before.questions
    [kept] = (finished.parent / "store" / "questions").glob("*/questions.jsonl")
    kept.write_text(kept.read_text("utf-8").replace("grande", "enorme"), encoding="utf-8")
    refused(DataError, "differ from those that were written; delete the file and run again", open_run, finished)
    kept.unlink()
    refused(DataError, "the questions cannot be read", open_run, finished)


class Scorer:
    """A scorer whose probabilities depend on the length of a word, and which counts its calls."""

    group = "lm"
    asked = 0

    def fingerprint(self) -> str:
        return "lengths"

    def score(self, pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[WordScores]:
        Scorer.asked += 1
        return [
            WordScores(*(tuple(-float(len(w)) for w in target) for _ in range(2)), (0.0,) * len(target))
            for _, target in pairs
        ]


def absent(pair: str) -> Scorer:
    raise ConfigError(f"there is no model for {pair}")


def registry(build: Callable[[str], Scorer]) -> SimpleNamespace:
    """Return a registry in which one function builds every scorer."""
    return SimpleNamespace(names=lambda: ("language-model",), resolve=lambda name: build)


def test_scoring_model_is_called_once_and_reported(finished, capsys, monkeypatch):
    monkeypatch.setattr(findings, "SCORERS", registry(lambda pair: Scorer()))
    Scorer.asked = 0
    outputs = []
    for _ in range(2):
        main(finished, detector="auto")
        captured = capsys.readouterr()
        outputs.append(captured.out)
        assert "sqa: words judged with the scores of the language-model" in captured.err
    assert Scorer.asked == 1 and outputs[0] == outputs[1]
    kept = finished / "scores.language-model.json"
    assert json.loads(kept.read_text())["scores"]
    main(finished)
    assert "words judged" not in capsys.readouterr().err
    kept.write_text("{", encoding="utf-8")
    refused(DataError, "the stored scores are damaged .*; delete the file", main, finished, detector="language-model")


def test_words_are_judged_without_a_language_model(finished, capsys, monkeypatch):
    monkeypatch.setattr(findings, "SCORERS", registry(absent))
    main(finished, detector="words")
    plain = capsys.readouterr().out
    main(finished, detector="auto")
    captured = capsys.readouterr()
    assert captured.out == plain
    assert "sqa: words judged without a language model: there is no model for es-en" in captured.err
    refused(ConfigError, "there is no model for es-en", main, finished, detector="language-model")
    refused(ConfigError, "--detector: 'langage-model'.*did you mean", main, finished, detector="langage-model")


def test_read_only_run_can_be_viewed_and_diagnosed(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in finished.parent.rglob("*") if path.is_file()}
    real = os.open

    def read_only(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        if flags & os.O_CREAT and Path(path).is_relative_to(finished.parent):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return real(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", read_only)
    main(finished, kinds=["drop"])
    viewer.main([finished], output=tmp_path / "elsewhere" / "page.html")
    captured = capsys.readouterr()
    note = f"{finished}/links.json: alignments not stored (Read-only file system), so the next call recomputes them"
    assert captured.err.count(f"sqa: {note}\n") == 2 and "France" in captured.out
    assert "France" in (tmp_path / "elsewhere" / "page.html").read_text(encoding="utf-8")
    assert {path: path.read_bytes() for path in finished.parent.rglob("*") if path.is_file()} == before
