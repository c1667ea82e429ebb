"""Code of user-defined parts: its import, and the digest of its files for store keys.

User code is every Python file outside the standard library, site-packages and this project.  The digest of a part
covers its file, all files reachable by import statements (including those in functions), and all other files that
its import loads.  It does not cover a module that a function imports by a computed name.
"""

import ast
import hashlib
import importlib
import json
import os
import sys
import sysconfig
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from sqa.core.errors import ConfigError
from sqa.core.paths import BUILT, PACKAGES, in_file, is_own, located, short, split

_LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()  # Python's own modules
LOADED: dict[str, "Code"] = {}  # target -> its code


@dataclass(frozen=True, eq=False)
class Code:
    """The imported module of a part, and the files of user code on which it depends."""

    target: str
    root: ModuleType
    named: Mapping[str, Path]  # module -> file
    files: Mapping[Path, str]  # file -> sha256 (hex) before its import

    @property
    def digest(self) -> str:
        """Sha256 (hex) of the part's name and of its files, independent of the folder's location."""
        home = Path(self.root.__file__ or "").parent
        rows = sorted((os.path.relpath(file, home), sha256) for file, sha256 in self.files.items())
        return hashlib.sha256(json.dumps([short(self.target), rows]).encode()).hexdigest()

    def current(self) -> bool:
        """Return whether no file has been edited since the import."""
        return all(_sha256(file) == sha256 for file, sha256 in self.files.items())


def load(target: str) -> Code:
    """Import the module of a target, once per version of its files.

    Raises ConfigError for a missing or invalid file; errors of the import itself (ImportError and others) pass
    through.
    """
    forget([code for code in list(LOADED.values()) if not code.current()])  # other threads may load parts meanwhile
    if target not in LOADED:
        sys.dont_write_bytecode = True  # a cached file may be stale if its source was edited within a second
        importlib.invalidate_caches()
        home = split(target)[0]
        name = _searched_first(Path(home)) if in_file(target) else home
        file = Path(home) if in_file(target) else _file_of(home, home)
        try:
            files = {path: _sha256(path) for path in _make_way(_reached(name, file))}
            before = set(sys.modules)
            with printing_to_stderr():
                root = _from_file(name, Path(home)) if in_file(target) else importlib.import_module(home)
            named = _reached(name, file)  # again, since the part may have extended `sys.path`
        except SyntaxError as error:
            raise ConfigError(f"{error.filename}:{error.lineno}: {error.msg}") from error
        except SystemExit as error:
            script = 'put what only a script does under `if __name__ == "__main__":`'
            raise ConfigError(f"{short(target)}: the import of its file ends the program; {script}") from error
        if file is None and is_own(target):
            raise ConfigError(f"{short(target)}: has no source file, which the keys of stored results need")
        named |= {other: path for other in sys.modules.keys() - before if (path := _file_of(other, name))}
        LOADED[target] = Code(target, root, named, {path: _sha256(path) for path in named.values()} | files)
    return LOADED[target]


@contextmanager
def printing_to_stderr() -> Iterator[None]:
    """Send to stderr what the code in the `with` block prints, and the child programs that it starts."""
    if threading.current_thread() is not threading.main_thread():
        yield  # the threads of a server share the streams
        return
    stdout = os.dup(1)
    try:
        os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)


def forget(stale: Collection[Code]) -> None:
    """Unload these parts and all user code that they use, so that both are imported again."""
    for code in stale:
        for name in code.named:
            sys.modules.pop(name, None)
        del LOADED[code.target]


def _make_way(named: Mapping[str, Path]) -> set[Path]:
    """Unload the modules in `named` that no part has imported, since they may be outdated; return all files of `named`.

    Raises ConfigError if another file has been imported under the name of a module.
    """
    known = {file for code in LOADED.values() for file in code.files}
    for name, file in named.items():
        loaded = getattr(sys.modules.get(name), "__file__", None)
        if loaded and Path(loaded).resolve() != file.resolve():
            raise ConfigError(f"{file}: {loaded} has already been imported as {name!r}; rename one of the two")
        if file not in known:
            sys.modules.pop(name, None)
    return set(named.values())


def _searched_first(file: Path) -> str:
    """Return the name of a file's module and put its folder first on `sys.path`, as `python mine.py` does."""
    if not file.is_file():
        raise ConfigError(f"{file}: this file does not exist in the config's folder or the current folder")
    sys.path[:] = [str(file.parent), *(folder for folder in sys.path if folder != str(file.parent))]
    return f"own_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"


def _from_file(name: str, file: Path) -> ModuleType:
    if name not in sys.modules:
        spec: Any = spec_from_file_location(name, file)
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


# ------------------------------------------------------------------------------------------- modules and their files


def _reached(root: str, file: Path | None) -> dict[str, Path]:
    """Return a dict that maps `root`, and the modules of user code that it reaches by imports, to their files.

    Import statements inside functions count.
    """
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
                todo += [(each, _file_of(each, root)) for each in names if each not in found]
    return found


def _imports(file: Path, package: str) -> Iterator[str]:
    """Yield the modules that the import statements of a file may load; raises SyntaxError for invalid Python."""
    for node in ast.walk(ast.parse(file.read_bytes(), str(file))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            module = ".".join(filter(None, (above, node.module)))
            yield from (module, *(f"{module}.{alias.name}" for alias in node.names))


def _file_of(module: str, root: str) -> Path | None:
    """Return the file of a module, or None unless it is user code or in the package of `root`."""
    spec, package = _spec(module), module.partition(".")[0]
    if spec is None or package in PACKAGES or not (spec.origin or "").endswith(".py"):
        return None
    path = Path(str(spec.origin)).absolute()
    is_installed = {"site-packages", "dist-packages"} & {*path.parts} or path.resolve().is_relative_to(_LIBRARY)
    return None if is_installed and package != root.partition(".")[0] else path


def _spec(module: str) -> ModuleSpec | None:
    """Find a module on `sys.path` without importing anything."""
    above, _, name = module.rpartition(".")
    package = _spec(above) if above else None
    folders = package.submodule_search_locations if package else None
    return None if above and folders is None else PathFinder.find_spec(name, folders)


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


def named(target: str) -> tuple[Code, Any]:
    """Return the code and the object of a target; raises ConfigError with the reason if it cannot be imported."""
    try:
        code = load(located(target))
        return code, getattr(code.root, split(target)[1])
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(f"{target!r} cannot be imported: {error}") from error


def built(target: str) -> tuple[Code, Any]:
    """Return the code of a target and the part that it builds without arguments.

    Raises ConfigError if the target cannot be imported or called without arguments.
    """
    code, build = named(target)
    try:
        part = build()
    except TypeError as error:
        raise ConfigError(f"{target!r}: build() without parameters failed: {error}") from error
    BUILT.append(code)
    return code, part
