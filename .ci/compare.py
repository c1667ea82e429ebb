"""Compare the two runs of the test suite that `.ci/run` makes: `python .ci/compare.py FOLDER`.

The folder has the JUnit file, the output and the peak memory of each run.  The exit status is 1 if a test was skipped
in both runs, unless its reason is an external requirement (`EXTERNAL` of tests/needs.py).  A process that needed more
than `LIMIT` is reported.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from needs import EXTERNAL

LIMIT = 3 * 1024  # MiB


def outcomes(path: Path) -> dict[str, tuple[str, str]]:
    """Return the outcome ("passed", "failure", "error", "skipped") of each test, and the reason to skip it."""
    found = {}
    for case in ElementTree.parse(path).iter("testcase"):
        child = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        outcome = ("passed", "") if child is None else (child.tag, child.get("message") or "")
        found[f"{case.get('classname')}::{case.get('name')}"] = outcome
    return found


def skipped(test: str, run: dict[str, tuple[str, str]]) -> bool:
    """Return whether a test was skipped, alone or with its whole module, which JUnit lists as "::MODULE"."""
    modules = tuple(name.removeprefix("::") + end for name in run if name.startswith("::") for end in ("::", "."))
    return run.get(test, ("",))[0] == "skipped" or test.startswith(modules)


def external(reason: str) -> bool:
    """Return whether a reason to skip names an external requirement."""
    name = re.match(r"needs ([\w-]+): ", reason)
    return name is not None and name[1] in EXTERNAL


def main(folder: Path) -> int:
    """Print the counts of both runs and their problems; return the exit status."""
    runs = {name: outcomes(folder / f"{name}.xml") for name in ("bare", "full")}
    problems = []
    for name, run in runs.items():
        counts = Counter(outcome for outcome, _ in run.values())
        peak = json.loads((folder / f"{name}.peak").read_text(encoding="utf-8"))
        listed = ", ".join(f"{n} {outcome}" for outcome, n in counts.items())
        print(f"{name}: {listed}; {peak['MiB']} MiB ({peak['process']})")
        if peak["MiB"] > LIMIT:
            print(f"{name}: one process needed more than {LIMIT} MiB")
    for test, (outcome, reason) in runs["full"].items():
        if outcome == "skipped" and skipped(test, runs["bare"]) and not external(reason):
            problems.append(f"{test} is skipped in both runs: {reason}")
    print(*problems, sep="\n")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
