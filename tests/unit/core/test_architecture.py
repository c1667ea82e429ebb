"""The layers of ARCHITECTURE.md, checked in the source text and in a fresh interpreter."""

import ast
import gc
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tables import tables_of

from sqa.core import GUESSERS, ROOT, TRANSLATORS

PACKAGES = ("sqa", "smt", "guessers", "buzzers", "experiments")  # the core
SERVICES = "sqa_services"  # the distribution in services/
HEAVY = {"torch", "transformers", "tensorflow", "numba"}
OF_TRAININGS = {"sqa.training.trainer"}  # imported only by training code
KERNELS = {"sqa.diagnose.hmm_kernel"}  # compiled loops, imported at first use
OF_ENDPOINTS = {"sqa.net.paced_http"}  # needs the extra llm; imported when an endpoint is opened
LOADERS = {"sqa.files.devices", "sqa.files.hub"}  # torch or transformers, imported when a model is loaded
MODULES_PER_FOLDER = 15
LINES_PER_FUNCTION = 60
CONFIGS = 30
SKIPPED = 8  # modules with a `fmt: skip` comment
MODULES_OF_A_RUN, LINES_OF_A_RUN = 44, 4870  # the project's code that README's first example loads

# folder -> the folders that it may import besides itself; `sqa` alone is the package's __init__ with its version
SQA = {f"sqa.{room}" for room in "core results data files metrics net pipeline questions diagnose training".split()}
ARROWS: dict[str, set[str]] = {
    room: {one for name in names for one in (SQA if name == "SQA" else {name})}
    for room, names in tables_of(__file__)["arrows"].items()
}
CORE = {room for room in ARROWS if not room.startswith(SERVICES)}
ARROWS["experiments"] = CORE - {"sqa.cli"}
ARROWS["sqa_services.cli"] = {*ARROWS} - {"experiments"}
# Modules that a folder may name in a string ("module:attribute" or "package.module"), imported when called.
NAMED: dict[str, set[str]] = {
    "sqa": {"sqa.api"},  # the public interface
    "sqa.metrics": {"sqa.questions"},  # metrics of runs
    "sqa.cli": {*CORE, "experiments"},
}
REGISTRIES = {"sqa.core.registry": {*CORE}, "sqa_services.parts": {*ARROWS}}  # modules that register the parts


@cache
def modules() -> dict[str, Path]:
    """Return the file of each module, by dotted name."""
    paths = {}
    for package in (*(ROOT / name for name in PACKAGES), ROOT / "services" / SERVICES):
        for path in sorted(package.rglob("*.py")):
            name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
            paths[name.removesuffix(".__init__")] = path
    return paths


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True, scope="module")
def no_garbage_collection() -> Iterator[None]:
    """Disable the garbage collector, which would scan the millions of cached nodes repeatedly."""
    gc.disable()
    yield
    parsed.cache_clear()
    gc.enable()


def imported(path: Path) -> Iterator[str]:
    """Yield every module that a file imports, at module level or inside a function, and every imported name."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def imports(name: str) -> frozenset[str]:
    """Return the project's modules that a module imports; for `from package import module`, only `package.module`."""
    imported_modules = {other for other in imported(modules()[name]) if other in modules()}
    faces = {other for other in imported_modules if modules()[other].name == "__init__.py"}
    for node in ast.walk(parsed(modules()[name])):
        if isinstance(node, ast.ImportFrom) and node.module in faces:
            if all(f"{node.module}.{alias.name}" in modules() for alias in node.names):
                faces.discard(node.module)
                imported_modules.discard(node.module)
    return frozenset(imported_modules - {name})


@cache
def strings(name: str) -> frozenset[str]:
    """Return the project's modules that string literals of a module name: "module:attribute" or "package.module"."""
    tree = parsed(modules()[name])
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in prose)
    matches = (re.fullmatch(r"(\w+(?:\.\w+)+)(?::\w+)?", text) for text in texts if isinstance(text, str))
    return frozenset(match[1] for match in matches if match and match[1] in modules())


def room(name: str) -> str:
    """Return the folder of a module: the first two parts of its name if such a folder exists, else the first."""
    short = ".".join(name.split(".")[:2])
    return short if short in ARROWS else name.partition(".")[0]


