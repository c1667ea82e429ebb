"""Several training runs from one config: `sqa train smt CONFIG --sweep k=3,6,9,12,15,full --seeds 3`.

    runs/smt/<name>/data/           training data, prepared once (or those of the run that `data` names)
    runs/smt/<name>/k6-seed0/       one training run: checkpoint-*, steps.tsv, model/, done.json at its end
    runs/smt/<name>/sweep.tsv       development BLEU per k, mean and standard deviation over seeds

A training run with a done.json is never repeated, and a killed one resumes from its last checkpoint.  Several
processes may share a sweep: each takes training runs that no other process holds, and each prints the whole table.  A
folder from another config, other data or another start model is refused.  k = "multi" is the config's multi-path
training, the control for single-k training.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev

from smt.models.bundle import load_model
from smt.training.config import SmtConfig
from smt.training.prepare import work_folder
from smt.training.steps import LOG
from smt.training.transformer_training import bleu_by_k, identity, prepared_data, train_in
from sqa.core import ConfigError, DataError, parse_k
from sqa.files import empty, json_document, locked, parse_json, place, write_text
from sqa.pipeline import load
from sqa.results import Table, show
from sqa.training.trainer import Checkpoints

MULTI = "multi"  # value of k for one model that serves every k of `train.k`
HEADER = ("model", "k", "seeds", "bleu_mean", "bleu_sd", "bleu", "minutes_mean")


@dataclass(frozen=True, slots=True)
class Run:
    """One training run of a sweep."""

    k: int | str  # number of words, "full" or "multi"
    seed: int
    config: SmtConfig
    folder: Path


@dataclass(frozen=True, slots=True)
class Finished:
    """The content of done.json."""

    k: int | str
    seed: int
    bleu: dict[str, float]  # k -> BLEU on the development part, for the model's own k or each k of a multi-path model
    minutes: float  # time spent in training steps
    model: Path  # folder for `translator: {model: ...}`
    identity: Mapping[str, str] = field(default_factory=dict)  # `Checkpoints.identity`


def parse_sweep(text: str) -> tuple[int | str, ...]:
    """Return the values of "k=3,6,full"; raises ConfigError for anything else."""
    key, _, values = text.partition("=")
    if key != "k" or not values:
        raise ConfigError(f"--sweep: expected k=VALUE,VALUE,..., got {text!r}")
    ks = tuple(int(value) if value.isascii() and value.isdigit() else value for value in values.split(","))
    if any(k != MULTI and k != "full" and not (isinstance(k, int) and k >= 1) for k in ks) or len({*ks}) < len(ks):
        raise ConfigError(f"--sweep k: expected distinct numbers >= 1, 'full' or '{MULTI}', got {values}")
    return ks


def expand(config: SmtConfig, ks: Sequence[int | str], seeds: int, folder: Path) -> list[Run]:
    """Return every training run of the sweep: all values of k for the first seed, then for the next seed."""
    if seeds < 1:
        raise ConfigError(f"--seeds: must be >= 1, got {seeds}")
    runs = []
    for seed in range(config.train.seed, config.train.seed + seeds):
        for k in ks:
            label = f"{MULTI if k == MULTI else f'k{k}'}-seed{seed}"
            options = {} if k == MULTI else {"k": (k,), "k_weights": (), "evaluate_k": (k,)}
            model = replace(config.model, encoder=config.full_encoder) if k == "full" else config.model
            train = replace(config.train, seed=seed, **options)
            run_config = replace(config, name=f"{config.name}/{label}", model=model, train=train)
            runs.append(Run(k, seed, run_config, folder / label))
    return runs


def train_one(run: Run, data: Path, wait: bool) -> None:
    """Train and score an unfinished run, unless another process holds it and `wait` is False.

    Raises ConfigError if the folder holds a run of another config, other data or another start model.
    """
    with locked(run.folder, wait) as is_free:
        if not is_free:
            return
        file, checkpoints = run.folder / "done.json", Checkpoints(run.folder, identity=identity(run.config, data))
        if file.exists():
            checkpoints.check(run.folder, json_document(file)["identity"])
            return
        print(f"sqa: {run.folder.name}", file=sys.stderr)
        model, vocabulary, _ = load_model(train_in(run.folder, run.config, data))
        bleu = bleu_by_k(model.to(place(run.config.train).device), vocabulary, run.config, run.config.train.k)
        seconds = [float(line.rsplit("\t", 1)[1]) for line in (run.folder / LOG).read_text().splitlines()[1:]]
        done = {"k": run.k, "seed": run.seed, "bleu": bleu, "minutes": sum(seconds) / 60}
        write_text(file, json.dumps(done | {"identity": checkpoints.identity}, indent=1) + "\n")
        checkpoints.remove()  # the model is saved, and a sweep's checkpoints would fill the disk


def finished(folder: Path) -> list[Finished]:
    """Return the finished training runs of a sweep's folder, by k and seed."""
    runs = []
    for file in folder.glob("*-seed*/done.json"):
        try:
            runs.append(Finished(**parse_json(file.read_bytes()), model=file.parent / "model"))
        except (ValueError, TypeError) as error:
            raise DataError(f"{file}: not a file of a sweep ({error}); delete its folder") from error
    return sorted(runs, key=lambda run: (run.k == MULTI, run.k != MULTI and parse_k(run.k), run.seed))


