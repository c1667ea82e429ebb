"""`sqa sweep --shard`: independent processes that share one store."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import yaml
from cluster_ablation import blocks, results
from doubles import write_questions
from outcome import process
from small_runs import PARTS

from sqa.core.paths import ROOT

SWEEP = ("sweep", "swept.yaml", "k=1,3", "seed=1,2", "--workers", "1")


def started(folder: Path, shard: str) -> subprocess.Popen[str]:
    """Start a shard in a separate process."""
    around = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    call = [sys.executable, "-m", "sqa", *SWEEP, "--runs", "shared", "--shard", shard]
    return subprocess.Popen(call, cwd=folder, env=around, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_four_shards_write_the_same_bytes_as_a_sweep(tmp_path: Path) -> None:
    write_questions(tmp_path / "questions.jsonl", 300)  # five blocks
    mapping = {"name": "swept", "dataset": {"name": "questions.jsonl"}, **PARTS, "metrics": ["ew", "bleu"]}
    (tmp_path / "swept.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
    whole = process(*SWEEP, "--runs", "alone", cwd=tmp_path)
    assert whole.code == 0, whole.err
    shards = [started(tmp_path, f"{number}/4") for number in (1, 2, 3, 4)]
    shards[0].send_signal(signal.SIGKILL)
    ended = [shard.communicate(timeout=300) for shard in shards]
    assert [shard.returncode for shard in shards] == [-signal.SIGKILL, 0, 0, 0], ended
    shares = [len(list(tmp_path.glob("shared/store/translate/*/block-*")))]
    assert [out for out, _ in ended] == [""] * 4  # the table is not printed, because it needs the killed shard
    requeued = process(*SWEEP, "--runs", "shared", "--shard", "1/4", cwd=tmp_path)
    shares.append(len(list(tmp_path.glob("shared/store/translate/*/block-*"))))
    assert 6 <= shares[0] <= 8 and shares[1] == 10
    assert requeued.code == 0 and requeued.out.replace("shared/", "alone/") == whole.out
    assert results(tmp_path / "shared") == results(tmp_path / "alone")
    assert blocks(tmp_path / "shared") == blocks(tmp_path / "alone")


def test_invalid_shards_are_refused(tmp_path: Path) -> None:
    (tmp_path / "swept.yaml").write_text(yaml.safe_dump({"dataset": {"name": "mini-es"}, **PARTS}), encoding="utf-8")
    for shard in ("0/4", "5/4", "1", "x/2"):
        refusal = process(*SWEEP, "--shard", shard, cwd=tmp_path)
        assert refusal.code == 2 and f"--shard: expected I/N with 1 <= I <= N, got '{shard}'" in refusal.err
