"""Every extra can be installed, and every missing package is reported with the command that installs it."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from needs import require
from outcome import process
from packaging.requirements import Requirement
from tables import tables_of

import sqa
from sqa.core.packages import DISTRIBUTIONS, ELSEWHERE, install_command, installed_by, lacking

TABLES = tables_of(__file__)

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
# versions of the packages that extras name, as installed in three environments
LABS = json.loads((ROOT / "tests" / "golden" / "lab_environments.json").read_text(encoding="utf-8"))
SERVICES = tomllib.loads((ROOT / "services" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKED = ROOT / "data" / "models" / "pbmt-es-en" / "phrases.tsv.zst"
ROOMS = ("sqa", "smt", "guessers", "buzzers", "experiments", "services/sqa_services")
FOR_TESTS = {"all", "browser", "ci", "docs", "test"}
PINNED = {"bleurt", "comet", "simul"}  # extras that need transformers 4, numpy 1 or a fixed tqdm


def test_extra_all_lists_the_compatible_extras() -> None:
    [everything] = EXTRAS["all"]
    assert set(everything.removeprefix("sqa[").removesuffix("]").split(",")) == set(EXTRAS) - FOR_TESTS - PINNED


def test_both_distributions_have_one_version() -> None:
    named = {text for extra in EXTRAS.values() for text in extra if text.startswith("sqa-services")}
    assert SERVICES["version"] == sqa.__version__ and named == {f"sqa-services=={sqa.__version__}"}
    assert f"sqa=={sqa.__version__}" in SERVICES["dependencies"]


@pytest.mark.parametrize("lab", LABS)
def test_extras_keep_installed_versions(lab: str) -> None:
    """Only the extras bleurt and comet conflict with an environment that has transformers 5."""
    python, versions = LABS[lab]["python"], LABS[lab]["versions"]
    asked = {"core": PROJECT["dependencies"], "services": SERVICES["dependencies"]} | EXTRAS
    refused = set()
    for extra, texts in asked.items():
        for wanted in map(Requirement, texts):
            applies = wanted.marker is None or wanted.marker.evaluate({"python_version": python})
            if applies and wanted.name in versions and versions[wanted.name] not in wanted.specifier:
                refused.add((extra, wanted.name))
    old = [("bleurt", "transformers"), *([("comet", "setuptools")] if python < "3.13" else [])]
    assert refused == set(old if versions["transformers"] >= "5" else [])
    assert len(versions) > 15


@pytest.mark.slow
@pytest.mark.needs("SQA_PIP_DRY_RUN")
@pytest.mark.parametrize("end", ["lowest", "newest"])
@pytest.mark.parametrize("extra", sorted(set(EXTRAS) - FOR_TESTS))
def test_extra_works_at_both_ends_of_its_ranges(extra: str, end: str, tmp_path: Path) -> None:
    """Install an extra alone, and execute all imports of its packages and of the modules that need them."""
    wanted = [Requirement(text) for text in EXTRAS[extra] if not text.startswith("sqa[")]
    lowest = [re.sub(r">=([\d.]+).*", r"==\1", str(each).partition(";")[0]) for each in wanted]
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    python, pins = str(tmp_path / "env" / "bin" / "python"), lowest if end == "lowest" else []
    install = [python, "-m", "pip", "install", "--quiet", *pins, f"{ROOT}[{extra}]", f"{ROOT}/services"]
    done = subprocess.run(install, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    used = process(cwd=tmp_path, python=python, code="\n".join(imports_of(extra)) or "import sqa")
    assert used.code == 0, used.err


def imports_of(extra: str) -> list[str]:
    """Return all statements of this project that import a package of an extra, and imports of the modules with them."""
    imported = {distribution: package for package, distribution in DISTRIBUTIONS.items()}
    names = {Requirement(text).name for text in EXTRAS[extra]}
    packages = {imported.get(name, name.replace("-", "_")) for name in names} | {*ELSEWHERE}
    ours = {package for package in packages if installed_by(package)[0] == f"sqa[{extra}]"}
    found = set()
    for path in (path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(module):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if ours & {name.partition(".")[0] for name in names}:
                found.add(ast.unparse(node))
                if node in module.body and path.stem != "__init__":
                    found.add(
                        f"import {'.'.join(path.relative_to(ROOT).with_suffix('').parts).removeprefix('services.')}"
                    )
    return sorted(found)


def test_imports_of_an_extra_include_its_modules() -> None:
    assert imports_of("llm") == ["import openai", "import sqa.net.paced_http"]


# ------------------------------------------------------------------------------------------------- missing packages

PARTS = TABLES["parts"]
RUNS = "--runs FOLDER/runs"

CASES = [
    (package, re.sub(r"^RUN (\w+)$", rf"run FOLDER/\1.yaml {RUNS}", command).replace("PACKAGE", package), install)
    for packages, command, install in (
        line.replace("PACKED", repr(str(PACKED))).split(" | ") for line in TABLES["missing_packages"]
    )
    for package in packages.split()
]

READ_FIRST = {"ctranslate2": ["bert"]}  # extras whose absence is reported before that of the package

# Fork each command from one process that has done the common imports, which take some seconds.
CHILD = TABLES["child"]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the output and the exit status of each case."""
    folder = tmp_path_factory.mktemp("extras")
    for name, part in PARTS.items():
        text = f"dataset: {{name: mini-es, limit: 1}}\n{part}\n".replace("FOLDER", str(folder))
        (folder / f"{name}.yaml").write_text(text)
    cases = [("no_such_package", f"run FOLDER/done.yaml {RUNS}"), *(case[:2] for case in CASES)]
    (folder / "cases.json").write_text(json.dumps(cases).replace("FOLDER", str(folder)))
    variables = {**os.environ, "SQA_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", CHILD, str(folder / "cases.json")]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=600)
    first, *outputs, after = done.stderr.split("==\n")
    assert first.endswith("exit 0") and len(outputs) == len(CASES) and not after, done.stderr[-3000:]
    return outputs


