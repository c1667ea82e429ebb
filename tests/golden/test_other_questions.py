"""Conversion of the question files of AskQE, TREQA and MCIF for the listener.

The question and answer in MCIF's format are from MCIF (FBK-MT/MCIF, CC BY 4.0). All other texts are made up, in the
formats of the files that sqa/data/listening.py names.
"""

import json
from pathlib import Path

import jsonschema_rs
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from sqa.cli import app
from sqa.core.paths import DATA
from sqa.core.types import Asked
from sqa.data.datasets import load_questions

SCHEMA = json.loads((DATA / "listening" / "schema.json").read_text(encoding="utf-8"))
PROMPT = "Answer the following question concisely given the English content: "
TALK = "<audio_path>ICWfTnUMio.wav</audio_path><video_path>ICWfTnUMio.mp4</video_path>"
ANSWER = "They are trained on large-scale web-crawled data."
FILES = {
    "askqe": {
        "qa.jsonl": "".join(
            json.dumps({"id": id, "en": english, "questions": questions, "answers": answers}) + "\n"
            for id, english, questions, answers in (
                (
                    "A_1:2",
                    "'cause her fever began on 12 March",
                    '["When did it begin?", "Who?"]',
                    '["12 March", "her"]',
                ),
                (
                    "A_1:3",
                    "drink lots of water",
                    "['What should you drink?']",
                    "['lots of\\nwater']",
                ),  # a Python list, not JSON
                ("A_1:4", "is it over?", '["Is it over?", "Why?"]', '["Yes"]'),  # one answer is missing
                ("A_1:5", "is it over?", '["How many patients aged', '["ten"]'),  # cut off
                ("A_1:6", "it hurts here", '["Where?", "What?"]', '["", null]'),
            )
        ),
        "pairs.jsonl": "".join(
            json.dumps({"id": id, "en": english, "es": spanish}) + "\n"
            for id, english, spanish in (
                ("A_1:2", "cause her fever began on 12 March", "porque la fiebre le empezó el 12 de marzo"),
                ("A_1:3", "drink lots of water", "beba mucha agua"),
                ("A_1:4", "is it over?", "¿ya pasó?"),
                ("A_1:5", "is it over?", "¿ya pasó?"),
                ("A_1:6", "it hurts here", "duele aquí"),
            )
        ),
    },
    "treqa": {
        "qa.jsonl": '[{"question": "Who wrote it?", "answer": "Ana"}, {"question": "When?", "answer": "1990"}]\n[]\n',
        "src.pt": "A Ana escreveu-o em 1990.\nChove.\n",
        "ref.en": "Ana wrote it in 1990.\nIt rains.\n",
    },
    "mcif": {
        "prompts.parquet": {"0": PROMPT + "What are the main data sources for language models?", "7": PROMPT + "Who?"},
        "en.xml": f"""<?xml version='1.0' encoding='utf-8'?>
<testset name="MCIF1.2"><task track="long" text_lang="en">
  <sample id="0" iid="QA_13_135" task="QA" qa_type="AV" qa_origin="Transcript">{TALK}
    <reference>{ANSWER}</reference></sample>
  <sample id="7" iid="QA_13_140" task="QA" qa_type="NA" qa_origin="General">{TALK}
    <reference>Not answerable.</reference></sample>
  <sample id="8" iid="QA_13_141" task="QA" qa_type="V" qa_origin="General">{TALK}<reference>X</reference></sample>
</task></testset>""",
        "de.xml": f"""<testset name="MCIF1.2"><task track="long" text_lang="de">
  <sample id="1" iid="TRANS_13" task="TRANS">{TALK}<reference>Hallo zusammen.
Sprachmodelle lernen aus dem Netz.</reference>
    <metadata><transcript>Hello everyone.
Language models learn from the web.</transcript></metadata></sample>
</task></testset>""",
    },
}
LANGUAGE = {"treqa": ["--language", "pt"]}
EXPECTED = {
    "askqe": [
        ("A_1:2#0", "es", "porque la fiebre le empezó el 12 de marzo", Asked("When did it begin?", ("12 March",))),
        ("A_1:2#1", "es", "porque la fiebre le empezó el 12 de marzo", Asked("Who?", ("her",))),
        ("A_1:3#0", "es", "beba mucha agua", Asked("What should you drink?", ("lots of water",))),
    ],
    "treqa": [
        ("1#0", "pt", "A Ana escreveu-o em 1990.", Asked("Who wrote it?", ("Ana",))),
        ("1#1", "pt", "A Ana escreveu-o em 1990.", Asked("When?", ("1990",))),
    ],
    "mcif": [
        (
            "QA_13_135",
            "de",
            "Hallo zusammen. Sprachmodelle lernen aus dem Netz.",
            Asked("What are the main data sources for language models?", (ANSWER,)),
        )
    ],
}
LEFT_OUT = {"askqe": 5, "treqa": 0, "mcif": 0}


def write(folder: Path, form: str, **changed: str) -> list[str]:
    paths = []
    for name, content in FILES[form].items():
        path = folder / name
        if isinstance(content, dict):
            parquet.write_table(pa.table({"id": list(content), "prompt_en": list(content.values())}), path)
        else:
            path.write_text(changed.get(path.stem, content), encoding="utf-8")
        paths.append(str(path))
    return paths


@pytest.mark.parametrize("form", list(FILES))
def test_questions_of_other_datasets_are_converted(form: str, tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["data", "listen", form, *write(tmp_path, form), *LANGUAGE.get(form, [])])
    assert ran.exit_code == 0, ran.output
    assert ran.stderr.startswith(f"{LEFT_OUT[form]} questions left out")
    path = tmp_path / "found.jsonl"
    path.write_text(ran.stdout, encoding="utf-8")
    assert all(jsonschema_rs.is_valid(SCHEMA, json.loads(line)) for line in ran.stdout.splitlines())
    assert [(q.id, q.language, q.text, q.asked) for q in load_questions(str(path))] == EXPECTED[form]


TWO_TALKS = FILES["mcif"]["de.xml"].replace("Hello everyone.\n", "")
WRONG = [
    ("askqe", {"pairs": ""}, [], "pairs.jsonl: id 'A_1:2' of "),
    ("askqe", {"pairs": FILES["askqe"]["pairs.jsonl"].replace("fever", "cough")}, [], "has another English text"),
    ("treqa", {}, [], "--language: needed for treqa"),
    ("treqa", {"src": "Chove.\n"}, ["--language", "pt"], "got [2, 1, 2]"),
    ("treqa", {"qa": '{"question": "Who?"}\n[]\n'}, ["--language", "pt"], "qa.jsonl:1: expected a list of objects"),
    ("mcif", {}, ["--language", "it"], "de.xml: expected one long task in 'it'"),
    ("mcif", {"de": TWO_TALKS}, [], "TRANS_13: transcript and reference are not line for line"),
    ("mcif", {"de": "\x1f\x8b"}, [], "not XML"),
    ("mcif", {"en": '<!DOCTYPE t [<!ENTITY a "b">]><testset/>'}, [], "has a DOCTYPE"),
]


@pytest.mark.parametrize(("form", "changed", "options", "said"), WRONG)
def test_invalid_file_gives_a_one_line_error(
    form: str, changed: dict[str, str], options: list[str], said: str, tmp_path: Path
) -> None:
    ran = CliRunner().invoke(app, ["data", "listen", form, *write(tmp_path, form, **changed), *options])
    assert ran.exit_code != 0 and said in str(ran.exception) and "\n" not in str(ran.exception)
