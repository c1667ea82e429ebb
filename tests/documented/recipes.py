"""How the tests run the commands in README.md and docs/ on bundled data in seconds.

By default a command runs as the page shows it, after the replacements in `WORDS`. recipes.yaml lists commands with
larger differences, such as a `--limit`, other arguments, or commands to run first, and commands that do not run, with
the missing requirement.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tables import tables_of


@dataclass(frozen=True, slots=True)
class Run:
    """Commands to execute in order; by default the command as shown."""

    lines: Sequence[str] = ()
    after: Sequence[str] = ()  # commands of the pages to run first, each once
    stdin: str = ""


@dataclass(frozen=True, slots=True)
class Serve:
    """A server on a free port that receives requests and then an interrupt."""

    line: str = ""  # start command; empty: the command as shown
    asks: Sequence[str] = ("GET /",)  # "GET PATH", or commands with {url}
    host: str = ""  # host name of the requests; empty: the server's address
    after: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Cannot:
    """Commands that are not executed, with the reason and the test file that covers them."""

    commands: str  # regular expression for commands of the pages
    why: str
    test: str = ""  # file in tests/


TABLES = tables_of(__file__)
WORDS: dict[str, str] = TABLES["words"]
CANNOT = [Cannot(*row) for row in TABLES["cannot"]]
RECIPES = {key: (Serve if {"line", "asks"} & keys.keys() else Run)(**keys) for key, keys in TABLES["recipes"].items()}
SLOW = (  # more than a few seconds: only with SQA_DOCS=1
    r"sqa (translations|reproduce(?! mine)|ablation|diagnose|train smt|validate vist) .*|sqa scorer meteor.*"
    r"|sqa export RUN --to pearmut .*"
    r"|sqa run (questions\.yaml translator\.model=|configs/xqb\.yaml:es_apertium).*|.* --scheduler .*"
    r"|python -m guessers\..*"
)


def recipe_of(key: str) -> Run | Serve | Cannot:
    """Return the recipe of a command; by default, run the command as shown."""
    return next((each for each in CANNOT if re.fullmatch(each.commands, key)), RECIPES.get(key, Run()))


def needs(key: str) -> list[str]:
    """Return the packages and programs that a command needs."""
    return [name for commands, names in TABLES["needs"] if re.fullmatch(commands, key) for name in names]
