"""Hooks and fixtures for all tests, such as a browser and the skipping of tests whose data are missing."""

import gc
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("sqa", deadline=None, max_examples=50)  # a slow machine is not a failure
settings.load_profile("sqa")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if Path(os.environ.get("SQA_MIRROR", "/nonexistent")).is_dir():
        return
    skip = pytest.mark.skip(reason="needs the real data: set SQA_MIRROR to a folder with the manifest's files")
    for item in items:
        if "mirror" in item.keywords:
            item.add_marker(skip)


def pytest_collection_finish() -> None:
    """Exclude modules and tests from garbage collection, which saves a tenth of the time of a test run."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def fsync_is_skipped() -> Iterator[None]:
    """Skip `fsync`, which takes a third of a small run's time, because no test simulates a power failure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
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
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs the Python package playwright")
    path = os.environ.get("SQA_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("needs Chromium on the path, or named by SQA_CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()
