"""The code of a part of your own: imported normally, and the digest of its files that is in store keys.

Own code is every Python file outside the standard library, site-packages and this project.  The digest of a part
covers its file, the files that import statements reach from there, and what else was imported while it was built.
Modules that a part imports later by a computed name are recorded beside the results (`late`), and results are reused
only while the recorded digests are those of today.
"""

import ast
import hashlib
import importlib
import json
import os
import sys
import sysconfig
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from sqa.core.errors import ConfigError, DataError
from sqa.core.own import BUILT, PACKAGES, in_file, is_own, located, short, split

_EXECUTED: dict[Path, str] = {}  # file -> its sha256 when a part first reached it
LOADED: dict[str, "Code"] = {}  # target -> its code
_INSTALLED: set[str] = set()  # packages of parts that are modules, wherever they are installed
_COMPUTED: set[str] = set()  # modules that parts have imported, though no import statement of theirs names them


class Code:
    """The imported module of a part, and the files that it consists of."""

    def __init__(self, target: str, root: ModuleType, named: Mapping[str, Path]) -> None:
        self.target, self.root = target, root
        self.named = named  # module -> file, of import statements
        self.files = {file: _executed(file) for file in named.values()}  # file -> sha256 (hex)

    @property
    def digest(self) -> str:
        """The sha256 (hex) of the part's name and of its files, wherever its folder lies."""
        home = Path(self.root.__file__ or "").parent
        rows = sorted((os.path.relpath(file, home), sha256) for file, sha256 in self.files.items())
        return hashlib.sha256(json.dumps([short(self.target), rows]).encode()).hexdigest()

    def add(self, imported: Mapping[str, Path]) -> None:
        """Add modules that were imported while the part was loaded or built."""
        self.files |= {file: _executed(file) for file in imported.values()}
        _COMPUTED.update(imported.keys() - _named())

    def current(self) -> bool:
        """Return whether no file was edited since."""
        return all(_sha256(file) == sha256 for file, sha256 in self.files.items())


def load(target: str) -> Code:
    """Import the module of a target: once, and after an edit again.

    Raises ConfigError for a missing or invalid file, ImportError and the like for what the import itself raises.
    """
    forget([code for code in LOADED.values() if not code.current()])
    if target not in LOADED:
        sys.dont_write_bytecode = True  # a cached file is stale if its source was edited within a second
        importlib.invalidate_caches()
        home, _ = split(target)
        if in_file(target):
            name = _searched_first(Path(home))
            named = _reached(name, Path(home))
        else:
            _INSTALLED.update({home.partition(".")[0]} - PACKAGES)
            named = _reached(home, file_of(home))
        for other in [other for other, file in named.items() if file not in _EXECUTED and other != "__main__"]:
            sys.modules.pop(other, None)  # somebody else has imported it, perhaps before an edit
        with _importing() as imported:
            root = _from_file(name, Path(home)) if in_file(target) else importlib.import_module(home)
        LOADED[target] = Code(target, root, named)
        LOADED[target].add(imported)
    return LOADED[target]


def forget(stale: Collection[Code]) -> None:
    """Let parts be imported again, with all own code that they consist of, and edited modules with computed names."""
    files = {file for code in stale for file in code.files}
    files |= {file for name in _COMPUTED if (file := file_of(name)) and _sha256(file) != _executed(file)}
    for name in [name for name in sys.modules if name != "__main__" and file_of(name) in files] if files else ():
        del sys.modules[name]
        _COMPUTED.discard(name)
    for file in files:
        _EXECUTED.pop(file, None)
    for code in stale:
        del LOADED[code.target]


def _searched_first(file: Path) -> str:
    """Return the name of a file's module; its folder is searched first, as for `python mine.py`."""
    if not file.is_file():
        raise ConfigError(f"{file}: no such file; it is looked for beside the config, then in the current folder")
    sys.path[:] = [str(file.parent), *(folder for folder in sys.path if folder != str(file.parent))]
    return f"own_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"


def _from_file(name: str, file: Path) -> ModuleType:
    if name not in sys.modules:
        spec = spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@contextmanager
def at_work() -> Iterator[None]:
    """Follow what parts import while they run."""
    with _importing() as imported:
        yield
    _COMPUTED.update(imported.keys() - _named())


def _named() -> set[str]:
    """Return the modules that import statements of parts name."""
    return {name for code in LOADED.values() for name in code.named}


@contextmanager
def building(code: Code) -> Iterator[None]:
    """Follow what a part imports while it is built.  Without a source file: ConfigError."""
    with _importing() as imported:
        yield
    code.add(imported)
    if not code.files and is_own(code.target):
        raise ConfigError(f"{short(code.target)}: has no source file that results could be stored under")
    BUILT.append(code)


def late() -> dict[str, str]:
    """Return module -> sha256 (hex) of what parts have imported by computed names."""
    return {name: _executed(file) for name in _COMPUTED if (file := file_of(name))}


