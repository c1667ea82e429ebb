"""Every command in README.md and docs/ is executed, unless a requirement is missing.

All commands run in one folder and in this process, reduced to seconds (tests/documented/). SQA_DOCS=1 adds slower
commands.
"""

import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import requests
from cluster_ablation import threads_as_workers
from documented import folder as folders
from documented.pages import PAGES, commands, complaint, program
from documented.recipes import CANNOT, RECIPES, SLOW, WORDS, Cannot, Run, Serve, needs, recipe_of
from needs import require

from sqa import cli
from sqa.core import ROOT, cache_dir

pytestmark = pytest.mark.filterwarnings("default")  # as for a user, who sees warnings on stderr
PLACEHOLDERS = {
    "RUN": ("runs/mini_es_wait6_bm25", "runs/other", "runs/third"),
    "CONFIG": ("configs/mini_es_wait6_bm25.yaml",),
}
FINISHED = (  # executed first
    "sqa run configs/mini_es_wait6_bm25.yaml",
    "sqa run other.yaml",
    "sqa run third.yaml",
)


def documented() -> dict[str, list[str]]:
    """Return a dict that maps every complete command of the pages, as it is shown, to its words."""
    results = {}
    for path in PAGES:
        if path.name == "own_parts.md":  # executed in order in a separate folder by tests/e2e/test_own_page.py
            continue
        for words, _ in commands(path.read_text("utf-8")):
            words = [word.removesuffix("...") for word in words]
            if words[0] != "sqa" or not _is_name(words):
                results.setdefault(" ".join(words), words)
    return results


def _is_name(words: list[str]) -> bool:
    """Return whether the words are only a mention such as `sqa view` or `sqa board`, which needs further arguments."""
    command, rest = program(), words[1:]
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    return not rest and (hasattr(command, "commands") or bool(complaint(words[1:], complete=True)))


COMMANDS = documented()


def lines_of(key: str) -> list[str]:
    """Return the lines to execute for a command."""
    recipe = recipe_of(key)
    if isinstance(recipe, Serve):
        return [recipe.line or _filled(key), *(ask for ask in recipe.asks if not ask.startswith("GET "))]
    return list(recipe.lines) or [_filled(key)] if isinstance(recipe, Run) else []


def _filled(key: str) -> str:
    """Return the command with placeholders replaced and [optional words] removed."""
    left = {name: list(values) for name, values in PLACEHOLDERS.items()}
    words = [word for word in COMMANDS[key] if not word.startswith("[")]
    return shlex.join(left[word].pop(0) if word in left else WORDS.get(word, word) for word in words)


# ------------------------------------------------------------------------------------------------------ executing


class Shell:
    """A shell that executes `sqa` commands and Python modules in a folder, in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.done = folder, set[str]()
        self._address, self._open = "", ExitStack()

    def close(self) -> None:
        self._open.close()

    def execute(self, key: str) -> None:
        """Execute a command of the pages, and before it the commands that it requires."""
        recipe = recipe_of(key)
        assert not isinstance(recipe, Cannot), key
        for before in recipe.after:
            if before not in self.done:
                self.execute(before)
        self.done.add(key)
        if isinstance(recipe, Serve):
            return self._serve(lines_of(key)[0], recipe)
        for line in lines_of(key):
            self.line(line, recipe.stdin)

    def line(self, line: str, stdin: str = "") -> None:
        """Execute one line, which must succeed."""
        line = line.replace("{scheduler}", self._scheduler()) if "{scheduler}" in line else line
        inner, _, rest = line.partition(" && ")
        folder = self.folder / inner.removeprefix("cd ") if rest else self.folder
        words = shlex.split(rest or line)
        streams = {"stdin": io.BytesIO(stdin.encode()), "stdout": io.BytesIO(), "stderr": io.BytesIO()}
        texts = {name: io.TextIOWrapper(stream, "utf-8", write_through=True) for name, stream in streams.items()}
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            for name, text in texts.items():
                patch.setattr(sys, name, text)
            code = _call(words)
        printed = streams["stderr"].getvalue().decode()
        assert code == 0 and "Traceback" not in printed, f"{line}: exit code {code}\n{printed}"

    def _serve(self, line: str, recipe: Serve) -> None:
        """Run a server command, send the recipe's requests to the server, and stop it."""
        from sqa_services.net.server import bind, server_of

        words, asked = shlex.split(line), list[str]()
        file = words[words.index("--token-file") + 1] if "--token-file" in words else ""
        token = (self.folder / file).read_text(encoding="utf-8").strip() if file else ""
        headers = ({"Authorization": f"Bearer {token}"} if token else {}) | (
            {"Host": recipe.host} if recipe.host else {}
        )

        def run_app(app: Any, *_: Any) -> None:
            socket = bind("127.0.0.1", 0)
            url, server = f"http://127.0.0.1:{socket.getsockname()[1]}", server_of(app)
            thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
            thread.start()
            try:
                deadline = time.monotonic() + 60
                while not server.started and time.monotonic() < deadline:
                    time.sleep(0.01)
                for ask in recipe.asks:
                    _ask(url, ask, headers, self.line)
                    asked.append(ask)
            finally:
                server.should_exit = True
                thread.join()

        with pytest.MonkeyPatch.context() as patch:
            for module in ("net.server", "board.server", "protocols.iwslt.http"):
                patch.setattr(f"sqa_services.{module}.run_app", run_app)
            self.line(line)
        assert asked == list(recipe.asks)

    def _scheduler(self) -> str:
        """Return the address of a scheduler with two workers, started at the first call."""
        if not self._address:
            self._address = self._open.enter_context(threads_as_workers(workers=2)).scheduler_address
        return self._address


