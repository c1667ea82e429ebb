"""Requirements of tests are checked against pyproject.toml, the lock files and the machine."""

from collections.abc import Iterator

import needs
import pytest
from refusals import refused
from tables import tables_of

TABLES = tables_of(__file__)


@pytest.fixture(autouse=True)
def nothing_cached() -> Iterator[None]:
    needs.missing.cache_clear()
    yield
    needs.missing.cache_clear()


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate an environment without packages."""

    def absent(name: str) -> str:
        raise needs.PackageNotFoundError(name)

    monkeypatch.setattr(needs, "version", absent)


@pytest.mark.parametrize(("name", "reason"), TABLES["missing_package_is_named_with_the_remedy"])
def test_missing_package_is_named_with_the_remedy(bare: None, name: str, reason: str) -> None:
    assert needs.missing(name) == reason


def test_unknown_requirement_is_an_error() -> None:
    refused(ValueError, "'pytset' is no extra and no package", needs.missing, "pytset")
