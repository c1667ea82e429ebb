"""docs/api.md and docs/contracts.md list every public name, and the docstrings have all sections and valid examples."""

import ast
import dataclasses
import doctest
import inspect
import re
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

import sqa
from sqa.core import ROOT, types

PAGES = ("api.md", "contracts.md")
NAMES = [name for page in PAGES for name in re.findall(r"^::: (\S+)$", (ROOT / "docs" / page).read_text(), re.M)]
SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises|Examples):$", re.MULTILINE)

every_name = pytest.mark.parametrize("name", NAMES)


def entry(name: str) -> Any:
    """Return the object with the given dotted path, such as "sqa.core.types.Guess"."""
    return resolve_name(":".join(name.rsplit(".", 1)))


def sections(documented: Any) -> dict[str, list[str]]:
    """Return a dict that maps each section of a docstring to the names that it describes."""
    parts = SECTION.split(inspect.cleandoc(documented.__doc__ or ""))
    bodies = zip(parts[1::2], parts[2::2], strict=True)
    return {section: re.findall(r"^ {4}(\w+): ", body, re.MULTILINE) for section, body in bodies}


def lacking(documented: Any) -> Iterator[str]:
    """Yield the problems of the docstring of a public function or class."""
    if "Examples" not in sections(documented):
        yield "no Examples"
    if not inspect.isclass(documented):
        yield from of_function(documented)
        if "Raises" not in sections(documented):
            yield "no Raises"
        return
    is_record = dataclasses.is_dataclass(documented)
    fields = (
        [field.name for field in dataclasses.fields(documented)] if is_record else documented.__dict__.get("_fields")
    )
    described = sections(documented).get("Args") or sections(documented).get("Attributes")
    if fields and described != list(fields):
        yield f"describes {described}, has {list(fields)}"
    for name, member in vars(documented).items():
        plain = getattr(member, "__func__", member)
        if name.startswith("_") or name in (fields or ()):
            continue
        if inspect.isfunction(plain):
            yield from (f"{name}: {problem}" for problem in of_function(plain))
        elif hasattr(type(member), "__get__") and not member.__doc__:
            yield f"{name}: no docstring"


def of_function(function: Any) -> Iterator[str]:
    """Yield the problems of the docstring of a function or method."""
    found = sections(function)
    parameters = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    if parameters != found.get("Args", []):
        yield f"describes {found.get('Args')}, takes {parameters}"
    if inspect.signature(function).return_annotation not in (None, "None") and not {"Returns", "Yields"} & found.keys():
        yield "no Returns"
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    raised = {
        node.exc.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name)
    }
    if missing := raised - {*found.get("Raises", ())}:
        yield f"raises {', '.join(sorted(missing))} unmentioned"


def test_reference_lists_every_public_name() -> None:
    public = {f"sqa.api.{name}" for name in sqa.__all__}
    defined = (name for name, value in vars(types).items() if getattr(value, "__module__", "") == types.__name__)
    public |= {f"{types.__name__}.{name}" for name in defined if not name.startswith("_")}
    assert public - {*NAMES} == set() and len(NAMES) == len({*NAMES})


@every_name
def test_docstring_has_its_sections(name: str) -> None:
    assert list(lacking(entry(name))) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one folder for all examples, so that they reuse each other's runs."""
    return tmp_path_factory.mktemp("reference")


@every_name
def test_example_of_docstring_runs(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    documented = entry(name)
    names = {**vars(import_module(documented.__module__)), "sqa": sqa}
    examples = doctest.DocTestParser().get_doctest(inspect.getdoc(documented) or "", names, name, None, None)
    printed: list[str] = []
    assert examples.examples and not doctest.DocTestRunner().run(examples, out=printed.append).failed, "".join(printed)


def test_missing_sections_are_found() -> None:
    """The checks find a parameter, a result and an error without a description."""

    def halve(number: int, digits: int = 0) -> float:
        """Halve.

        Args:
            number: A number.
        """
        if digits:
            raise ValueError(digits)
        return number / 2

    assert list(lacking(halve)) == [
        "no Examples",
        "describes ['number'], takes ['number', 'digits']",
        "no Returns",
        "raises ValueError unmentioned",
        "no Raises",
    ]
