"""The code of a part of your own: its modules, executed anew from their files, apart from those of any other part.

Own code is every Python file outside the standard library, site-packages and this project.  A part has modules of its
own, which only it sees while it runs, so two projects may both have a `helper`, and an edited file is read again.  All
executed files are recorded, however they were loaded; their digest is in the store keys of the part.

Files that a part loads while it runs come too late for that key.  They are recorded beside the results, as `Load`s, and
results are taken from the store only while these still name the same code (sqa/pipeline/late_code.py).  Threads that
run different parts at once see the modules of the part that was entered last.
"""

from __future__ import annotations

import copyreg
import hashlib
import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from importlib.machinery import BuiltinImporter, FrozenImporter, ModuleSpec, SourceFileLoader
from operator import attrgetter
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from sqa.core.errors import ConfigError
from sqa.core.own import PACKAGES, WATCHED, in_file, short, split
from sqa.core.own.worlds import World, content, outside_modules, outside_path, own_file, own_folders, whole

NAMESPACE = "namespace"  # instead of a sha256: a package without a file


@dataclass(frozen=True, slots=True)
class Load:
    """A Python file that was loaded, or a module that does not exist."""

    module: str  # its name; "" of a file that was executed without being imported
    sha256: str  # of its bytes; "" of a missing module
    file: str = ""  # of one without a name: relative to the part's folder
    # folders up to its own: an index among those searched at the start, else a path relative to the part's folder
    searched: tuple[int | str, ...] = ()