def test_imports_follow_the_layers() -> None:
    wrong = []
    for name in modules():
        allowed = ARROWS[room(name)] | {room(name)}
        named = allowed | NAMED.get(room(name), set()) | REGISTRIES.get(name, set())
        wrong += [f"{name} imports {other}" for other in imports(name) if room(other) not in allowed]
        wrong += [f"{name} names {other} in a string" for other in strings(name) if room(other) not in named]
    assert not wrong  # ARROWS and NAMED list the allowed imports


def test_every_folder_has_import_rules() -> None:
    inner = {name for name, path in modules().items() if "." in name and path.name == "__init__.py"}
    folders = {".".join(name.split(".")[:2]) for name in inner if not name.startswith("experiments")}
    assert not folders - ARROWS.keys()


def test_core_imports_no_outer_or_heavy_package() -> None:
    for name in modules():
        if name.startswith("sqa.") or name == "sqa":
            roots = {other.partition(".")[0] for other in imported(modules()[name])}
            assert not roots & {"smt", "guessers", "buzzers", "experiments", SERVICES}, name
            assert not roots & HEAVY or name in OF_TRAININGS | KERNELS | LOADERS, name
            assert not imports(name) & OF_TRAININGS or name in OF_TRAININGS, name


def test_there_is_no_import_cycle() -> None:
    """Imports inside functions and under TYPE_CHECKING count as well."""
    done: set[str] = set()

    def walk(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " -> ".join((*way[way.index(name) :], name))
        if name not in done:
            for other in sorted(imports(name)):
                walk(other, (*way, name))
            done.add(name)

    for name in modules():
        walk(name, ())


def test_packages_import_their_own_modules_directly() -> None:
    """An import through a package's stub would hide a cycle inside the package."""
    stubs = {name for name, path in modules().items() if path.with_suffix(".pyi").is_file()}
    wrong = [name for name in modules() if name.rpartition(".")[0] in stubs & imports(name) - {"sqa"}]
    assert not wrong and len(stubs) == 4


def test_no_private_name_is_imported() -> None:
    taken = []
    for name, path in modules().items():
        ours = set()  # local names of the project's modules
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in (*PACKAGES, SERVICES):
                taken += [f"{name}: {node.module}.{a.name}" for a in node.names if private(a.name)]
                ours |= {a.asname or a.name for a in node.names if f"{node.module}.{a.name}" in modules()}
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ours:
                taken += [f"{name}: {node.value.id}.{node.attr}"] * private(node.attr)
    assert not taken


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_folders_functions_and_configs_are_small() -> None:
    counted = Counter(path.parent for path in tracked("*.py") if path.name != "__init__.py")
    assert not {str(folder): n for folder, n in counted.items() if n > MODULES_PER_FOLDER}
    assert len(tracked("configs/*")) <= CONFIGS
    functions = [
        (name, node)
        for name, path in modules().items()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lines = {f"{name}.{node.name}": (node.end_lineno or node.lineno) - node.lineno + 1 for name, node in functions}
    assert not {name: n for name, n in lines.items() if n > LINES_PER_FUNCTION}
    skipped = [name for name, path in modules().items() if "fmt: skip" in path.read_text(encoding="utf-8")]
    assert len(skipped) <= SKIPPED, skipped


def tracked(pattern: str) -> list[Path]:
    """Return the matching files that git tracks, or outside a checkout all matching files."""
    listed = subprocess.run(["git", "ls-files", "--", pattern], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        return [Path(line) for line in listed.stdout.splitlines() if (ROOT / line).is_file()]
    return [path.relative_to(ROOT) for path in ROOT.rglob(pattern) if ".venv" not in path.parts]


def test_only_the_trace_module_names_its_columns() -> None:
    for name, path in modules().items():
        if name.startswith(("sqa.", "sqa_services.")) and name != "sqa.core.trace":
            strings = {node.value for node in ast.walk(parsed(path)) if isinstance(node, ast.Constant)}
            assert "question_id" not in strings, path


def test_no_table_lists_parts_by_name() -> None:
    """A part is named by the registry; packages.py and start.py name Python packages and extras."""
    names = {*TRANSLATORS.names(), *GUESSERS.names()}
    exempt = {"sqa.core.registry", "sqa.core.packages", "sqa.cli.start", "tests.conformance.test_buzzers"}
    found = modules() | {f"tests.conformance.{path.stem}": ROOT / path for path in tracked("tests/conformance/*.py")}
    for module, path in found.items():
        if module.startswith(("sqa", "smt.", "buzzers.", "tests.")) and module not in exempt:
            listed = [names.intersection(strings_of(node)) for node in ast.walk(parsed(path))]
            assert [parts for parts in listed if len(parts) > 1] == [], module


def strings_of(node: ast.AST) -> list[object]:
    """Return the strings of a list, a set, a tuple or the keys of a dict, or the words of "...".split()."""
    if isinstance(node, ast.Call):
        text = getattr(getattr(node.func, "value", None), "value", None)
        return list(text.split()) if isinstance(text, str) and getattr(node.func, "attr", "") == "split" else []
    items = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
    return [item.value for item in items if isinstance(item, ast.Constant)]


def test_importing_the_core_loads_nothing_heavy() -> None:
    names = [name for name in modules() if name.startswith("sqa.") and not name.endswith("__main__")]
    names = [name for name in names if name not in OF_TRAININGS | KERNELS | OF_ENDPOINTS]
    outer = {"smt", "guessers", "buzzers", "experiments", SERVICES}
    code = f"import sys, {', '.join(names)}; print(sorted({HEAVY | outer!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("module", "packages"), [("sqa", {"sqa"}), ("sqa.cli", {"sqa", "typer"})])
def test_import_loads_no_other_package(module: str, packages: set[str]) -> None:
    """The standard library and the dependencies of typer are allowed."""
    code = f"import sys; before = {{*sys.modules}}; import {module}; print(*{{*sys.modules}} - before)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    allowed = packages | sys.stdlib_module_names | {"annotated_doc", "click", "rich", "shellingham"}
    assert loaded <= allowed and packages <= loaded


def code_lines(path: Path) -> int:
    """Return the number of lines with a token that is neither a comment nor a docstring."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    lines = enumerate(map(str.strip, path.read_text(encoding="utf-8").splitlines()), start=1)
    code = {number for number, line in lines if line and not line.startswith("#")}
    inside: set[int] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno != node.lineno:
            code |= lines_of(node)
        elif isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            inside |= lines_of(node.body[0])
    return len(code - inside)


def lines_of(node: ast.expr | ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def room_of(path: Path) -> str:
    """Return the room of a module, such as "sqa/core" for sqa/core/trace.py."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[:2]) if parts[0] in (*PACKAGES, "services") and len(parts) > 2 else parts[0]


def test_rooms_keep_their_budget() -> None:
    """A room that needs more lines takes them from another room, or the commit says what the lines buy."""
    budget = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["sqa"]["budget"]
    lines: Counter[str] = Counter()
    for path in tracked("*.py"):
        lines[room_of(ROOT / path)] += code_lines(ROOT / path)
    assert {name: number for name, number in lines.items() if number > budget.get(name, 0)} == {}


def test_first_example_loads_few_modules(tmp_path: Path) -> None:
    """Limit the code that README's first example loads; ARCHITECTURE.md lists its modules."""
    code = (
        "import sys; from sqa.cli import main\n"
        "sys.argv[1:] = ['run', 'docs/example/mine.yaml', '--runs', sys.argv[1]]\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "print(*(m.__file__ for m in list(sys.modules.values()) if getattr(m, '__file__', None)), sep='\\n')"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    rooms = tuple(str((ROOT / package).resolve()) for package in (*PACKAGES, "services"))
    ours = [Path(line) for line in done.stdout.splitlines() if line.endswith(".py") and line.startswith(rooms)]
    size = {path: code_lines(path) for path in ours}
    assert len(size) <= MODULES_OF_A_RUN and sum(size.values()) <= LINES_OF_A_RUN, (len(size), sum(size.values()))
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    listed = re.findall(r"`([\w/]+\.py)`", text.partition("## What to read first")[2].partition("## Packages")[0])
    assert sorted(listed) == sorted(str(path.relative_to(ROOT)) for path, lines in size.items() if lines)
