"""A run that is killed or interrupted and started again writes the same bytes as an uninterrupted run."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from subprocess import PIPE

import yaml
from doubles import write_questions
from outcome import PROCESSES, silent
from small_runs import PARTS

from sqa.core import ROOT

QUESTIONS = 200  # four blocks


def prepare(folder: Path) -> None:
    folder.mkdir()
    write_questions(folder / "questions.jsonl", QUESTIONS)
    translator = {"name": "doubles:build_translator", "k": 2, "delay": 0.001}
    config = {"dataset": {"name": "questions.jsonl"}, **PARTS, "translator": translator}
    (folder / "t.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


COMMAND = [sys.executable, "-m", "sqa", "run", "t.yaml"]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]), "OMP_NUM_THREADS": "1"}


def start(folder: Path) -> BaseProcess:
    process = PROCESSES.Process(target=silent, args=(folder, "run", "t.yaml"))
    process.start()
    return process


def ended(process: BaseProcess) -> int | None:
    """Wait for the end of a process, and return its exit code."""
    process.join(120)
    return process.exitcode


def kill_after(process: BaseProcess, folder: Path, blocks: int) -> bool:
    """Kill the process (-9) when `blocks` blocks exist; return False if the run ended before."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if len(list(folder.glob("runs/store/*/*/block-*.npz"))) >= blocks:
            os.killpg(process.pid, signal.SIGKILL)
            return ended(process) == -signal.SIGKILL
        if not process.is_alive():
            return False
        time.sleep(0.002)
    raise AssertionError("the run made no blocks for two minutes")


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of every file by path, except for the `.partial` files of killed writers."""
    files = [path for path in sorted(folder.glob("runs/**/*")) if path.is_file() and path.suffix != ".partial"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_killed_run_ends_with_the_same_bytes(tmp_path: Path) -> None:
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    for folder in (alone, killed):
        prepare(folder)
    kills = sum(kill_after(start(killed), killed, blocks) for blocks in (1, 3, 6))
    assert kills >= 2  # the last kill may come too late
    assert ended(start(alone)) == ended(start(killed)) == 0
    expected = contents(alone)
    assert len([name for name in expected if name.endswith(".npz")]) == 4 * 4 + 1
    assert contents(killed) == expected


def test_ctrl_c_explains_how_to_resume(tmp_path: Path) -> None:
    prepare(tmp_path / "t")
    command = [*COMMAND, "limit=20", "translator.delay=5"]  # 5 s for each sentence
    # if the tests run in the background, child processes ignore SIGINT by default
    interruptible = partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    pipes = {"stdout": PIPE, "stderr": PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path / "t", env=ENVIRONMENT, preexec_fn=interruptible, **pipes) as running:
        assert running.stderr is not None and running.stderr.readline().startswith("translate")
        time.sleep(0.5)  # tqdm draws the line before its object is complete, and must not be interrupted there
        running.send_signal(signal.SIGINT)
        text = running.stderr.read()
    assert running.returncode == 130 and "Traceback" not in text
    assert text.rstrip().endswith(
        "sqa: interrupted; finished results are stored: run the same command again to continue"
    )
