"""The evaluator of the VIST challenge (NAACL 2018): the same checks, messages, order and exit codes, and its score.

    -testFile F -gsFile G [--template T] [--all-errors] [--json]

The score is the mean over photo sequences of the best METEOR (task hter, text as it is) against any human story.
The original carries its template inside; without `--template` every sequence of the gold file counts.  Where it
ends with a Java exception, we end with exit code 1, nothing on stdout and one line on stderr.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from sqa.core.errors import DataError, SqaError
from sqa_services.protocols import meteor
from sqa_services.protocols.external import External
from sqa_services.protocols.gson import BadUnicodeEscape, Json, JsonSyntax, NoDocument, parse
from sqa_services.protocols.java import BLANKS, double_text, hashtable_order

USAGE = "Incorrect args: -testFile <testFile_path> -gsFile <gsFile_path>"
SYNTAX = "Incorrect JSON syntax (JsonSyntaxException)."
LONGEST_KEY = 1000  # characters of a photo sequence in a message
_BAR_STANDS = "\ue07c"  # a private character that stands for a bar on the way to METEOR


class Uncaught(SqaError):
    """The original dies of a Java exception here."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What the command line says."""

    test: Path
    gold: Path
    template: Path | None = None
    all_errors: bool = False
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Story:
    """One story of a submission; None is what the file lacks."""

    album: str | None
    photos: tuple[str | None, ...] | None
    text: str | None

    @property
    def key(self) -> str | None:
        """The photo ids in order, each with a "-" after it."""
        return None if self.photos is None else _key(self.photos)


@dataclass(slots=True)
class Report:
    """Messages in order; printed at once unless they become JSON."""

    quiet: bool
    messages: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    sequences: int | None = None
    score: float | None = None

    def add(self, message: str) -> None:
        self.messages.append(message)
        if not self.quiet:
            print(message, flush=True)

    def problem(self, message: str, key: str | None = None) -> None:
        text = message if key is None else f"{message} Photo seq: {key:.{LONGEST_KEY}}"
        self.problems.append(text)
        self.add(f"[Error] {text}")


def main(words: Sequence[str], start: Callable[[], External] | None = None) -> int:
    """Runs the evaluator on its command line; 0 or 1.  `start` starts METEOR."""
    if "--help" in words:
        print(__doc__)
        return 0
    arguments = parse_arguments(words)
    if arguments is None:
        print(USAGE, file=sys.stderr)
        return 1
    report = Report(quiet=arguments.as_json)
    try:
        _evaluate(arguments, report, start or _start)
    except (Uncaught, DataError) as error:
        print(f"sqa: {error}", file=sys.stderr)
        return 1
    if arguments.as_json:
        result = {"valid": not report.problems, "problems": report.problems, "messages": report.messages}
        print(json.dumps(result | {"sequences": report.sequences, "score": report.score}, ensure_ascii=False, indent=2))
    return 1 if report.problems else 0


def parse_arguments(words: Sequence[str]) -> Arguments | None:
    """None where the original prints its usage.  Words that begin with no "-" are ignored, as it does."""
    paths: dict[str, Path] = {}
    flags: set[str] = set()
    remaining = iter(words)
    for word in remaining:
        if word in ("-testFile", "-gsFile", "--template") and word not in paths:
            value = next(remaining, None)
            if value is None:
                return None
            paths[word] = Path(value)
        elif word in ("--all-errors", "--json"):
            flags.add(word)
        elif word.startswith("-"):
            return None
    if "-testFile" not in paths or "-gsFile" not in paths:
        return None
    template = paths.get("--template")
    return Arguments(paths["-testFile"], paths["-gsFile"], template, "--all-errors" in flags, "--json" in flags)


def _start() -> External:
    return meteor.start(meteor.HTER_ARGUMENTS)


def _evaluate(arguments: Arguments, report: Report, start: Callable[[], External]) -> None:
    try:
        gold = gold_stories(_document(arguments.gold))
    except (Uncaught, JsonSyntax) as error:
        raise error if str(arguments.gold) in str(error) else Uncaught(f"{arguments.gold}: {error}") from error
    if arguments.template is not None:
        gold = _within(gold, arguments.template)
    report.sequences = len(gold)
    submitted = _submitted(arguments, report)
    if submitted is None:
        return
    for key in gold:
        if submitted.get(key) is None:
            report.problem("One story is missing in this submission.", key)
            if not arguments.all_errors:
                return
    if report.problems:
        return
    report.add("[Passed] All required stories are submitted.")
    with ExitStack() as stack:
        scores = {}
        program = None
        if len(gold):
            program = stack.enter_context(start())
        for message in ("MeteorConfiguration...", "setTask...", "scorer created..."):
            report.add(message)
        for key in gold:
            if program is not None:
                scores[key] = best_score(program, submitted[key], gold[key])
    total = 0.0
    for key in hashtable_order(scores):  # in the order in which the original adds
        total += scores[key]
    report.add("--------------------------")
    report.add("Avg. Max Meteor Score =")
    report.score = total / len(scores) if len(scores) else None
    report.add(double_text(float("nan") if report.score is None else report.score))


def best_score(program: External, story: str, references: Sequence[str]) -> float:
    """METEOR of the reference that it finds best, 0 to 1."""
    stats = program.stats([_one_line(text) for text in references], _one_line(story))
    return program.scores([stats])[0]


def _one_line(text: str) -> str:
    """The words as METEOR's tokeniser finds them, single-spaced, and without the protocol's `|||`."""
    if _BAR_STANDS in text:
        raise DataError(f"the character {_BAR_STANDS!r} (U+E07C) is not usable in stories")
    for blank in "\t\n\r\f":
        text = text.replace(blank, " ")
    return " ".join(word for word in text.split(" ") if word).replace("|||", 3 * _BAR_STANDS)


