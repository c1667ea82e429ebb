"""Requirements of tests are checked against pyproject.toml, the lock files and the machine."""

from collections.abc import Iterator
from pathlib import Path

import needs
import pytest
from refusals import refused


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


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("llm", "needs llm (openai): make extras"),
        ("schemathesis", "needs schemathesis: make ci"),
        ("bleurt-pytorch", "needs bleurt-pytorch: make ci"),
        ("pytest", "needs pytest: make setup"),
        ("docs", "needs docs (mkdocs-material): pip install 'sqa[docs]'"),
    ],
)
def test_missing_package_is_named_with_the_remedy(bare: None, name: str, reason: str) -> None:
    assert needs.missing(name) == reason


def test_present_package_has_no_reason() -> None:
    assert needs.missing("pytest") == needs.missing("zstd") == ""


def test_other_version_and_python_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "_extras", lambda: {"a": ["pytest>=900"], "b": ["pytest; python_version < '3'"]})
    assert needs.missing("a") == f"needs a (pytest): pytest>=900, not {pytest.__version__}"
    assert needs.missing("b") == 'needs b (pytest), which needs python_version < "3"'


def test_unknown_requirement_is_an_error() -> None:
    refused(ValueError, "'pytset' is no extra and no package", needs.missing, "pytset")


def test_mirror_must_be_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for value, present in ((tmp_path, True), (tmp_path / "absent", False), ("", False)):
        monkeypatch.setenv("SQA_MIRROR", str(value))
        needs.missing.cache_clear()
        assert (needs.missing("SQA_MIRROR") == "") is present
