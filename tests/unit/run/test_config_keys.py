"""`sqa config keys`: what a part of a config takes, read from the code itself."""

from __future__ import annotations

import pytest

from sqa.cli.keys import KINDS, keys_of
from sqa.core.errors import ConfigError


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in KINDS[kind].names()])
def test_every_key_of_every_part_has_its_meaning(kind: str, name: str) -> None:
    for row in keys_of(kind, name):
        assert row.meaning and row.type and row.default, row


def test_the_rows_of_wait_k() -> None:
    rows = {row.key: row for row in keys_of("translator", "waitk")}
    assert (rows["model"].default, rows["k"].default, rows["emission_rate"].default) == ("required", "full", "1.0")
    assert rows["k"].type == "a whole number or text" and rows["beam"].default == "1"


def test_unknown_kinds_and_names() -> None:
    with pytest.raises(ConfigError, match="unknown kind 'gueser', did you mean 'guesser'"):
        keys_of("gueser", "bm25")
    with pytest.raises(ConfigError, match="unknown guesser 'bm52', did you mean 'bm25'"):
        keys_of("guesser", "bm52")
