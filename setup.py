"""The wheel: the packages at the top of site-packages, the folders of data below `sqa` (ARCHITECTURE.md).

Everything else is in pyproject.toml, which cannot express that folders are moved in the wheel.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

FOLDERS = ("configs", "data", "docs/example", "notebooks")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


class BuildWithFolders(build_py):
    """Build step that copies the folders into `sqa/bundled`, except for an editable install."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        bundled = Path(self.build_lib, "sqa", "bundled")
        shutil.rmtree(bundled, ignore_errors=True)  # the output of an earlier build
        for folder in FOLDERS:
            shutil.copytree(folder, bundled / folder, ignore=LEFT_OUT)


setup(cmdclass={"build_py": BuildWithFolders})
