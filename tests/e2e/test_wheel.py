"""The wheels of both distributions in a separate environment, used from a folder outside the repository.

Only the wheels are installed in the environment. A .pth file adds the site-packages of the tests' environment for the
dependencies, so that no network access is needed. The repository is not on the path.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from needs import reason

import sqa
from sqa.core import ROOT
from sqa.files import read_yaml
from tests.small_ablation import WAIT_K

pytestmark = pytest.mark.slow
LEFT_OUT = ("tests", "services/tests")  # folders of the repository that the wheels do not need
# short, because the aligner of `sqa view` is not compiled here
QUESTION = {
    "id": "q",
    "language": "es",
    "source": "Lima es su capital.",
    "reference": "Lima is its capital.",
    "page": "Peru",
}


@dataclass(frozen=True, slots=True)
class User:
    """An environment and a folder outside the repository."""

    bin: Path
    packages: Path  # its site-packages
    folder: Path

    def sqa(self, *words: str) -> str:
        """Run `sqa`, which must succeed, and return its stdout."""
        return self.run(str(self.bin / "sqa"), *words)

    def run(self, *words: str) -> str:
        kept = {"PATH", "HOME", "LANG", "TMPDIR", "NUMBA_CACHE_DIR"}
        environment = {name: value for name, value in os.environ.items() if name in kept}
        environment |= {"SQA_CACHE": str(self.folder / "cache"), "OMP_NUM_THREADS": "1"}
        environment["NUMBA_DISABLE_JIT"] = "1"  # compiling again in the new folder takes half a minute
        done = subprocess.run(words, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> User:
    home = tmp_path_factory.mktemp("outside")
    sources = home / "sources"
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip(reason("git"))
    for name in tracked.stdout.splitlines():
        if not name.startswith(LEFT_OUT) and (ROOT / name).is_file():
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, sources / name)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*build, "-w", str(home / "wheel"), str(sources), str(sources / "services")], check=True, cwd=home)
    shutil.rmtree(sources)
    venv.create(home / "environment", symlinks=True, with_pip=False)
    python = home / "environment" / "bin" / "python"
    wheels = sorted((home / "wheel").glob("*.whl"))
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, *map(str, wheels)], check=True, cwd=home)
    [packages] = (home / "environment" / "lib").glob("python3*/site-packages")
    metadata = {wheel.name.partition("-py3")[0] + ".dist-info" for wheel in wheels}
    roots = {"sqa", "smt", "guessers", "buzzers", "experiments", "sqa_services"}
    assert len(metadata) == 2 and {path.name for path in packages.iterdir()} == roots | metadata
    lent = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "lent.pth").write_text("".join(f"{path}\n" for path in lent), encoding="utf-8")
    (home / "folder").mkdir()
    (home / "folder" / "question.jsonl").write_text(json.dumps(QUESTION) + "\n", encoding="utf-8")
    return User(python.parent, packages, home / "folder")


def test_nothing_is_imported_from_the_repository(user: User) -> None:
    code = (
        "import sqa, sqa_services, smt, guessers, buzzers, experiments, sqa.core.paths as p; "
        "print(*(m.__file__ for m in (sqa, sqa_services, smt, guessers, buzzers, experiments)), p.ROOT, sep='\\n')"
    )
    for path in user.run(str(user.bin / "python"), "-c", code).splitlines():
        assert Path(path).is_relative_to(user.packages)
    assert (user.packages / "sqa" / "py.typed").is_file()
    assert "installed" in json.loads(user.sqa("doctor", "--json"))[0]["remark"]
    assert "usage" in user.run(str(user.bin / "python"), "-m", "guessers.noise", "--help")


def test_wheel_runs_bundled_config_view_and_log(user: User) -> None:
    run = ("run", "mini_es_wait6_bm25", "dataset=question.jsonl")
    report = user.sqa(*run, "name=first")
    config = {**read_yaml(ROOT / "configs" / "mini_es_wait6_bm25.yaml"), "dataset": str(user.folder / "question.jsonl")}
    ours = sqa.run(config, runs=user.folder / "ours", progress=False)
    assert f"\nal\t{ours.metrics['al']:.6f}\t" in report  # equal to the value from the repository
    assert user.sqa("view", "runs/first") == "runs/first/view.html\n"
    log = user.sqa("export", "runs/first", "--to", "instances.log", "--output", "log").strip()
    back = user.sqa(*run, "name=back", f"translator={{name: recorded, file: {log}}}")
    assert back == report
    assert "did you mean" in user.run("sh", "-c", f"{user.bin}/sqa run mini_es_wait7_bm25 2>&1; true")


def test_services_wheel_installs_its_commands(user: User) -> None:
    assert {path.name for path in user.packages.glob("sqa_services/*/page")} == {"page"}
    row = '{"question": "q", "step": 0, "token": "x", "g": 1, "guess": "Peru", "buzz": true}'
    (user.folder / "submission.jsonl").write_text(f"{row}\n", encoding="utf-8")
    assert "\new\t" in user.sqa("validate", "sqa", "submission.jsonl", "--questions", "question.jsonl")
    assert "leaderboard" in user.sqa("board", "--help")


def test_wheel_draws_a_figure_of_the_paper(user: User) -> None:
    """The config in the working directory, which has a few bundled questions, replaces the bundled config."""
    bundled = user.packages / "sqa" / "bundled" / "configs" / "ablation.yaml"
    contestants = [{"guesser": {"name": "bm25"}, "buzzer": {"name": "mlp"}}]
    less = {"datasets": ["mini-es"], "k": [3, "full"], "translators": WAIT_K, "resamples": 20, "limit": 2, "workers": 1}
    cut = yaml.safe_load(bundled.read_text("utf-8")) | less | {"contestants": contestants}
    (user.folder / "configs").mkdir()
    (user.folder / "configs" / "ablation.yaml").write_text(yaml.safe_dump(cut), encoding="utf-8")
    made = [line for line in user.sqa("reproduce", "fig3").splitlines() if line.endswith(".png")]
    assert made == ["runs/ablation/figure3_mini-es.png"] and (user.folder / made[0]).stat().st_size > 10_000
