"""A translator that knows its pair is not given questions of another one, unless that is meant."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from sqa.core.errors import ConfigError
from sqa.data.languages import certain_pair, code_of, pair_of
from sqa.files.store import Store
from sqa.run import pipeline
from sqa.run.blocks import Workshop
from sqa.run.config import RunConfig, run_from_mapping, to_mapping
from sqa.run.overrides import load_with, parsed

KNOWN = {  # a translator's config -> its source language
    "waitk": ({"name": "waitk", "model": "es-en", "k": 3}, "es"),
    "prefix": ({"name": "prefix", "model": "pl-en"}, "pl"),
    "apertium": ({"name": "command", "command": ["apertium", "-u", "-d", "x-y", "spa-eng"]}, "es"),
    "moses": ({"name": "moses", "source_language": "spa"}, "es"),
}
CLASS = """
from dataclasses import dataclass
@dataclass(frozen=True)
class Config:
    pass
class Mine:
    languages = {languages}
    def translate(self, source):
        yield from source
def build(config: Config):
    return Mine()
"""


def run_of(translator: dict[str, Any], dataset: str) -> RunConfig:
    mapping = {"name": "x", "dataset": {"name": dataset, "limit": 2}, "translator": translator, "metrics": ["al"]}
    return run_from_mapping(mapping)


def refused(translator: dict[str, Any], dataset: str, tmp_path: Path) -> str:
    """What a run is refused with, here and by what plans it on a worker; nothing was written."""
    config, store = run_of(translator, dataset), Store(tmp_path / "runs")
    with pytest.raises(ConfigError) as here:
        pipeline.run(config, store, progress=False)
    with pytest.raises(ConfigError) as on_worker:
        Workshop(store).plan(config)
    assert str(here.value) == str(on_worker.value) and not list(tmp_path.rglob("*.arrow"))
    assert not (tmp_path / "runs" / "store").exists()
    return str(here.value)


def questions_in(language: str, folder: Path) -> str:
    path = folder / "mine_es.jsonl"  # whose name says nothing
    record = {"source": ["Nació en Lima .", "¿ Quién es ?"], "reference": "Born in Lima. Who is it?", "page": "Lima"}
    path.write_text("".join(json.dumps({**record, "id": i, "language": language}) + "\n" for i in range(2)))
    return str(path)


@pytest.mark.parametrize("language", ["es", "spa", "pl", "ja", "zz"])
@pytest.mark.parametrize("case", KNOWN)
def test_questions_of_another_language_are_refused_by_name(
    case: str, language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: name)
    if case == "moses":
        pytest.importorskip("sacremoses")
    translator, source = KNOWN[case]
    dataset = questions_in(language, tmp_path)
    if code_of(language) == source:
        Workshop(Store(tmp_path / "runs")).plan(run_of(translator, dataset))
        return
    message = refused(translator, dataset, tmp_path)
    assert (
        f"translator {translator['name']!r} reads {source!r}, but question 0 of mine_es is in {language!r}" in message
    )
    assert "`other_languages: true`" in message
    meant = {**translator, "other_languages": True}
    Workshop(Store(tmp_path / "runs")).plan(run_of(meant, dataset))


def test_a_translator_into_another_language_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(CLASS.format(languages=("en", "pl")))
    assert "writes 'pl', and answers are looked for in English" in refused(
        {"name": f"{path}:build"}, "mini-en", tmp_path
    )


@pytest.mark.parametrize("languages", ['"es-en"', '("es",)', "(1, 2)", "True", "{}"])
def test_what_is_no_pair_is_told(languages: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(CLASS.format(languages=languages))
    message = refused({"name": f"{path}:build"}, "mini-es", tmp_path)
    assert message.startswith("translator 'mine.py:build': `languages` must be None or a pair of codes such as")


def test_the_key_is_written_only_where_it_is_given(tmp_path: Path) -> None:
    plain = {"name": "waitk", "model": "es-en", "k": 3}
    assert "other_languages" not in to_mapping(run_of(plain, "mini-es"))["translator"]
    meant = run_of({**plain, "other_languages": True}, "mini-es")
    assert run_from_mapping(to_mapping(meant)) == meant and meant.translator.other_languages
    with pytest.raises(ConfigError, match="translator.other_languages: expected true or false, got"):
        run_of({**plain, "other_languages": "yes"}, "mini-es")
    (tmp_path / "x.yaml").write_text("dataset: {name: mini-pl}\ntranslator: {name: waitk, model: es-en}\n")
    assert load_with(tmp_path / "x.yaml", parsed(["other_languages=true"])).translator.other_languages


def test_a_stage_has_the_key_that_it_had(tmp_path: Path) -> None:
    """Who means another language finds the same results as before there was such a key."""
    config = run_of({"name": "waitk", "model": "es-en", "k": 3}, "mini-es")
    meant = dataclasses.replace(config, translator=dataclasses.replace(config.translator, other_languages=True))
    shop = Workshop(Store(tmp_path))
    assert shop.plan(config).stages == shop.plan(meant).stages


def test_codes() -> None:
    names = "spa_Latn spa es_XX es-ES Spanish ES pol_Latn ja jpn zho_Hans ace_Latn zz".split()
    assert [code_of(name) for name in names] == "es es es es es es pl ja ja zh ace zz".split()
    assert certain_pair("ROMANCE", "en") == (None, "en") and certain_pair("roa", None) is None
    assert pair_of({"pair": "spa-eng"}) == ("es", "en") and pair_of({"training": {"pair": "fi-en"}}) == ("fi", "en")