def now(recorded: Iterable[str]) -> dict[str, str]:
    """Return module -> sha256 (hex) that parts would import now; "" for a missing module."""
    return {name: _executed(file) if (file := file_of(name)) else "" for name in recorded}


def _executed(file: Path) -> str:
    """Return the sha256 (hex) of a file when a part first reached it."""
    return _EXECUTED.setdefault(file, _sha256(file))


@contextmanager
def _importing() -> Iterator[dict[str, Path]]:
    """Collect module -> file of the own code that is imported meanwhile.  Edited meanwhile: DataError."""
    start, before, imported = time.time(), set(sys.modules), dict[str, Path]()
    try:
        yield imported
        imported |= {name: file for name in sys.modules.keys() - before if (file := file_of(name))}
        for file in imported.values():
            if file.stat().st_mtime > start or _sha256(file) != _executed(file):
                raise DataError(f"{file.name} was edited while it was at work; run again")
        _check_names()
    except BaseException as error:
        for name in sys.modules.keys() - before:
            if file := file_of(name):  # it may be edited before the next try
                del sys.modules[name]
                _EXECUTED.pop(file, None)
        if isinstance(error, SyntaxError):
            raise ConfigError(f"{error.filename}:{error.lineno}: {error.msg}") from error
        raise


def _check_names() -> None:
    """Raise ConfigError if a file beside a part cannot be imported because another module has its name."""
    for folder in {Path(split(target)[0]).parent for target in LOADED if in_file(target)}:
        for file in folder.glob("[!_]*.py"):
            loaded = getattr(sys.modules.get(file.stem), "__file__", None)
            if loaded and file.stem not in PACKAGES and Path(loaded).resolve() != file.resolve():
                raise ConfigError(f"{file}: {loaded} has been imported as {file.stem!r}; rename one of the two")


# ------------------------------------------------------------------------------------------- modules and their files


def _reached(root: str, file: Path | None) -> dict[str, Path]:
    """Return module -> file of the own code that import statements reach from a module, in its functions too."""
    found: dict[str, Path] = {}
    todo = [(root, file)]
    while todo:
        name, file = todo.pop()
        if name not in found and file:
            found[name] = file
            package = name if file.name == "__init__.py" else name.rpartition(".")[0]
            for imported in _imports(file, package):
                parts = imported.split(".")
                names = (".".join(parts[:end]) for end in range(1, len(parts) + 1))
                todo += [(each, file_of(each)) for each in names if each not in found]
    return found


def _imports(file: Path, package: str) -> Iterator[str]:
    """Yield the modules that the import statements of a file may load; none if it is not valid Python."""
    with suppress(SyntaxError, ValueError, OSError):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                above = package.rsplit(".", node.level - 1)[0] if node.level else ""
                module = ".".join(filter(None, (above, node.module)))
                yield from (module, *(f"{module}.{alias.name}" for alias in node.names))


def file_of(module: str) -> Path | None:
    """Return the file of a module, loaded or not; None unless it and the package it is in are own code."""
    package = module.partition(".")[0]
    top, found = _located(package)[0], _located(module)[0]
    if not found or not found.endswith(".py") or not Path(found).is_file():
        return None
    is_own = package in _INSTALLED or (is_own_file(top or found) and is_own_file(found))
    return Path(found).absolute() if is_own else None


def _located(module: str) -> tuple[str | None, Any]:
    """Return the file of a module and the folders of its submodules, without importing anything."""
    if module in sys.modules:
        attributes = getattr(sys.modules[module], "__dict__", {})
        return attributes.get("__file__"), attributes.get("__path__")
    above = module.rpartition(".")[0]
    folders = _located(above)[1] if above else None
    if above and folders is None:
        return None, None
    spec = PathFinder.find_spec(module, folders)
    return (spec.origin, spec.submodule_search_locations) if spec else (None, None)


def is_own_file(file: str) -> bool:
    """Return whether a file is outside the standard library, site-packages and this project."""
    path = Path(file).absolute()
    return not {"site-packages", "dist-packages"} & {*path.parts} and not str(path).startswith(_not_own())


@cache
def _not_own() -> tuple[str, ...]:
    """Return the folders of this project and of the standard library, each with a separator at its end."""
    home = Path(__file__).resolve().parents[3]
    ours = [str(home / name) for name in (*PACKAGES, "services")]
    library = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), str(Path(os.__file__).parent)]
    return tuple(f"{path}{os.sep}" for folder in (*ours, *library) for path in {folder, os.path.realpath(folder)})


def _sha256(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


def named(target: str) -> tuple[Code, Any]:
    """Return the code and the object of a target.  ConfigError says why it cannot be imported."""
    try:
        code = load(located(target))
        return code, getattr(code.root, split(target)[1])
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(f"{target!r} cannot be imported: {error}") from error


def built(target: str) -> tuple[Code, Any]:
    """Return the code of a target and what its function returns without parameters.  ConfigError says why it fails."""
    code, build = named(target)
    with building(code):
        try:
            return code, build()
        except TypeError as error:
            raise ConfigError(f"{target!r}: build() without parameters failed: {error}") from error
