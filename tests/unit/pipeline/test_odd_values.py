"""Malformed and hostile YAML and JSON give a one-line error with the place, never a traceback."""

import json

import pytest
from refusals import refused
from tables import tables_of

from sqa.cli import main as command
from sqa.core import ConfigError, DataError
from sqa.data.download import read_manifest
from sqa.files import json_document, json_lines, parse_json, parse_yaml, read_yaml, yaml_reader
from sqa.metrics.latency_log import LogOptions, score
from sqa.pipeline import contestant_from, load_run, run_from_mapping, translator_from

TABLES = tables_of(__file__)

BOMB = "a0: &a0 [x]\n" + "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)) + "\n"
ODD = TABLES["odd"] | {
    BOMB: "more than 100000 values with aliases expanded",
    "a: " + "{b: " * 5000 + "}" * 5000: "more than 60 deep",
    "a: 0x" + "f" * 5000: "more than 64 bits",
}


@pytest.mark.parametrize("text", ODD, ids=lambda text: text[:20])
def test_invalid_yaml_gives_a_one_line_error(tmp_path, text):
    path = tmp_path / "run.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        load_run(path)
    assert ODD[text] in str(raised.value) and str(raised.value).startswith(str(path))
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 400
    for read in (translator_from, contestant_from):
        refused(ConfigError, r"--(translator|guesser): not valid YAML", read, text)
    refused(DataError, "the manifest cannot be read", read_manifest, path)


@pytest.mark.parametrize("text", ["1: x", "null: x", "1.5: {}", "kind: [bm25]", "name: 5", "name: {a: 1}"])
def test_invalid_keys_and_types_are_config_problems(tmp_path, monkeypatch, capsys, text):
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    for words in ("run", "train guesser", "train buzzer", "train smt", "ablation", "reproduce fig8"):
        monkeypatch.setattr("sys.argv", ["sqa", *words.split(), str(path)])
        with pytest.raises(SystemExit) as ended:
            command()
        lines = capsys.readouterr().err.splitlines()
        assert ended.value.code == 2 and all(line.startswith("sqa: ") for line in lines)


def test_plain_yaml_with_aliases_is_read(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("a: &x {k: 1e-3, n: [1, 2]}\nb: *x\nc: {<<: *x, n: no}\nd: '2024-02-03'\n", encoding="utf-8")
    a = {"k": 0.001, "n": [1, 2]}
    assert read_yaml(path) == {"a": a, "b": a, "c": {"k": 0.001, "n": False}, "d": "2024-02-03"}
    assert parse_yaml("") is None and parse_yaml(f"[{2**63 - 1}]") == [2**63 - 1]


@pytest.mark.parametrize("text", ["x" * 5_000_000, "- x\n" * 20_000, "[" * 1_000_000])
def test_too_large_yaml_document_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader counts values before it has read the whole list."""
    monkeypatch.setattr(yaml_reader, "MAX_NODES", 10_000)
    refused(ValueError, "not valid YAML: .*(more than|deep)", parse_yaml, text)


ODD_JSON = TABLES["odd_json"] | {
    "[" * 200_000: "more than 100 deep",
    '{"a":' * 101 + "1" + "}" * 101: "more than 100 deep",
    "-" + "9" * 5000: "(5001 digits) has more than 64 bits",
}


@pytest.mark.parametrize("text", ODD_JSON, ids=lambda t: t[:9])
def test_invalid_json_gives_a_one_line_error(tmp_path, text):
    for given in (text, text.encode()):
        with pytest.raises(ValueError) as refused:
            parse_json(given)
        assert ODD_JSON[text] in str(refused.value)
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    for read in (json_document, lambda file: list(json_lines(file))):
        with pytest.raises(DataError, match="x.json") as raised:
            read(path)
        assert ODD_JSON[text] in str(raised.value) and "\n" not in str(raised.value) and len(str(raised.value)) < 400


def test_plain_json_is_read():
    """Values within the limits are unchanged. Bytes must be UTF-8 and may have a byte order mark."""
    text = json.dumps({"a": [1 << 62, -(1 << 63) + 1, 1.5e300, "\U0001f600 é", None], "b": {}})
    assert parse_json(text) == parse_json("\ufeff".encode() + text.encode()) == json.loads(text)
    deep = "[" * 100 + "]" * 100
    for text in (deep, f"[[], {{}}, {deep[1:-1]}]", '"' + "[" * 500 + '"', '"\\ud83d\\ude00"'):
        assert parse_json(text) == json.loads(text)
    refused(ValueError, "more than 100 deep", parse_json, "[" + deep + "]")
    for encoding in ("utf-16", "latin-1"):
        refused(ValueError, r"not UTF-8 \(byte 0x", parse_json, '{"a": "é"}'.encode(encoding))


@pytest.mark.parametrize("odd", [{"delays": [1, 1e308]}, {"source_length": 1e308}, {"reference_length": 5e-324}])
def test_numbers_that_overflow_a_latency_are_refused(tmp_path, odd):
    path, good = tmp_path / "instances.log", {"delays": [1, 2], "source_length": 2, "reference_length": 2}
    path.write_text(f"{json.dumps(good)}\n{json.dumps(good | odd)}\n")
    refused(DataError, r"instances\.log:2: ", score, str(path), LogOptions())


@pytest.mark.parametrize(("value", "problem"), TABLES["numbers_that_yaml_would_misread_are_refused"])
def test_numbers_that_yaml_would_misread_are_refused(value, problem):
    refused(ValueError, f"line 1, column 4: .*{problem}", parse_yaml, f"a: {value}")
    assert parse_yaml(f"a: '{value}'") == {"a": value}


def test_integers_of_a_config_have_64_bits():
    """Configs that are built in Python instead of YAML are checked as well."""
    plain = {"name": "x", "dataset": "mini-es", "translator": "fixed"}
    refused(ConfigError, "^seed: expected a whole number of 64 bits", run_from_mapping, {**plain, "seed": 2**63})
    assert run_from_mapping({**plain, "seed": 2**63 - 1}).seed == 2**63 - 1


def test_run_may_not_have_the_name_of_the_store():
    plain = {"name": "store", "dataset": "mini-es", "translator": "fixed"}
    refused(ConfigError, "^name: 'store' is the folder of stored results", run_from_mapping, plain)


def test_folder_as_an_output_file_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["sqa", "questions", "mini-es", "--output", "."])
    with pytest.raises(SystemExit) as ended:
        command()
    assert ended.value.code == 2 and ".: is a folder; give the name of a file in it" in capsys.readouterr().err


def test_unreachable_threshold_gives_a_warning(tmp_path, monkeypatch, capsys):
    config = "dataset: {name: mini-es, limit: 1}\ntranslator: fixed\nguesser: bm25\nmetrics: [ew]\n"
    for threshold, said in (("1.0e+18", True), ("0.01", False)):
        buzzer = f"buzzer: {{name: threshold, signal: score, threshold: {threshold}}}\n"
        (tmp_path / "c.yaml").write_text(config + buzzer, encoding="utf-8")
        monkeypatch.setattr("sys.argv", ["sqa", "run", str(tmp_path / "c.yaml"), "--runs", str(tmp_path)])
        with pytest.raises(SystemExit):
            command()
        assert ("no question is answered: the buzzer's highest score" in capsys.readouterr().err) == said
