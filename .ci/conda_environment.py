"""Check environment.yml: install its pip section into a fresh virtual environment, and run `sqa --version`.

The check needs no conda, because conda's channels cannot be reached from every machine.
"""

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Exit with the status of the first command that fails."""
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    [section] = [entry["pip"] for entry in dependencies if isinstance(entry, dict)]
    with tempfile.TemporaryDirectory() as folder:
        programs = Path(folder) / "environment" / "bin"
        venv.create(programs.parent, with_pip=True)
        (requirements := Path(folder) / "requirements.txt").write_text("\n".join(section), encoding="utf-8")
        install = [programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]
        for command in ([*install, requirements], [programs / "sqa", "--version"]):
            if status := subprocess.run(command, cwd=ROOT).returncode:
                sys.exit(status)


if __name__ == "__main__":
    main()
