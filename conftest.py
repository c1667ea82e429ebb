"""Hooks and fixtures for all tests: skipping of tests with missing requirements, peak memory, a browser."""

import gc
import json
import os
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from needs import chromium, missing, require

from sqa.core import cache_dir

settings.register_profile("sqa", deadline=None, max_examples=50)  # a slow machine is not a failure
settings.load_profile("sqa")


def pytest_configure() -> None:
    """Use a temporary cache if the user's home folder cannot be written; processes started later inherit it."""
    try:
        cache_dir().mkdir(parents=True, exist_ok=True)
    except OSError:
        os.environ["SQA_CACHE"] = tempfile.mkdtemp(prefix="sqa-cache-")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests whose requirements are missing (tests/needs.py)."""
    for item in items:
        names = [name for mark in item.iter_markers("needs") for name in mark.args]
        reasons = [missing(name) for name in [*names, *(["SQA_MIRROR"] if item.get_closest_marker("mirror") else [])]]
        if any(reasons):
            item.add_marker(pytest.mark.skip(reason=next(filter(None, reasons))))


def pytest_collection_finish() -> None:
    """Exclude modules and tests from garbage collection, which saves a tenth of the time of a test run."""
    gc.collect()
    gc.freeze()


PEAKS: dict[str, int] = {}  # process -> peak memory in MiB


def peaks() -> dict[str, int]:
    """Return the peak memory of this process and of the largest process that it started, in MiB."""
    kinds = {"itself": resource.RUSAGE_SELF, "a process that it started": resource.RUSAGE_CHILDREN}
    return {kind: resource.getrusage(who).ru_maxrss // 1024 for kind, who in kinds.items()}


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["peaks"] = peaks()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect the peaks of a worker of pytest-xdist."""
    PEAKS.update(
        {
            f"{node.gateway.id}, {kind}": peak
            for kind, peak in getattr(node, "workeroutput", {}).get("peaks", {}).items()
        }
    )


def pytest_terminal_summary(terminalreporter: Any) -> None:
    process, peak = max((PEAKS or peaks()).items(), key=lambda item: item[1])
    terminalreporter.write_line(f"peak memory of one process: {peak / 1024:.1f} GiB ({process})")
    if path := os.environ.get("SQA_PEAK"):  # for .ci/compare.py
        Path(path).write_text(json.dumps({"process": process, "MiB": peak}), encoding="utf-8")


@pytest.fixture(autouse=True, scope="session")
def fsync_is_skipped() -> Iterator[None]:
    """Skip `fsync`, which takes a third of a small run's time, because no test simulates a power failure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def runs_stay_in_this_process() -> Iterator[None]:
    """Use one worker unless a test asks for more, because pytest-xdist already uses all processors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sqa.pipeline.runner.usable", lambda: 1)
        yield


@pytest.fixture(autouse=True)
def user_parts_are_forgotten() -> Iterator[None]:
    """Forget user-defined parts after each test, because files of two tests may have the same name."""
    yield
    code = sys.modules.get("sqa.core.own.code")
    if code is not None:
        code.forget([part for target, part in code.LOADED.items() if ".py:" in target])


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium driven by Playwright; skip tests if either is missing."""
    require("browser", "chromium")
    from playwright import sync_api

    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield started
        started.close()
