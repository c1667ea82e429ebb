"""Which of your own modules `sys.modules` has: those of the process, or those of one part.

A `World` replaces the process's own modules and is removed again.  Installed modules are the same in all of them.
"""

import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from sqa.core.own import PACKAGES

_NEVER = frozenset({"__main__", "__mp_main__"})  # cannot be executed again


class World:
    """Own modules and folders to search, in effect within `running`."""

    def __init__(self) -> None:
        self.modules: dict[str, ModuleType] = {}
        self.path: list[str] = []
        self.hidden: frozenset[str] = frozenset()  # names of installed modules in whose place it has its own
        self._displaced: dict[str, ModuleType] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Its modules are in sys.modules, and its folders searched.

        All threads share sys.modules: while another thread is in another world this one waits, PATIENCE at most, since
        that thread may wait for this one.
        """
        _watch_opened_files()
        thread = threading.get_ident()
        with _SWITCHED:
            _SWITCHED.wait_for(lambda: all(world is self or other == thread for other, world in _ENTERED), PATIENCE)
            _enter([*_ENTERED, (thread, self)])
        try:
            yield
        finally:
            with _SWITCHED:
                last = len(_ENTERED) - 1 - _ENTERED[::-1].index((thread, self))
                _enter([*_ENTERED[:last], *_ENTERED[last + 1 :]])

    def opened(self, file: str) -> None:
        """Called when a Python file is opened within `running`."""

    def put(self) -> None:
        """Put its modules into sys.modules, in place of those that are hidden, and its folders into sys.path."""
        self._displaced = {name: sys.modules.pop(name) for name in self._hidden_names()}
        sys.modules.update(self.modules)
        sys.path = self.path

    def take(self, names: list[str]) -> None:
        """Take its modules out of sys.modules; `names` are those of own modules."""
        self.modules = {name: sys.modules.pop(name) for name in dict.fromkeys([*names, *self._hidden_names()])}
        sys.modules.update(self._displaced)
        self.path = sys.path

    def _hidden_names(self) -> list[str]:
        """Loaded modules and submodules of the names that are hidden."""
        return [name for name in sys.modules.copy() if name.partition(".")[0] in self.hidden] if self.hidden else []


@contextmanager
def waiting() -> Iterator[None]:
    """This thread leaves its worlds while it waits for another thread, which may have to enter one."""
    thread = threading.get_ident()
    with _SWITCHED:
        entries = [entry for entry in _ENTERED if entry[0] == thread]
        _enter([entry for entry in _ENTERED if entry[0] != thread])
    try:
        yield
    finally:
        if entries:
            with _SWITCHED:
                _SWITCHED.wait_for(lambda: all(world is entries[-1][1] for _, world in _ENTERED), PATIENCE)
                _enter([*_ENTERED, *entries])


def _enter(entries: list[tuple[int, World]]) -> None:
    """Show the world that was entered last."""
    _ENTERED[:] = entries
    _show(entries[-1][1] if entries else OUTSIDE)
    _SWITCHED.notify_all()


OUTSIDE = World()  # the process's
PATIENCE = 30.0  # seconds
_SWITCHED = threading.Condition()
_ENTERED: list[tuple[int, World]] = []  # thread, world
_STATE: dict[str, Any] = {"shown": OUTSIDE, "mark": None, "own": [], "bytecode": False, "reading": False}
_INSTALLED: dict[str, object] = {}  # modules that are not own code


def _show(world: World) -> None:
    before = _STATE["shown"]
    if before is world:
        return
    before.take(own_names())
    world.put()
    finders: list[Any] = sys.meta_path
    if before is not OUTSIDE:
        finders.remove(before)
    if world is not OUTSIDE:
        finders.insert(0, world)
    if before is OUTSIDE:
        _STATE["bytecode"] = sys.dont_write_bytecode
    sys.dont_write_bytecode = world is not OUTSIDE or _STATE["bytecode"]
    _STATE.update(shown=world, mark=_mark(), own=list(world.modules))


def outside_path() -> list[str]:
    """sys.path of the process."""
    return list(sys.path if _STATE["shown"] is OUTSIDE else OUTSIDE.path)


def outside_modules() -> dict[str, ModuleType]:
    """Own modules of the process."""
    return {name: sys.modules[name] for name in own_names()} if _STATE["shown"] is OUTSIDE else OUTSIDE.modules


def _mark() -> tuple[int, str]:
    """A value that changes whenever a module is imported."""
    return len(sys.modules), next(reversed(sys.modules))


def own_names() -> list[str]:
    """The names in sys.modules of own code."""
    if _STATE["mark"] != _mark():
        new = {name: module for name, module in sys.modules.copy().items() if _INSTALLED.get(name) is not module}
        own = [name for name, module in new.items() if _is_own(name, module)]
        _INSTALLED.update((name, new[name]) for name in new.keys() - own)
        _STATE.update(mark=_mark(), own=own)
    names: list[str] = _STATE["own"]
    return names


def _is_own(name: str, module: Any) -> bool:
    if module is None or name in _NEVER or name.partition(".")[0] in PACKAGES:
        return False
    attributes = getattr(module, "__dict__", {})
    file, path = attributes.get("__file__"), attributes.get("__path__")
    return own_file(file) if isinstance(file, str) else own_folders(path)


def own_folders(path: Any) -> bool:
    """Whether one of these folders (of a package without a file) is outside the project and the libraries."""
    return any(isinstance(folder, str) and own_file(f"{folder}/x") for folder in path or ())


def whole(file: str) -> str:
    """An absolute path without `..`; links stay."""
    return os.path.normpath(Path(file).absolute())


def own_file(file: str) -> bool:
    """Whether a file is own code: outside the standard library, site-packages and this project."""
    return not file.startswith("<") and _is_outside(whole(file))


@lru_cache(maxsize=1 << 14)
def _is_outside(file: str) -> bool:
    return not ({"site-packages", "dist-packages"} & set(Path(file).parts) or file.startswith(_ours()))


@cache
def _ours() -> tuple[str, ...]:
    package = Path(__file__).resolve().parents[2]
    home = package / "bundled" if (package / "bundled").is_dir() else package.parent
    library = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), str(Path(os.__file__).parent)]
    folders = [str(package), *(str(home / name) for name in (*PACKAGES, "services")), *library]
    return tuple(f"{path}{os.sep}" for folder in folders for path in {folder, os.path.realpath(folder)})


def content(file: str) -> bytes | None:
    """A file's bytes; of a module in an archive those of the archive; None if it is missing."""
    path = Path(file)
    _STATE["reading"] = True
    try:
        return next((each.read_bytes() for each in (path, *path.parents) if each.is_file()), None)
    finally:
        _STATE["reading"] = False


@cache
def _watch_opened_files() -> None:
    """Follow every file that Python opens from now on, because a file may be executed without being imported."""
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    world = _STATE["shown"]
    if event == "open" and world is not OUTSIDE and not _STATE["reading"]:
        file = arguments[0]
        if isinstance(file, str) and file.endswith((".py", ".pyc")) and not _is_shown(sys._getframe(1)):
            world.opened(whole(file))


def _is_shown(opener: FrameType) -> bool:
    """Whether linecache opens a file: its lines are shown (a traceback, Dask's profile of a worker), not executed."""
    frames = (opener, opener.f_back)  # linecache, or tokenize on its behalf
    return any(frame is not None and frame.f_globals.get("__name__") == "linecache" for frame in frames)
