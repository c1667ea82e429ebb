"""What makes a stage's key beside its part's config (tests/conformance/test_keys.py): sources, constants, inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_runs import small_run

from sqa.run import pipeline
from sqa.run.pipeline import STAGES

OWN = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Config:
    step: int = 1

class Copier:
    def translate(self, source):
        yield from source
{method}
def build(config: Config):
    return Copier()
# {note}
"""
SAID = "\n    def fingerprint(self):\n        return 'the same'\n"


def keys(tmp_path: Path, **changes: object) -> dict[str, str]:
    """The keys of a small run."""
    return small_run(tmp_path, 3, **changes).keys


@pytest.mark.parametrize("in_file", [True, False])
@pytest.mark.parametrize("method", [SAID, ""])
def test_an_edited_part_of_ones_own_has_another_key(tmp_path, monkeypatch, method, in_file):
    """A part by its source, whatever it says of itself, in a file or in a module."""
    module, stored = f"own_copier_{in_file}_{bool(method)}", []
    file = tmp_path / f"{module}.py"
    monkeypatch.syspath_prepend(str(tmp_path))
    for note in ("one", "two", "one"):
        file.write_text(OWN.format(method=method, note=note), encoding="utf-8")
        stored.append(keys(tmp_path, translator=f"{file}:build" if in_file else f"{module}:build")["translate"])
    assert stored[0] == stored[2] != stored[1]


def test_the_config_of_a_part_that_says_nothing_is_in_its_key(tmp_path):
    file = tmp_path / "own_copier.py"
    file.write_text(OWN.format(method="", note=""), encoding="utf-8")
    first, two = (keys(tmp_path, translator={"name": f"{file}:build", "step": step}) for step in (1, 2))
    assert first["translate"] != two["translate"]


@pytest.mark.parametrize("constant", ["N_GUESSES", "VERSION", "BLOCK_SIZE"])
def test_a_constant_of_the_stages_is_in_their_keys(tmp_path, monkeypatch, constant):
    before = keys(tmp_path)
    monkeypatch.setattr(pipeline, constant, getattr(pipeline, constant) - 1)
    after = keys(tmp_path)
    assert all(before[stage] != after[stage] for stage in STAGES)


@pytest.mark.parametrize(
    ("change", "stages"),
    [
        ({"name": "u"}, ()),
        ({"seed": 1}, ()),  # of the resampling, which no stage does
        ({"translator": {"name": "doubles:build_translator", "k": 2}}, STAGES),
        ({"translator": "doubles:build_dropper"}, STAGES),
        ({"guesser": {"name": "doubles:build_guesser", "pages": ["France"]}}, STAGES[1:]),
        ({"buzzer": {"name": "doubles:build_buzzer", "threshold": 0.25}}, STAGES[2:]),
        ({"buzzer": "doubles:build_oracle"}, STAGES[2:]),
        ({"metrics": ["ew"]}, ("score",)),
        ({"metrics": ["bleu", "ew"]}, ("score",)),
        ({"answers": {"matching": "aliases"}}, ("score",)),
        ({"quality": [{"scores": {"file": "SCORES"}}]}, ()),  # kept by metric and text
    ],
)
def test_a_key_of_a_run_changes_the_stages_that_it_reaches(tmp_path, change, stages):
    if "quality" in change:
        (tmp_path / "scores").write_text("1\n2\n3\n", encoding="utf-8")
        change = {"quality": [{"scores": {"file": str(tmp_path / "scores")}}]}
    before, after = keys(tmp_path), keys(tmp_path, **change)
    assert tuple(stage for stage in STAGES if before[stage] != after[stage]) == stages


def test_other_questions_are_in_every_key(tmp_path):
    before = keys(tmp_path)
    after = keys(tmp_path, dataset={"name": str(tmp_path / "questions3.jsonl"), "limit": 2})
    assert all(before[stage] != after[stage] for stage in STAGES)
