"""Write configs/ablation.yaml reduced to a few bundled questions, BM25 and one process."""

import csv
from collections.abc import Sequence
from pathlib import Path

import yaml

from sqa.core import ROOT
from sqa.files import read_yaml

BUZZER = {"name": "doubles:build_buzzer"}
WAIT_K = [{"label": "wait-k", "language": "es", "translator": {"name": "waitk", "model": "es-en"}}]


def changed(config: Path, folder: Path | None = None, **keys: object) -> Path:
    """Replace keys of a config, write it over the old file or into `folder`, and return its path."""
    path = (folder or config.parent) / config.name
    path.write_text(yaml.safe_dump(read_yaml(config) | keys), encoding="utf-8")
    return path


def rows(table: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV or TSV table."""
    with table.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="," if table.suffix == ".csv" else "\t"))


def write_small_ablation(folder: Path, ks: Sequence[int | str], limit: int) -> Path:
    """Write the reduced config to folder/ablation.yaml and return its path."""
    mapping = read_yaml(ROOT / "configs" / "ablation.yaml") | {
        "datasets": ["mini-es"],
        "fallback": ["mini-es"],
        "k": list(ks),
        "translators": WAIT_K,
        "resamples": 50,
        "limit": limit,
        "workers": 1,
        "contestants": [{"guesser": {"name": "bm25"}, "buzzer": BUZZER}],
    }
    path = folder / "ablation.yaml"
    path.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return path