@pytest.mark.parametrize("index", range(len(CASES)), ids=[f"{package} {command}" for package, command, _ in CASES])
def test_missing_package_is_reported_in_one_line(output: list[str], index: int) -> None:
    package, _, install = CASES[index]
    require(*READ_FIRST.get(package, ()))
    *lines, end = output[index].splitlines()
    absent = {other for other, _, how in CASES if how == install and find_spec(other) is None} | {package}
    expected = tuple(f" needs the Python package {name}: {install_command(install)}" for name in absent)
    matching = [line for line in lines if line.endswith(expected)]
    if "not computed: " in matching[-1]:  # the table omits the metric and gives the reason
        assert end == "exit 0"
    else:
        assert matching == lines[-1:] and matching[0].startswith("sqa: ") and end == "exit 2"
    assert "Traceback" not in output[index]


def test_unsupported_python_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed_by("comet") == ("sqa[comet]", "3.13")
    monkeypatch.setattr(sys, "version_info", (3, 13, 0))
    assert (
        str(lacking("comet", "COMET"))
        == "COMET needs the Python package comet, which needs a Python version below 3.13"
    )
    assert str(lacking("bert_score", "it")).endswith("pip install 'sqa[metrics]'")


def test_install_advice_comes_from_one_function() -> None:
    texts = {path: path.read_text(encoding="utf-8") for room in ROOMS for path in (ROOT / room).rglob("*.py")}
    saying = [path.name for path, text in texts.items() if re.search(r"(pip )?install [^\n]{0,9}\[", text)]
    assert saying == ["packages.py"]


@pytest.mark.parametrize(("package", "install"), TABLES["package_is_found_in_its_smallest_extra"])
def test_package_is_found_in_its_smallest_extra(package: str, install: str) -> None:
    assert installed_by(package)[0] == install


def test_packages_of_the_services_are_theirs() -> None:
    services = {package for package, install in ELSEWHERE.items() if install == "sqa[services]"}
    assert services <= {Requirement(text).name for text in SERVICES["dependencies"]}
