"""Base package of the project: values, contracts, errors, the trace.  It imports no other package of the project.

The names that other packages import are listed in `__init__.pyi`, and imported on first use.
"""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def exports(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, from its name and the file of its `__init__`.

    Its `__init__.pyi`, which type checkers read too, has a line `from package.module import name as name` per name.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    modules = {alias.name: node.module or "" for node in imports for alias in node.names}

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return get, lambda: sorted(modules), list(modules)


__getattr__, __dir__, __all__ = exports(__name__, __file__)
