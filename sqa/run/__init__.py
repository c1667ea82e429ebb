"""One run: its config, the four stages, and the folder that it leaves.

`sqa.run` is this room and, called, the function of the same name: `sqa.run("config.yaml", k=9)` is `sqa.api.run`.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A module that can be called as the function that it shares its name with."""

    def __call__(self, *arguments: Any, **keys: Any) -> Any:
        return import_module("sqa.api").run(*arguments, **keys)


sys.modules[__name__].__class__ = _Callable