# ------------------------------------------------------------------------------------------------- the submission


def _submitted(arguments: Arguments, report: Report) -> dict[str, str] | None:
    """Stories by photo sequence; None when a problem ends the check."""
    try:
        stories = submission(_document(arguments.test))
    except JsonSyntax as error:
        report.problem(SYNTAX)
        if arguments.all_errors:
            print(f"sqa: {arguments.test}: {error}", file=sys.stderr)
        return None
    for story in stories:
        if story.album is None or story.photos is None or story.text is None:
            report.problem("One story is missing some attributes.", story.key)
            if not arguments.all_errors:
                return None
    by_key: dict[str, str] = {}
    for story in stories:
        if story.key is None:
            continue  # reported above
        if by_key.get(story.key) is not None:
            report.problem("One photo sequence has more than one stories.", story.key)
            if not arguments.all_errors:
                return None
        else:
            by_key[story.key] = story.text or ""
    if not report.problems:
        report.add("[Passed] Test file is in valid JSON syntax.")
        report.add("[Passed] Each photo sequence has only one story.")
    return by_key


def submission(document: Json) -> list[Story]:
    """The stories of a submission or template.  Wrong types: JsonSyntax; nothing there: Uncaught."""
    stories = _object(document).get("output_stories")
    if stories is None:
        raise Uncaught("the file has no output_stories (the original ends with a NullPointerException)")
    parsed = [None if item is None else _story(_object(item)) for item in _array(stories)]
    if None in parsed:
        raise Uncaught("output_stories holds a null or a comma too many (the original: a NullPointerException)")
    return [story for story in parsed if story is not None]


def _story(item: dict[str, Json]) -> Story:
    photos = item.get("photo_sequence")
    ids = None if photos is None else tuple(_text(photo) for photo in _array(photos))
    return Story(_text(item.get("album_id")), ids, _text(item.get("story_text_normalized")))


# ------------------------------------------------------------------------------------------------------- the gold


@dataclass(frozen=True, slots=True)
class _Annotation:
    story: str
    photo: str | None
    order: int | None
    text: str | None


def gold_stories(document: Json) -> dict[str, list[str]]:
    """The human stories of each photo sequence, texts in the workers' order; sequences in the original's order."""
    by_story: dict[str, list[_Annotation]] = {}
    try:
        for annotation in _annotations(_object(document).get("annotations")):
            by_story.setdefault(annotation.story, []).append(annotation)
    except JsonSyntax as error:
        raise Uncaught(f"the gold file: {error}") from error
    by_sequence: dict[str, list[str]] = {}
    for story in hashtable_order(by_story):
        annotations = by_story[story]
        key = _key([annotation.photo for annotation in annotations])
        if len(annotations) > 1 and any(annotation.order is None for annotation in annotations):
            raise Uncaught(f"the gold file: story {story} has an annotation without worker_arranged_photo_order")
        ordered = sorted(annotations, key=lambda annotation: annotation.order or 0)
        text = "".join(f"{_java(annotation.text)} " for annotation in ordered).strip(BLANKS)
        by_sequence.setdefault(key, []).append(text)
    return _ordered(by_sequence, by_sequence)


def _annotations(value: Json) -> list[_Annotation]:
    """Of [[{...}], ...], or else of [{...}, ...]."""
    if value is None:
        raise Uncaught("the gold file has no annotations")
    items = _array(value)
    try:
        nested = [[_annotation(item) for item in _array(group)] for group in items]
    except JsonSyntax:
        return [_annotation(item) for item in items]
    for group in nested:
        if len(group) != 1:
            print("annotation size error", file=sys.stderr)
    return [group[0] for group in nested if len(group) == 1]


def _annotation(value: Json) -> _Annotation:
    item = _object(value)
    story, order = _text(item.get("story_id")), _text(item.get("worker_arranged_photo_order"))
    if story is None:
        raise Uncaught("the gold file has an annotation without story_id")
    try:
        position = None if order is None else int(float(order))
    except (ValueError, OverflowError) as error:
        raise JsonSyntax(f"worker_arranged_photo_order: a number was expected, got {order!r}") from error
    return _Annotation(story, _text(item.get("photo_flickr_id")), position, _text(item.get("text")))


def _ordered(gold: dict[str, list[str]], keys: Iterable[str]) -> dict[str, list[str]]:
    return {key: gold[key] for key in hashtable_order(keys)}


def _within(gold: dict[str, list[str]], template: Path) -> dict[str, list[str]]:
    """The gold stories whose sequences the template has."""
    try:
        keys = {story.key for story in submission(_document(template))}
    except JsonSyntax as error:
        raise Uncaught(f"{template}: {error}") from error
    return _ordered(gold, [key for key in gold if key in keys])


# ------------------------------------------------------------------------------------------------- small readers


def _document(path: Path) -> Json:
    try:
        text = path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    try:
        return parse(text)
    except NoDocument as error:
        raise Uncaught(f"{path}: {error} (the original ends with a NullPointerException)") from error
    except BadUnicodeEscape as error:
        raise Uncaught(f"{path}: {error} (the original ends with a NumberFormatException)") from error


def _key(photos: Sequence[str | None]) -> str:
    return "".join(f"{_java(photo)}-" for photo in photos)


def _java(text: str | None) -> str:
    return "null" if text is None else text


def _object(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise JsonSyntax("an object was expected")
    return value


def _array(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise JsonSyntax("an array was expected")
    return value


def _text(value: Json) -> str | None:
    if not (value is None or isinstance(value, str)):
        raise JsonSyntax("text was expected")
    return value
