"""METEOR 1.5 (Denkowski and Lavie 2014): the original Java program, called over its -stdio protocol.

The package pycocoevalcap (extra "metrics") ships the jar and its English paraphrases; SQA_METEOR_JAR names another jar.
Its 23 statistics are not exactly additive: METEOR's corpus score leaves out the chunks of segments that match perfectly
(`MeteorStats.addStats`).
"""

import os
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from sqa.core.errors import ConfigError
from sqa.core.packages import lacking
from sqa_services.protocols.external import External, ExternalConfig

DEFAULT_ARGUMENTS = ("-l", "en", "-norm")  # recommendation of METEOR's authors for plain text
HTER_ARGUMENTS = ("-l", "en", "-t", "hter")  # alpha .40 beta 1.50 gamma .35 delta .55, text unchanged


def jar() -> Path:
    """Return the path of meteor-1.5.jar; its data folder is in the same directory."""
    configured = os.environ.get("SQA_METEOR_JAR")
    if configured:
        path = Path(configured)
    else:
        package = find_spec("pycocoevalcap")
        if package is None or not package.submodule_search_locations:
            raise lacking("pycocoevalcap", "METEOR, without SQA_METEOR_JAR,")
        path = Path(package.submodule_search_locations[0], "meteor", "meteor-1.5.jar")
    if not path.is_file():
        raise ConfigError(f"{path}: METEOR's jar is missing; reinstall pycocoevalcap or set SQA_METEOR_JAR")
    return path


def command(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the command line of METEOR with the -stdio protocol.  Raises ConfigError if Java or the jar is missing."""
    java = shutil.which("java")
    if java is None:
        problem = "METEOR needs Java, but no java is on PATH: install a Java runtime (17 is tested)"
        raise ConfigError(problem)
    return (java, "-Xmx2G", "-XX:+UseSerialGC", "-jar", str(jar()), "-", "-", "-stdio", *arguments)


def start(arguments: Sequence[str] = DEFAULT_ARGUMENTS) -> External:
    """Start METEOR and return the running program, which the caller must close."""
    return External.start(ExternalConfig(command(arguments)))