class Code(World):
    """The modules of one part; while it runs, also the finder of all modules that are imported."""

    def __init__(self, target: str) -> None:
        super().__init__()
        self.target, (self.home, self.attribute) = target, split(target)
        self.file = Path(self.home).absolute() if in_file(target) else None
        self.folder = self.file.parent if self.file else Path.cwd()
        self.outside = outside_path()
        self.path = [str(self.folder), *self.outside] if self.file else self.outside
        self.hidden = _names_in(self.folder) if self.file else frozenset()
        self.start: list[str] = []  # own folders that are searched first whenever the part is built
        self.root: ModuleType | None = None
        self.early: frozenset[Load] = frozenset()  # loaded until the part was built
        self.loads: dict[str, Load] = {}  # by file, or by the name of a missing module
        self.assumed: tuple[Load, ...] = ()  # late ones of the run whose results are taken from the store

    # ------------------------------------------------------------------------------------------------- loading

    @classmethod
    def at(cls, target: str) -> Code:
        """The code of a target, executed.  ConfigError about a file; of a module ImportError and the like.

        A file beside the part comes before a module of the standard library that has its name, loaded or not, as for
        `python mine.py`.
        """
        code = cls(target)
        with code.running():
            importlib.invalidate_caches()
            code.start = code._searched()
            try:
                code.root = code._root(code.file) if code.file else code._module(code.home)
            except SyntaxError as error:
                raise ConfigError(f"{error.filename}:{error.lineno}: {error.msg}") from error
        return code

    def _root(self, file: Path) -> ModuleType:
        """The module in the part's file."""
        name = f"own_{file.stem}"
        try:
            source = content(str(file))
        except OSError as error:
            raise ConfigError(f"{file}: cannot be read ({error})") from error
        if source is None:
            missing = "no such file; it is looked for beside the config, then in the current folder"
            raise ConfigError(f"{self.home}: {missing}")
        loader = _FreshLoader(name, str(file), source)
        self._note(str(file), source, name)
        spec = importlib.util.spec_from_file_location(name, file, loader=loader)
        assert spec is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look their module up there
        loader.exec_module(module)
        return module

    def _module(self, name: str) -> ModuleType:
        """A module by its name; one that cannot be executed again is the process's, with all that the process has."""
        outside = outside_modules()
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            if name not in outside:
                raise
            module = outside[name]
        file = getattr(module, "__file__", None)
        adopted = [*outside.values(), module] if name == "__main__" or module is outside.get(name) else []
        sys.modules.update({} if not adopted else outside)
        if file:
            inside = module.__name__.count(".") + (Path(file).stem == "__init__")
            self.folder = Path(file).absolute().parents[inside]
        top = name.partition(".")[0]
        package = [other for loaded, other in sys.modules.copy().items() if loaded.partition(".")[0] == top]
        for other in [*adopted, *package]:  # those that were not executed now
            path = getattr(other, "__dict__", {}).get("__file__")
            if isinstance(path, str) and path not in self.loads and (source := content(path)) is not None:
                self._note(path, source, other.__name__)
        return module

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The other finders' spec, recorded; its source is compiled now, not taken from a cache."""
        if name.partition(".")[0] in PACKAGES:
            return None
        spec = self._spec(name, path)
        origin = spec.origin if spec is not None and spec.has_location else None
        if spec is None:
            is_own = not _imported_by_library() and (path is None or own_folders(path))
        else:
            is_own = own_file(origin) if origin else own_folders(spec.submodule_search_locations)
        if not is_own:
            return spec
        searched = () if path is not None else self._searched_for(origin)
        source = content(origin) if origin else None
        if origin is None or source is None:
            self.loads[name] = Load(name, "" if spec is None else NAMESPACE, searched=searched)
            return spec
        self._note(origin, source, name, searched=searched)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _FreshLoader(name, origin, source)
        return spec

    def _note(self, path: str, source: bytes, module: str, **details: Any) -> None:
        """Record a file that is about to be executed."""
        self.loads[path] = Load(module, _sha256(source), **details)

    def opened(self, file: str) -> None:
        """Record a Python file that was opened while the part ran: it is the part's code, however it is executed."""
        if "__pycache__" in file:
            file = importlib.util.source_from_cache(file)
        if own_file(file) and file not in self.loads and (source := content(file)) is not None:
            self._note(file, source, "", file=os.path.relpath(file, self.folder))

    def _spec(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """The spec of the other finders."""
        specs = (finder.find_spec(name, path) for finder in sys.meta_path if finder is not self)
        return next((spec for spec in specs if spec is not None), None)

    def _searched_for(self, origin: str | None) -> tuple[int | str, ...]:
        """The own folders that are searched for a module, up to that of its file; all if it is missing."""
        home = None if origin is None else Path(origin).parents[Path(origin).stem == "__init__"]
        folders: list[int | str] = []
        for folder in dict.fromkeys(self._searched()):
            folders.append(self.start.index(folder) if folder in self.start else os.path.relpath(folder, self.folder))
            if Path(folder) == home:
                break
        return tuple(folders)

    def _searched(self) -> list[str]:
        """The own folders that are searched now."""
        return [whole(entry) for entry in sys.path if own_folders([whole(entry)])]

    # ------------------------------------------------------------------------------------------------- digests

    def built(self, inner: Sequence[Code] = ()) -> None:
        """Called when the part is built: later loads are late ones.  Without a source file: ConfigError.

        `inner` is the code of parts that it is composed of, which belongs to its own.
        """
        with self.running():
            self.start = self._searched()
        self.early = frozenset(self.loads.values()).union(*(code.early for code in inner))
        if not any(load.sha256 for load in self.early):
            raise ConfigError(f"{short(self.target)}: has no source file that results could be stored under")
        for codes in WATCHED.get():
            codes.append(self)

    @property
    def digest(self) -> str:
        """sha256 (hex) over what was executed until the part was built: names and contents, not folders."""
        return _digest(self.early)

    @property
    def label(self) -> str:
        """The name of the part in records of late loads."""
        return f"{short(self.target)} {self.digest[:16]}"

    @property
    def late(self) -> list[Load]:
        """What was loaded since the part was built, in that order."""
        return [load for load in self.loads.values() if load not in self.early]

    @property
    def whole(self) -> str:
        """sha256 (hex) over all that was executed so far, and the late loads of the run whose results are used."""
        late = {load for load in (*self.late, *self.assumed) if load.sha256}
        return _sha256(f"{self.digest} {_digest(late)}".encode()) if late else self.digest

    def current(self) -> bool:
        """Whether its files are unchanged, and the same folders are searched."""
        return self.outside == outside_path() and self.unchanged()

    def executed(self) -> dict[str, str]:
        """File -> sha256 of what was executed."""
        return {file: load.sha256 for file, load in self.loads.items() if Path(file).is_absolute()}

    def unchanged(self) -> bool:
        """Whether its files are unchanged since they were executed."""
        return all(_sha256(content(file) or b"") == sha256 for file, sha256 in self.executed().items())

    def now(self, loads: Sequence[Load]) -> list[str]:
        """The sha256 that each of these late loads would have if the part did it now."""
        with self.running():
            importlib.invalidate_caches()
            located: dict[str, Sequence[str]] = {}
            return [self._now(load, located) for load in loads]

    def _now(self, load: Load, located: dict[str, Sequence[str]]) -> str:
        if not load.module:
            source = content(str(self.folder / load.file))
            return "" if source is None else _sha256(source)
        above = load.module.rpartition(".")[0]
        path = [
            os.path.normpath(self.folder / folder) if isinstance(folder, str) else self.start[folder]
            for folder in load.searched
            if isinstance(folder, str) or folder < len(self.start)
        ]
        if above:
            path = list(located.get(above) or getattr(sys.modules.get(above), "__path__", []))
        spec = self._spec(load.module, path)
        if spec is None:
            return ""
        located[load.module] = list(spec.submodule_search_locations or [])
        return _sha256(content(spec.origin) or b"") if spec.has_location and spec.origin else NAMESPACE

    def moved(self, value: Any) -> Any:
        """A config made by another execution of the same files, as an instance of the classes of this one."""
        if type(value) in (tuple, list):
            return type(value)(self.moved(item) for item in value)
        home = self.modules.get(type(value).__module__)
        if not is_dataclass(value) or isinstance(value, type) or home is None:
            return value
        names = type(value).__qualname__.split(".")
        cls: Any = home
        for name in names:
            cls = getattr(cls, name, None)
        if cls is type(value) or not isinstance(cls, type):
            return value
        arguments = {field.name: self.moved(getattr(value, field.name)) for field in fields(value) if field.init}
        try:
            return cls(**arguments)
        except TypeError as error:
            raise ConfigError(f"{short(self.target)}: edited since its config was read; read it again") from error


class _FreshLoader(SourceFileLoader):
    """Compiles what was read just now; Python's cache compares only size and second of the source."""

    def __init__(self, name: str, file: str, source: bytes) -> None:
        super().__init__(name, file)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        try:
            compiled: CodeType = self.source_to_code(self._source, self.path)
        except ValueError as error:  # a NUL
            raise SyntaxError(str(error), (self.path, 1, None, None)) from error
        return compiled


def _imported_by_library() -> bool:
    """Whether installed code imports now: it would not search for a missing module if it had been loaded before."""
    frame = sys._getframe(2)  # who called the finder
    while frame.f_back is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    file = frame.f_code.co_filename
    return not file.startswith("<") and not own_file(file)


def _names_in(folder: Path) -> frozenset[str]:
    """The modules in a folder that come before others of their name: not Python's built-in and frozen ones."""
    files = [*folder.glob("*.py"), *(file.parent for file in folder.glob("*/__init__.py"))]
    names = {file.stem for file in files} - PACKAGES
    return frozenset(n for n in names if not (BuiltinImporter.find_spec(n) or FrozenImporter.find_spec(n)))


def _digest(loads: frozenset[Load] | set[Load]) -> str:
    rows = {(load.module or Path(load.file).name, load.sha256) for load in loads if load.sha256}
    return _sha256(json.dumps(sorted(rows)).encode())


def _sha256(source: bytes) -> str:
    return hashlib.sha256(source).hexdigest()


_SHARED: dict[str, Code] = {}  # by target


def shared(target: str) -> Code:
    """The code of a target, executed once in this process and again after a file was edited."""
    cached = _SHARED.get(target)
    if cached is None or not cached.current():
        code = Code.at(target)
        if cached is not None and code.executed().items() <= cached.executed().items() and cached.unchanged():
            cached.outside = code.outside  # other folders are searched, with the same result
        else:
            _SHARED[target] = code
            for name, module in code.modules.items():
                for cls in vars(module).values():
                    if isinstance(cls, type) and is_dataclass(cls) and cls.__module__ == name:
                        copyreg.pickle(cls, partial(_packed, target))
    return _SHARED[target]


def _packed(target: str, value: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """For pickle: another process does not have the module, but it has the target."""
    cls = type(value)
    arguments = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    return _unpacked, (target, cls.__module__, cls.__qualname__, arguments)


def _unpacked(target: str, module: str, qualname: str, arguments: Mapping[str, Any]) -> Any:
    code = shared(target)
    with code.running():
        return attrgetter(qualname)(sys.modules[module])(**arguments)


def called(code: Code, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs within its code."""
    return code.running()(function)
