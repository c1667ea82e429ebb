"""`sqa config keys`: every key of every part is described."""

import pytest

from sqa.cli.config_keys import KINDS, keys_of


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_of_every_part_has_a_description(kind: str) -> None:
    for row in (row for name in KINDS[kind].names() for row in keys_of(kind, name)):
        assert all(row), row
