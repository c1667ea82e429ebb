"""A translator with a known language pair refuses questions of another pair unless the config allows it."""

import json

import pytest

from sqa.core import ConfigError, certain_pair, code_of, pair_of
from sqa.files import Store
from sqa.pipeline import Workshop, engine, load_with, parsed, run_from_mapping, to_mapping

WAITK = {"name": "waitk", "model": "es-en", "k": 3}
KNOWN = {  # config of a translator, and its source language
    "waitk": (WAITK, "es"),
    "prefix": ({"name": "prefix", "model": "pl-en"}, "pl"),
    "apertium": ({"name": "command", "command": ["apertium", "-u", "-d", "x-y", "spa-eng"]}, "es"),
}


def run_of(translator, dataset="mini-es"):
    mapping = {"name": "x", "dataset": {"name": dataset, "limit": 2}, "translator": translator, "metrics": ["al"]}
    return run_from_mapping(mapping)


def planned(translator, tmp_path, dataset="mini-es"):
    return Workshop(Store(tmp_path / "runs")).work(run_of(translator, dataset))


def refused(translator, tmp_path, dataset="mini-es"):
    """Return the error of a run, and check that a worker's plan has the same error and that nothing is written."""
    with pytest.raises(ConfigError) as here:
        engine.run(run_of(translator, dataset), Store(tmp_path / "runs"), progress=False)
    with pytest.raises(ConfigError) as on_worker:
        planned(translator, tmp_path, dataset)
    assert str(here.value) == str(on_worker.value) and not (tmp_path / "runs" / "store").exists()
    return str(here.value)


@pytest.mark.parametrize("language", ["es", "spa", "pl", "zz"])
@pytest.mark.parametrize("case", KNOWN)
def test_questions_of_another_language_are_refused(case, language, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: name)
    translator, source = KNOWN[case]
    path = tmp_path / "mine_es.jsonl"  # the file name does not set the language
    record = {"source": ["Nació en Lima ."], "reference": "Born in Lima.", "page": "Lima", "language": language}
    path.write_text("".join(json.dumps({**record, "id": i}) + "\n" for i in range(2)))
    if code_of(language) != source:
        message = refused(translator, tmp_path, str(path))
        wrong = f"question 0 of mine_es is in {code_of(language)!r}"
        named = f"translator {translator['name']!r} reads {source!r}, but {wrong}"
        assert named in message and "`other_languages: true`" in message
        translator = {**translator, "other_languages": True}
    planned(translator, tmp_path, str(path))


@pytest.mark.parametrize(
    ("languages", "says"),
    [(("en", "pl"), "writes 'pl', and answers must be in English")]
    + [(odd, "`languages` must be None or a pair of codes") for odd in ("es-en", ("es",), (1, 2), True, {})],
)
def test_own_language_pair_is_checked(languages, says, tmp_path):
    translator = f"class Mine:\n    languages = {languages!r}\n    def translate(self, source): yield from source\n"
    (tmp_path / "mine.py").write_text(translator)
    assert says in refused({"name": f"{tmp_path / 'mine.py'}:Mine"}, tmp_path)


def test_language_key_is_optional_and_in_no_stage_key(tmp_path):
    assert "other_languages" not in to_mapping(run_of(WAITK))["translator"]
    meant = {**WAITK, "other_languages": True}
    config = run_of(meant)
    assert run_from_mapping(to_mapping(config)) == config and config.translator.other_languages
    with pytest.raises(ConfigError, match="other_languages: expected true or false"):
        run_of({**WAITK, "other_languages": "yes"})
    (tmp_path / "x.yaml").write_text("dataset: {name: mini-pl}\ntranslator: {name: waitk, model: es-en}\n")
    assert load_with(tmp_path / "x.yaml", parsed(["other_languages=true"])).translator.other_languages
    assert planned(WAITK, tmp_path).stages == planned(meant, tmp_path).stages


def test_language_codes_are_recognised():
    names = "spa_Latn spa es_XX es-ES Spanish ES pol_Latn ja jpn zho_Hans ace_Latn zz".split()
    assert [code_of(name) for name in names] == "es es es es es es pl ja ja zh ace zz".split()
    assert certain_pair("ROMANCE", "en") == (None, "en") and certain_pair("roa", None) is None
    assert pair_of({"pair": "spa-eng"}) == ("es", "en") and pair_of({"training": {"pair": "fi-en"}}) == ("fi", "en")
