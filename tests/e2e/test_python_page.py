"""docs/python.md is run as it stands; `import sqa` loads nothing; the names it promises are typed."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sqa.core.errors import ConfigError
from sqa.core.paths import ROOT

PAGE = ROOT / "docs" / "python.md"


def test_the_page_of_the_python_interface(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas", reason="data frames")
    monkeypatch.chdir(tmp_path)
    text = re.sub(r"^```.*$", "", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    page = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    assert len(page.examples) > 15
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(page, out=said.append)
    assert not result.failed, "".join(said)
    assert (tmp_path / "ew_over_k.png").stat().st_size > 5_000


def test_import_sqa_loads_nothing() -> None:
    code = (
        "import sys, sqa; print(sorted({'numpy', 'torch', 'yaml', 'sqa.api', 'sqa.run'} & set(sys.modules)), sqa.run)"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.startswith("[] <module 'sqa.run'")


def test_what_is_not_there_is_said_at_once(tmp_path: Path) -> None:
    import sqa

    with pytest.raises(ConfigError, match="neither a file nor the name of a bundled config, did you mean 'mini_es"):
        sqa.run("mini_es_wait6")
    with pytest.raises(ConfigError, match="is not the folder of a finished run"):
        sqa.load(tmp_path)
    with pytest.raises(ConfigError, match="no bundled buzzer was trained for it"):
        sqa.Experiment(translators=["fixed"], guessers=["tfidf"], runs=tmp_path).run()
    with pytest.raises(ConfigError, match="at least one translator"):
        sqa.Experiment(translators=[], guessers=["bm25"], runs=tmp_path).run()
    with pytest.raises(AttributeError, match="has no attribute 'walk'"):
        sqa.walk  # noqa: B018
