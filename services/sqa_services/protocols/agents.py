"""Agent classes named in a command line or a config: "file.py:Class" or "module:Class"."""

from pathlib import Path
from typing import TypeVar

from sqa.core import ConfigError
from sqa.core.own.code import Code, load
from sqa.core.paths import in_file

T = TypeVar("T")


def agent_class(option: str, target: str, base: type[T]) -> tuple[type[T], Code]:
    """Return the named subclass of `base` and its code.  Raises ConfigError, which names the option."""
    module, _, name = target.rpartition(":")
    if not (module and name):
        raise ConfigError(f"{option}: must be file.py:ClassName or module:ClassName, got {target!r}")
    if in_file(target) and not Path(module).is_file():
        raise ConfigError(f"{option}: no such file: {module}")
    try:
        code = load(target)
    except ModuleNotFoundError as error:
        problem = f"{target} needs the Python module {error.name!r}, which is not installed"
        raise ConfigError(f"{option}: {problem}") from error
    except ConfigError as error:
        raise ConfigError([f"{option}: {problem}" for problem in error.problems]) from error
    found = getattr(code.root, name, None)
    if not (isinstance(found, type) and issubclass(found, base)):
        kind = f"a subclass of {base.__module__}.{base.__qualname__}"
        raise ConfigError(f"{option}: {module} has no agent class {name!r} ({kind})")
    return found, code
