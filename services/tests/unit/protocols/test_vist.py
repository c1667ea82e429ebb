"""Rules of the VIST evaluator that the recorded cases do not cover."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from tables import tables_of
from typer.testing import CliRunner

from sqa_services.cli.protocols import validate_app
from sqa_services.protocols import vist

TABLES = tables_of(__file__)

PHOTOS = {"s1": ["a", "b"], "s2": ["a", "b"], "s3": ["c", "d"]}


class Words:
    """A METEOR replacement, which scores a story by the share of its words in the best reference."""

    def stats(self, references: Sequence[str], hypothesis: str) -> list[float]:
        assert not any("\n" in text or "|||" in text for text in (*references, hypothesis))
        words = hypothesis.split()
        return [max(sum(word in text.split() for word in words) / max(len(words), 1) for text in references)]

    def scores(self, groups: Sequence[Sequence[float]]) -> list[float]:
        return [groups[0][0], groups[0][0]]


def annotation(story: str, photo: str, order: object, text: str) -> dict:
    return {"story_id": story, "photo_flickr_id": photo, "worker_arranged_photo_order": order, "text": text}


def gold() -> dict:
    rows = [
        annotation(story, photo, i, f"{story} {photo}") for story, ids in PHOTOS.items() for i, photo in enumerate(ids)
    ]
    return {"annotations": [[row] for row in rows]}


def told(*stories: dict) -> dict:
    return {"output_stories": stories}


def story(photos: object, text: object = "s1 a", album: object = "1") -> dict:
    return {"album_id": album, "photo_sequence": photos, "story_text_normalized": text}


GOOD = (story(["a", "b"]), story(["c", "d"], "s3 x"))


def run(folder: Path, test: object, *more: str, annotations: object = None) -> int:
    (folder / "test.json").write_text(test if isinstance(test, str) else json.dumps(test), encoding="utf-8")
    (folder / "gold.json").write_text(json.dumps(annotations or gold()), encoding="utf-8")
    words = ["-testFile", str(folder / "test.json"), "-gsFile", str(folder / "gold.json"), *more]
    return vist.main(words, lambda: nullcontext(Words()))


@pytest.mark.parametrize("stories,message", TABLES["first_problem_ends_the_evaluation"])
def test_first_problem_ends_the_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stories: list, message: str
) -> None:
    assert run(tmp_path, told(*stories)) == 1
    assert capsys.readouterr().out == f"[Error] {message}\n"


def test_java_exceptions_exit_with_one_error_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    null = '{"output_stories": [null]}'
    for test in ("{}", null):
        assert run(tmp_path, test) == 1
        said = capsys.readouterr()
        assert said.out == "" and said.err.startswith("sqa: ") and said.err.count("\n") == 1


def test_photo_order_matters_and_numbers_are_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, told(story(["b", "a"]), GOOD[1])) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[-1] == "[Error] One story is missing in this submission. Photo seq: a-b-"
    rows = [annotation("s", "7", 0, "one"), annotation("s", "8", 1, "two")]
    assert run(tmp_path, told(story([7, 8], 12)), annotations={"annotations": rows}) == 0


def test_command_takes_the_arguments_of_the_original(tmp_path: Path) -> None:
    run(tmp_path, told())
    words = ["vist", "-testFile", str(tmp_path / "test.json"), "-gsFile", str(tmp_path / "gold.json")]
    done = CliRunner().invoke(validate_app, words)
    assert done.exit_code == 1 and "[Error] One story is missing in this submission." in done.stdout


def test_annotation_groups_of_two_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = [annotation("s4", "e", 0, "one"), annotation("s4", "f", 1, "two")]
    assert run(tmp_path, told(*GOOD), annotations={"annotations": [*gold()["annotations"], pair]}) == 0
    assert capsys.readouterr().err == "annotation size error\n"


def test_score_is_the_mean_of_the_best_references(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, told(*GOOD)) == 0 and capsys.readouterr().out.splitlines()[-1] == "0.75"


def test_bars_and_line_endings_reach_meteor_as_words(tmp_path: Path) -> None:
    assert run(tmp_path, told(story(["a", "b"], "s1 ||| a\nb"), GOOD[1])) == 0


def test_comments_and_bad_escapes_are_no_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for test in (" // nothing\n", "", "{a: 1}", '{"a": "\\uzzzz"}', "[" * 100_000):
        assert run(tmp_path, test) == 1
        assert capsys.readouterr().out == "[Error] Incorrect JSON syntax (JsonSyntaxException).\n"
