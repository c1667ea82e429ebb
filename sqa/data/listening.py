"""Convert question sets of other projects for `sqa data listen` (keys: sqa/data/own_questions.py).

The target language of these sets becomes the source language here, and questions are answered in English:

    askqe   {id, en, questions, answers}, with lists written by a language model, and {id, en, LANGUAGE}:
            QA/*/en-*.jsonl and data/processed/*.jsonl of github.com/dayeonki/askqe at 7e4c226
    treqa   a list of {question, answer} for each line of two texts, as written by treqa/generate_qa.py of
            github.com/sweta20/treqa at 03a32cc
    mcif    questions by id as `prompt_en`, their answers, and the talks in another language: long_fixedprompt and
            MCIF.long.*.ref.xml of FBK-MT/MCIF, written by dataset_build/testset_generator.py of
            github.com/hlt-mt/mcif at f195423, and read by scripts/build_mcif_golden.py of
            github.com/NorthernLightx/SpectraRAG at fb55e1b
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from sqa.core import answers, quizbowl
from sqa.core.errors import ConfigError, DataError
from sqa.core.packages import need
from sqa.files import records
from sqa.files.records import parse_json

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

LONGEST_LIST = 100_000  # characters of a list of texts that a language model wrote
LARGEST_XML = 1 << 26  # bytes
PROMPT = "Answer the following question concisely given the English content: "  # MCIF's prefix of each question
HEARD_TYPES = ("A", "AV")  # MCIF's types of questions that can be answered from the audio


class Item(NamedTuple):
    """A question of another project's set; it is left out if the question or its answer is unusable."""

    id: str
    language: str
    source: Sequence[str]  # sentences
    reference: Sequence[str]
    question: object
    answer: object


def listen(form: str, files: Sequence[Path], language: str) -> None:
    """Run `sqa data listen`: print records, and on stderr the number of questions left out."""
    if form not in _FORMS:
        raise ConfigError(f"{form}: unknown form; known: {', '.join(_FORMS)}")
    read, names = _FORMS[form]
    if len(files) != len(names):
        raise ConfigError(f"{form}: expected {len(names)} files, {' '.join(names)}, got {len(files)}")
    left_out = 0
    for item in read(*files, language):
        question, answer = (" ".join(t.split()) if isinstance(t, str) else "" for t in (item.question, item.answer))
        if not question or not quizbowl.bare(answer) or answers.unwritable(question + answer):
            left_out += 1
            continue
        record = {"id": item.id, "language": item.language, "source": item.source, "reference": item.reference}
        print(json.dumps({**record, "question": question, "answers": [answer]}, ensure_ascii=False))
    print(f"{left_out} questions left out: no question or no answer in words", file=sys.stderr)


def _askqe(asked: Path, pairs: Path, language: str) -> Iterator[Item]:
    texts = {records.text_of(f"{pairs}:{n}", "id", row.get("id")): row for n, row in records.numbered_lines(pairs)}
    for number, row in records.numbered_lines(asked):
        where, id = f"{asked}:{number}", row.get("id")
        pair = texts.get(id) if isinstance(id, str) else None
        languages = [key for key in pair or () if key not in ("id", "en")]
        if pair is None or len(languages) != 1 or language not in ("", languages[0]):
            raise DataError(f"{pairs}: id {repr(id)[:60]} of {where}: expected a record of id, en and one language")
        source, reference = ([records.text_of(f"{pairs}: {id}", key, pair.get(key))] for key in (languages[0], "en"))
        if quizbowl.spelling(reference[0]) != quizbowl.spelling(records.text_of(where, "en", row.get("en"))):
            raise DataError(f"{where}: id {id} has another English text in {pairs}")
        questions, right = (_texts(records.text_of(where, key, row.get(key))) for key in ("questions", "answers"))
        for n, question in enumerate(questions):
            answer = right[n] if len(right) == len(questions) else None
            yield Item(f"{id}#{n}", languages[0], source, reference, question, answer)


def _texts(written: str) -> list[Any]:
    """Return the items of a list written in JSON or Python; [None] for any other text."""
    for parse in (parse_json, ast.literal_eval) if len(written) <= LONGEST_LIST else ():
        try:
            texts = parse(written)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(texts, list):
            return texts
    return [None]