def table(runs: Sequence[Finished]) -> list[tuple[str, ...]]:
    """Return a line per model kind and k: number of seeds, mean, standard deviation (n - 1), BLEU per seed, minutes."""
    groups: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for run in runs:
        kind = "multi-path" if run.k == MULTI else "separate"
        for k, bleu in run.bleu.items():
            groups.setdefault((kind, k), []).append((bleu, run.minutes))
    rows: list[tuple[str, ...]] = []
    for (kind, k), values in groups.items():
        scores, minutes = zip(*values, strict=True)
        spread = f"{stdev(scores):.2f}" if len(scores) > 1 else "n/a"
        each = " ".join(f"{score:.2f}" for score in scores)
        rows.append((kind, k, str(len(scores)), f"{fmean(scores):.2f}", spread, each, f"{fmean(minutes):.1f}"))
    return rows


def sweep(config: SmtConfig, ks: Sequence[int | str], seeds: int, runs: Path, fresh: bool = False) -> list[Finished]:
    """Train the missing runs, wait for those of other processes, and return the finished runs."""
    folder = work_folder(config, runs)
    todo = expand(config, ks, seeds, folder)
    if fresh:
        clear(todo)
    with locked(folder, wait=True):
        data = prepared_data(config, runs)
    for wait in (False, True):
        for run in todo:
            train_one(run, data, wait)
    labels = {(run.k, run.seed) for run in todo}
    return [run for run in finished(folder) if (run.k, run.seed) in labels]


def clear(runs: Sequence[Run]) -> None:
    """Empty the folders of these runs; raises ConfigError if another process is training one of them."""
    for run in runs:
        with locked(run.folder, wait=False) as is_free:
            if not is_free:
                raise ConfigError(f"--fresh: another process is training {run.folder}")
            empty(run.folder)


def main(config_path: Path, runs: Path, ks: str | None = None, seeds: int = 1, fresh: bool = False) -> None:
    """Run `sqa train smt CONFIG --sweep k=... --seeds N`: train all runs and print the table.

    Without `ks`, the values of k come from the config.
    """
    config = load(config_path, SmtConfig)
    rows = table(sweep(config, parse_sweep(ks) if ks else config.train.k, seeds, runs, fresh))
    write_text(work_folder(config, runs) / "sweep.tsv", Table(HEADER, rows).to_tsv())
    show(Table(HEADER, rows))
