"""The evaluator of the VIST challenge (NAACL 2018): the same checks, messages, order and exit codes, and its score.

    -testFile F -gsFile G [--template T]

The score is the mean over photo sequences of the best METEOR (task hter, text as it is) against any human story.  It
may differ from the original's by 1e-6, and files must be strict JSON.
The original contains its template; without `--template` every sequence of the gold file counts.  Where it
ends with a Java exception, we end with exit code 1, nothing on stdout and one line on stderr.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, ValidationError, convert

from sqa.core import DataError, SqaError
from sqa_services.protocols.external import HTER_ARGUMENTS, External, start_meteor

T = TypeVar("T")
SYNTAX = (ValidationError, ValueError, RecursionError)  # the text is not JSON, or a value has the wrong type
USAGE = "Incorrect args: -testFile <testFile_path> -gsFile <gsFile_path>"
LONGEST_KEY = 1000  # maximum number of characters of a photo sequence in a message
_BAR_STANDS = "\ue07c"  # private character that replaces a bar in text for METEOR


class Problem(SqaError):
    """A problem of the submission, in the words of the original program; the first one ends the evaluation."""

    def __init__(self, message: str, key: str | None = None) -> None:
        """Create a problem of the photo sequence `key`, if it is known."""
        super().__init__(message if key is None else f"{message} Photo seq: {key:.{LONGEST_KEY}}")


def main(words: Sequence[str], start: Callable[[], External] | None = None) -> int:
    """Run the evaluator with command-line arguments; return 0 or 1.  `start` starts METEOR."""
    if "--help" in words:
        print(__doc__)
        return 0
    paths = parse_arguments(words)
    if not {"-testFile", "-gsFile"} <= paths.keys():
        print(USAGE, file=sys.stderr)
        return 1
    try:
        _evaluate(paths, start or (lambda: start_meteor(HTER_ARGUMENTS)))
    except Problem as problem:
        print(f"[Error] {problem}", flush=True)
        return 1
    except DataError as error:  # the original ends with a Java exception
        print(f"sqa: {error}", file=sys.stderr)
        return 1
    return 0


def parse_arguments(words: Sequence[str]) -> dict[str, Path]:
    """Return the files, or none if the original prints its usage.  Unknown words are ignored."""
    paths: dict[str, Path] = {}
    remaining = iter(words)
    for word in remaining:
        new = word in ("-testFile", "-gsFile", "--template") and word not in paths
        if new and (value := next(remaining, None)) is not None:
            paths[word] = Path(value)
        elif word.startswith("-"):
            return {}
    return paths


def _evaluate(paths: Mapping[str, Path], start: Callable[[], External]) -> None:
    gold = _trusted(paths["-gsFile"], gold_stories)
    if "--template" in paths:
        template = {story.key for story in _trusted(paths["--template"], submission)}
        gold = {key: stories for key, stories in gold.items() if key in template}
    submitted = _submitted(paths["-testFile"])
    for key in gold:
        if key not in submitted:
            raise Problem("One story is missing in this submission.", key)
    print("[Passed] All required stories are submitted.", flush=True)
    scores: dict[str, float] = {}
    with start() if gold else nullcontext() as program:
        for message in ("MeteorConfiguration...", "setTask...", "scorer created..."):
            print(message, flush=True)
        if program is not None:
            scores = {key: best_score(program, submitted[key], references) for key, references in gold.items()}
    mean = sum(scores.values()) / len(scores) if scores else "NaN"
    print("--------------------------", "Avg. Max Meteor Score =", mean, sep="\n", flush=True)


def best_score(program: External, story: str, references: Sequence[str]) -> float:
    """Return the METEOR score of a story against its best reference, 0 to 1."""
    stats = program.stats([_one_line(text) for text in references], _one_line(story))
    return program.scores([stats])[0]


def _one_line(text: str) -> str:
    """Return the words as METEOR's tokeniser finds them, separated by single spaces, without the protocol's `|||`."""
    if _BAR_STANDS in text:
        raise DataError(f"the character {_BAR_STANDS!r} (U+E07C) is not usable in stories")
    for blank in "\t\n\r\f":
        text = text.replace(blank, " ")
    return " ".join(word for word in text.split(" ") if word).replace("|||", 3 * _BAR_STANDS)


# ------------------------------------------------------------------------------------------------- the submission


class Story(Struct, frozen=True):
    """One story of a submission; attributes that the file lacks are None."""

    album_id: str | None = None
    photo_sequence: tuple[str | None, ...] | None = None
    story_text_normalized: str | None = None

    @property
    def key(self) -> str | None:
        """The photo ids in order, each followed by "-"."""
        return None if self.photo_sequence is None else _key(self.photo_sequence)


def submission(document: Any) -> list[Story]:
    """Return the stories of a submission or template.

    Raises one of SYNTAX for wrong types, DataError if there are no stories.
    """
    stories = convert(document, dict[str, Any]).get("output_stories")
    if stories is None:
        raise DataError("the file has no output_stories (the original ends with a NullPointerException)")
    parsed = convert(stories, list[Story | None])
    if None in parsed:
        raise DataError("output_stories holds a null or a comma too many (the original: a NullPointerException)")
    return [story for story in parsed if story is not None]


def _submitted(path: Path) -> dict[str, str]:
    """Return the stories by photo sequence."""
    try:
        stories = submission(_document(path))
    except SYNTAX as error:
        raise Problem("Incorrect JSON syntax (JsonSyntaxException).") from error
    for story in stories:
        if story.album_id is None or story.photo_sequence is None or story.story_text_normalized is None:
            raise Problem("One story is missing some attributes.", story.key)
    by_key: dict[str, str] = {}
    for story in stories:
        key = _key(story.photo_sequence or ())
        if key in by_key:
            raise Problem("One photo sequence has more than one stories.", key)
        by_key[key] = story.story_text_normalized or ""
    print("[Passed] Test file is in valid JSON syntax.", flush=True)
    print("[Passed] Each photo sequence has only one story.", flush=True)
    return by_key


# ------------------------------------------------------------------------------------------------------- the gold


class _Annotation(Struct):
    """A part of a human story."""

    story_id: str | None = None
    photo_flickr_id: str | None = None
    worker_arranged_photo_order: str | None = None
    text: str | None = None

    @property
    def position(self) -> int | None:
        """Place of the annotation among the parts.  Raises ValueError if it is not a number."""
        order = self.worker_arranged_photo_order
        try:
            return None if order is None else int(float(order))
        except (ValueError, OverflowError) as error:
            raise ValueError(f"worker_arranged_photo_order: a number was expected, got {order!r}") from error


def gold_stories(document: Any) -> dict[str, list[str]]:
    """Return the human stories of each photo sequence: texts in the workers' order, sequences in file order."""
    by_story: dict[str, list[tuple[int | None, _Annotation]]] = {}
    for annotation in _annotations(convert(document, dict[str, Any]).get("annotations")):
        if annotation.story_id is None:
            raise DataError("the gold file has an annotation without story_id")
        by_story.setdefault(annotation.story_id, []).append((annotation.position, annotation))
    by_sequence: dict[str, list[str]] = {}
    for story, parts in by_story.items():
        if len(parts) > 1 and any(position is None for position, _ in parts):
            raise DataError(f"the gold file: story {story} has an annotation without worker_arranged_photo_order")
        key = _key([part.photo_flickr_id for _, part in parts])
        told = [part.text for _, part in sorted(parts, key=lambda part: part[0] or 0)]
        text = " ".join("null" if text is None else text for text in told).strip()
        by_sequence.setdefault(key, []).append(text)
    return by_sequence


def _annotations(value: Any) -> list[_Annotation]:
    """Read the annotations in [[{...}], ...] or in [{...}, ...]."""
    if value is None:
        raise DataError("the gold file has no annotations")
    try:
        nested = convert(value, list[list[_Annotation]])
    except ValidationError:
        return convert(value, list[_Annotation])
    for group in nested:
        if len(group) != 1:
            print("annotation size error", file=sys.stderr)
    return [group[0] for group in nested if len(group) == 1]


# ------------------------------------------------------------------------------------------------- small readers


def _trusted(path: Path, stories: Callable[[Any], T]) -> T:
    """Return the stories in a file of the organisers; any mistake in it ends the evaluation."""
    try:
        return stories(_document(path))
    except (DataError, *SYNTAX) as error:
        raise DataError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from error


def _document(path: Path) -> Any:
    try:
        text = path.read_bytes().decode("utf-8", "replace")
        return json.loads(text, parse_int=str, parse_float=str, parse_constant=str)  # ids may be numbers
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error


def _key(photos: Sequence[str | None]) -> str:
    return "".join("null-" if photo is None else f"{photo}-" for photo in photos)
