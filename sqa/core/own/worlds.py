"""Which of your own modules are to be seen in `sys.modules`: those of the process, or those of one part.

A `World` is put in place of what is there and taken away again.  Installed modules are the same in all of them.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from sqa.core.own import PACKAGES

_NEVER = frozenset({"__main__", "__mp_main__"})  # cannot be executed again


class Searched(list[str]):
    """sys.path while a part is at work, which is told when folders are put into it."""


def _telling(name: str) -> Callable[..., Any]:
    def method(self: Searched, *arguments: Any) -> Any:
        result = getattr(list, name)(self, *arguments)
        _STATE["shown"].searches()
        return result

    return method


for _name in ("append", "extend", "insert", "__iadd__", "__setitem__"):
    setattr(Searched, _name, _telling(_name))


class World:
    """Own modules and folders to search; nothing of it is to be seen before `running`."""

    def __init__(self) -> None:
        self.modules: dict[str, ModuleType] = {}
        self.path: list[str] = []
        self.hidden: frozenset[str] = frozenset()  # names of installed modules that are out of sight here
        self._displaced: dict[str, ModuleType] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Its modules are seen, and its folders searched.

        sys.modules is the process's: while another thread is in another world this one waits for it, PATIENCE at most,
        since that thread may wait for this one.
        """
        _listen()
        me = threading.get_ident()
        with _SWITCHED:
            _SWITCHED.wait_for(lambda: all(world is self or thread == me for thread, world in _ENTERED), PATIENCE)
            _enter([*_ENTERED, (me, self)])
        try:
            yield
        finally:
            with _SWITCHED:
                last = len(_ENTERED) - 1 - _ENTERED[::-1].index((me, self))
                _enter([*_ENTERED[:last], *_ENTERED[last + 1 :]])

    def opened(self, file: str) -> None:
        """A Python file was opened meanwhile."""

    def searches(self) -> None:
        """Folders were put into sys.path meanwhile."""

    def put(self) -> None:
        """Into sys.modules and sys.path."""
        hidden, self.hidden = self.hidden, frozenset()
        self.hide(hidden)
        sys.modules.update(self.modules)
        sys.path = self.path

    def hide(self, names: frozenset[str]) -> None:
        """Put installed modules out of sight, with what is in them."""
        self.hidden |= names
        found = [name for name in sys.modules.copy() if name.partition(".")[0] in names] if names else []
        self._displaced |= {name: sys.modules.pop(name) for name in found}
        _STATE["mark"] = None

    def take(self, names: list[str]) -> None:
        """Out of them; `names` are those of own modules."""
        if self.hidden:
            names = [*names, *(name for name in sys.modules.copy() if name.partition(".")[0] in self.hidden)]
        self.modules = {name: sys.modules.pop(name) for name in dict.fromkeys(names)}
        sys.modules.update(self._displaced)
        self._displaced = {}
        self.path = sys.path


@contextmanager
def waiting() -> Iterator[None]:
    """While this thread waits for another one, it is in no world: the other one may need its turn."""
    me = threading.get_ident()
    with _SWITCHED:
        left = [entry for entry in _ENTERED if entry[0] == me]
        _enter([entry for entry in _ENTERED if entry[0] != me])
    try:
        yield
    finally:
        if left:
            with _SWITCHED:
                _SWITCHED.wait_for(lambda: all(world is left[-1][1] for _, world in _ENTERED), PATIENCE)
                _enter([*_ENTERED, *left])


def _enter(entries: list[tuple[int, World]]) -> None:
    """The last of these threads shows its world."""
    _ENTERED[:] = entries
    _show(entries[-1][1] if entries else OUTSIDE)
    _SWITCHED.notify_all()


OUTSIDE = World()  # the process's
PATIENCE = 30.0  # seconds
_SWITCHED = threading.Condition()
_ENTERED: list[tuple[int, World]] = []  # thread, world
_STATE: dict[str, Any] = {"shown": OUTSIDE, "mark": None, "own": [], "bytecode": False, "reading": False}
_INSTALLED: dict[str, object] = {}  # modules that are no own code


def _show(world: World) -> None:
    before = _STATE["shown"]
    if before is world:
        return
    before.take(own_names())
    world.put()
    finders: list[Any] = sys.meta_path
    for one, found in ((before, False), (world, True)):  # a part's world finds what is imported in it
        if one is not OUTSIDE:
            finders.insert(0, one) if found else finders.remove(one)
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


def is_installed(name: str) -> bool:
    """Whether a module of the process is loaded that is no own code."""
    return name in sys.modules and name not in own_names()


def _mark() -> tuple[int, str]:
    """What changes whenever a module is imported."""
    return len(sys.modules), next(reversed(sys.modules))


def own_names() -> list[str]:
    """The names in sys.modules of own code."""
    if _STATE["mark"] != _mark():
        new = {name: module for name, module in sys.modules.copy().items() if _INSTALLED.get(name) is not module}
        own = [name for name, module in new.items() if _is_own(name, module)]
        _INSTALLED.update((name, new[name]) for name in new.keys() - own)
        _STATE.update(mark=_mark(), own=own)
    found: list[str] = _STATE["own"]
    return found


def _is_own(name: str, module: Any) -> bool:
    if module is None or name in _NEVER or name.partition(".")[0] in PACKAGES:
        return False
    known = getattr(module, "__dict__", {})
    file, path = known.get("__file__"), known.get("__path__")
    return own_file(file) if isinstance(file, str) else own_folders(path)


def own_folders(path: Any) -> bool:
    """Whether own files may lie in one of these folders (those of a package without a file)."""
    return any(isinstance(folder, str) and own_file(f"{folder}/x") for folder in path or ())


def whole(file: str) -> str:
    """A path from the root on, without `..`; links stay."""
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
    return tuple(f"{place}{os.sep}" for folder in folders for place in {folder, os.path.realpath(folder)})


def content(file: str) -> bytes | None:
    """A file's bytes; of a module in an archive those of the archive; None where there is none."""
    path = Path(file)
    _STATE["reading"] = True
    try:
        return next((place.read_bytes() for place in (path, *path.parents) if place.is_file()), None)
    finally:
        _STATE["reading"] = False


@cache
def _listen() -> None:
    """Hear of every file that Python opens from now on: not every file that is executed is imported."""
    sys.addaudithook(_heard)


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    world = _STATE["shown"]
    if event == "open" and world is not OUTSIDE and not _STATE["reading"]:
        file = arguments[0]
        if isinstance(file, str) and file.endswith((".py", ".pyc")):
            world.opened(whole(file))
