"""Parts of your own, by their place: `module:attribute` or `path/to/file.py:attribute`.

A file is looked for beside the config that names it, then in the current folder; it may import the files beside it.
Its source is hashed with that of those files, so that results of an edited file are never taken for its own.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from sqa.core.errors import ConfigError

PACKAGES = frozenset({"sqa", "smt", "guessers", "buzzers", "experiments"})  # the project's, which versions itself


@dataclass(frozen=True, slots=True)
class OwnPart:
    """A part of your own inside another part's config: `policy: {name: "mine.py:build", patience: 2}`."""

    name: str  # its place
    options: Any  # instance of the dataclass that its build function takes


def in_file(place: str) -> bool:
    """Whether a place is in a file (`mine.py:build`), not in an importable module."""
    return place.rpartition(":")[0].endswith(".py")


def located(place: str, folder: Path | None = None) -> str:
    """A place in a file with the file's whole path; any other place, and one that is not there, as it stands."""
    if not in_file(place):
        return place
    file, _, attribute = place.rpartition(":")
    starts = (Path(), folder)[::-1] if folder is not None else (Path(),)
    found = (path.resolve() for path in (start / Path(file).expanduser() for start in starts) if path.is_file())
    return next((f"{path}:{attribute}" for path in found), place)


def short(place: str) -> str:
    """A place as store keys and reports have it: a file without its folder."""
    return place if not in_file(place) else f"{Path(place.rpartition(':')[0]).name}:{place.rpartition(':')[2]}"


def attribute(place: str) -> Any:
    """What a place names.  Not there: AttributeError, ImportError and the like, or ConfigError about a file."""
    module, _, name = place.rpartition(":") if in_file(place) else place.partition(":")
    return getattr(module_in(Path(module)) if in_file(place) else import_module(module), name)


def built(place: str) -> Any:
    """What the function of a place returns, which takes no parameters.  ConfigError says why it returns nothing."""
    try:
        build = attribute(located(place))
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(f"{place!r} cannot be imported: {error}") from error
    if not callable(build):
        raise ConfigError(f"{place!r} is no build function but a {type(build).__name__}")
    try:
        return build()
    except TypeError as error:
        raise ConfigError(f"{place!r}: build() without parameters failed: {error}") from error


def module_in(file: Path) -> ModuleType:
    """The module in a file, executed anew where it or a file beside it that it imports was edited."""
    try:
        text, digest = file.read_text(encoding="utf-8"), source_digest(file)
        code = compile(text, str(file), "exec", dont_inherit=True)
    except FileNotFoundError as error:
        raise ConfigError(
            f"{file}: no such file; it is looked for beside the config, then in the current folder"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read as UTF-8 ({error})") from error
    except SyntaxError as error:
        raise ConfigError(f"{error.filename}:{error.lineno}: {error.msg}") from error
    name = f"own_{file.stem}_{hashlib.sha256(f'{file.resolve()} {digest}'.encode()).hexdigest()[:16]}"
    if name in sys.modules:
        return sys.modules[name]
    module = sys.modules[name] = ModuleType(name)  # dataclasses look their module up there
    module.__file__ = str(file)
    try:
        with _neighbours(file):
            exec(code, module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextmanager
def _neighbours(file: Path) -> Iterator[None]:
    """What is imported meanwhile is looked for beside a file first, and read anew: it may have been edited.

    No bytecode is written: it is told from its source by size and second only.
    """
    folder, written = file.resolve().parent, sys.dont_write_bytecode
    tops = {path.relative_to(folder).parts[0].removesuffix(".py") for path in _with_imported(file) - {file.resolve()}}
    for loaded in [name for name in sys.modules if name.partition(".")[0] in tops]:
        del sys.modules[loaded]
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = written
        sys.path.remove(str(folder))


def source_digest(*files: Path) -> str:
    """sha256 (hex) over the sources of files and of all files beside them that they import, by name, in order."""
    known = _with_imported(*files)
    total = hashlib.sha256()
    for file in sorted(known, key=lambda file: (file.name, str(file))):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        total.update(f"{file.name} {content}\n".encode())
    return total.hexdigest()


def _with_imported(*files: Path) -> set[Path]:
    """Files, and all files beside them that they or those import."""
    todo, known = [file.resolve() for file in files], set[Path]()
    while todo:
        file = todo.pop()
        if file not in known:
            known.add(file)
            todo += _beside(file)
    return known


def _beside(file: Path) -> list[Path]:
    """The files in the folder of a file that it imports: modules, and all files of packages."""
    names = set()
    for node in ast.walk(ast.parse(file.read_bytes(), str(file))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inside = [node.module] if node.module else [alias.name for alias in node.names]
            names |= {name.partition(".")[0] for name in inside}
    names -= PACKAGES | sys.stdlib_module_names
    found = [file.parent / f"{name}.py" for name in names]
    found += [path for name in names for path in (file.parent / name).rglob("*.py")]
    return [path.resolve() for path in found if path.is_file()]


def part_digest(place: str, part: object) -> str | None:
    """sha256 (hex) over the source of a part: its place's file and those of its classes; None where there is none."""
    module, _, _ = place.rpartition(":") if in_file(place) else place.partition(":")
    files = {Path(module)} if in_file(place) else _file_of(sys.modules.get(module))
    for cls in type(part).__mro__:
        if cls.__module__.partition(".")[0] not in sys.stdlib_module_names:
            files |= _file_of(sys.modules.get(cls.__module__))
    return source_digest(*files) if files else None


def _file_of(module: ModuleType | None) -> set[Path]:
    """A module's source file, if it has one."""
    if module is None:
        return set()
    try:
        file = inspect.getsourcefile(module)
    except TypeError:  # built in
        return set()
    return {Path(file)} if file and Path(file).is_file() else set()