def _treqa(asked: Path, source: Path, reference: Path, language: str) -> Iterator[Item]:
    if not language:
        raise ConfigError("--language: needed for treqa, whose files do not name the language")
    rows = [list(records.lines(path)) for path in (asked, source, reference)]
    if len({len(lines) for lines in rows}) != 1:
        raise DataError(f"{asked}: expected as many lines as in {source} and {reference}, got {[*map(len, rows)]}")
    for number, (line, *texts) in enumerate(zip(*rows, strict=True), 1):
        try:
            pairs = parse_json(line)
        except ValueError as error:
            raise DataError(f"{asked}:{number}: {error}") from error
        if not isinstance(pairs, list) or not all(isinstance(pair, dict) for pair in pairs):
            raise DataError(f"{asked}:{number}: expected a list of objects with question and answer, got {line[:60]}")
        sentence, translation = ([text] for text in texts)
        for n, pair in enumerate(pairs):
            yield Item(f"{number}#{n}", language, sentence, translation, pair.get("question"), pair.get("answer"))


def _mcif(prompts: Path, english: Path, translated: Path, language: str) -> Iterator[Item]:
    asked = _prompts(prompts)
    _, english_talks = _talks(english, "en")
    code, talks = _talks(translated, language)
    texts: dict[str, tuple[list[str], list[str]]] = {}
    for sample in talks:
        if sample.get("task") == "TRANS":
            paths = ("metadata/transcript", "reference")
            spoken, written = ((sample.findtext(path) or "").split("\n") for path in paths)
            if len(spoken) != len(written) or not all(line.strip() for line in (*spoken, *written)):
                raise DataError(f"{translated}: {sample.get('iid')}: transcript and reference are not line for line")
            texts[_talk(translated, sample)] = written, spoken
    for sample in english_talks:
        if sample.get("task") == "QA" and sample.get("qa_type") in HEARD_TYPES:
            id, talk = sample.get("id", ""), _talk(english, sample)
            if talk not in texts:
                raise DataError(f"{translated}: no translation of {talk}, which question {id} of {english} is about")
            if not asked.get(id, "").startswith(PROMPT):
                raise DataError(f"{prompts}: {id}: expected a prompt that begins {PROMPT!r}, got {asked.get(id)!r:.60}")
            question = asked[id].removeprefix(PROMPT)
            yield Item(sample.get("iid", id), code, *texts[talk], question, sample.findtext("reference"))


def _prompts(path: Path) -> dict[str, str]:
    """Return a dict that maps the id of each question to its English prompt."""
    need("pyarrow", "the prompts of MCIF, in Parquet,")
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(path, columns=["id", "prompt_en"])
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path}: cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    if table.column_names != ["id", "prompt_en"]:
        raise DataError(f"{path}: expected the columns id and prompt_en, got {', '.join(table.column_names)}")
    return {str(row["id"]): str(row["prompt_en"]) for row in table.to_pylist()}


def _talks(path: Path, language: str) -> tuple[str, list[Element]]:
    """Return the language and the samples of the long task of an MCIF file.

    Raises DataError if the file has another language than `language`; "" accepts all languages.
    """
    from xml.etree import ElementTree

    try:
        text = path.read_bytes()[: LARGEST_XML + 1]
        if len(text) > LARGEST_XML or b"<!DOCTYPE" in text:
            raise DataError(f"{path}: has a DOCTYPE or is larger than {LARGEST_XML >> 20} MiB, unlike MCIF's files")
        tasks = [task for task in ElementTree.fromstring(text).iter("task") if task.get("track") == "long"]
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ElementTree.ParseError as error:
        raise DataError(f"{path}: not XML ({error}); unpack a .gz first") from error
    if len(tasks) != 1 or language not in ("", code := tasks[0].get("text_lang", "")):
        raise DataError(f"{path}: expected one long task{f' in {language!r}' if language else ''}")
    return code, list(tasks[0].iter("sample"))


def _talk(path: Path, sample: Element) -> str:
    """Return the name of a talk, shared by its audio and video."""
    name = sample.findtext("audio_path") or sample.findtext("video_path")
    if not name:
        raise DataError(f"{path}: sample {sample.get('id')} names no audio and no video")
    return PurePosixPath(name).stem


_FORMS: Mapping[str, tuple[Callable[..., Iterator[Item]], tuple[str, ...]]] = {
    "askqe": (_askqe, ("QA.jsonl", "PAIRS.jsonl")),
    "treqa": (_treqa, ("QA.jsonl", "SOURCE.txt", "REFERENCE.txt")),
    "mcif": (_mcif, ("PROMPTS.parquet", "EN.ref.xml", "XX.ref.xml")),
}