def _ask(url: str, ask: str, headers: dict[str, str], execute: Callable[[str], None]) -> None:
    method, _, path = ask.partition(" ")
    if method != "GET":
        return execute(ask.replace("{url}", url))
    reply = requests.get(url + path, headers=headers, timeout=30)
    assert reply.ok, f"{ask}: {reply.status_code} {reply.text[:300]}"


def _call(words: list[str]) -> int:
    """Run `sqa ...` or `python -m MODULE ...` in this process and return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        try:
            if words[0] == "sqa":
                patch.setattr(sys, "argv", words)
                cli.main()
            else:
                patch.setattr(sys, "argv", words[2:])
                for name in words[2:4]:  # another test may have loaded the module
                    patch.delitem(sys.modules, name, raising=False)
                runpy.run_module(words[2], run_name="__main__", alter_sys=True)
        except SystemExit as stopped:
            return int(stopped.code or 0)
    return 0


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Yield a shell in a folder with small configs and three finished runs, without the real data."""
    folder = tmp_path_factory.mktemp("documented")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SQA_MIRROR", "SQA_TOKEN"):
            patch.delenv(name, raising=False)
        unpacked = cache_dir() / "pbmt"  # bundled models, unpacked once per machine
        unpacked.mkdir(parents=True, exist_ok=True)
        (folder / "cache").mkdir()
        (folder / "cache" / "pbmt").symlink_to(unpacked)
        patch.setenv("SQA_CACHE", str(folder / "cache"))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "tests")]))  # for child processes
        folders.prepare(folder)
        made = Shell(folder)
        for line in FINISHED:
            made.line(line)
        yield made
        made.close()


# --------------------------------------------------------------------------------------------------------- the tests

EXECUTED = [key for key, words in COMMANDS.items() if words[0] != "make" and not isinstance(recipe_of(key), Cannot)]
SLOWLY = pytest.mark.needs("SQA_DOCS")


@pytest.mark.parametrize(
    "key", [pytest.param(key, marks=SLOWLY) if re.fullmatch(SLOW, key) else key for key in EXECUTED]
)
def test_documented_command_runs(shell: Shell, key: str) -> None:
    require(*needs(key))
    if key not in shell.done:
        shell.execute(key)


@pytest.mark.needs("make")
@pytest.mark.parametrize("key", [key for key, words in COMMANDS.items() if words[0] == "make"])
def test_make_target_passes_a_dry_run(key: str) -> None:
    """These targets install packages or take minutes, so they are not executed."""
    dry = subprocess.run(["make", "-n", *COMMANDS[key][1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert dry.returncode == 0, dry.stderr


def test_recipes_match_commands_of_a_page() -> None:
    assert sorted(RECIPES.keys() - COMMANDS.keys()) == []
    for cannot in CANNOT:
        assert any(re.fullmatch(cannot.commands, key) for key in COMMANDS), cannot
        assert any((ROOT / folder / "tests" / cannot.test).exists() for folder in ("", "services")), cannot


@pytest.mark.parametrize("key", [key for key in EXECUTED if key in RECIPES])
def test_executed_command_has_the_options_shown(key: str) -> None:
    """One of the executed lines has the shown command or module and all of its options."""
    path, options = _place_and_options(COMMANDS[key])
    executed = [_place_and_options(shlex.split(line.partition(" && ")[2] or line)) for line in lines_of(key)]
    assert any(where[: len(path)] == path and options <= having for where, having in executed), executed


def _place_and_options(words: Sequence[str]) -> tuple[list[str], set[str]]:
    """Return the module or the subcommand of `sqa` as a list of words, and the names of the options."""
    options = {word.partition("=")[0] for word in words if word.startswith("-") and word != "-"}
    if words[0] != "sqa":
        return list(words[:3]), options
    command, path = program(), []
    for word in words[1:]:
        if word in getattr(command, "commands", {}):
            command, path = command.commands[word], [*path, word]
    return path, options


def test_unknown_command_fails(shell: Shell) -> None:
    for line in ("sqa run configs/mini_es_wait6_bm25.yaml --no-such-option", "sqa view runs/nobody-made-this"):
        with pytest.raises(AssertionError, match="exit code 2"):
            shell.line(line)
