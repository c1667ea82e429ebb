"""Items: the runs behind a figure, a table or a study, and their presentation in pages and pictures.

A module of experiments/ lists its items as `ITEMS`; a plugin registers a function that returns its items.  A user's own
item is named `mine.py:ITEM`.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

import yaml

from experiments import grid as grids
from experiments.grid import AblationConfig
from experiments.results_book import tables
from experiments.results_book.ledger import DIGITS, Ledger, Row
from experiments.results_book.tables import Block as Block
from sqa.api.experiment import COLUMNS, Cell, Results
from sqa.core import BUZZERS, CONFIGS, DATA, GUESSERS, ROOT, TRANSLATORS, ConfigError, Floats, config_file, did_you_mean
from sqa.core.own.code import named
from sqa.core.paths import in_file, short
from sqa.core.registry import ITEMS
from sqa.files import file_digest, read_yaml
from sqa.files.model_files import files_digest
from sqa.pipeline import load, to_mapping

if TYPE_CHECKING:
    from PIL import Image

    from sqa.report.plots import Figure

PARTS = (TRANSLATORS, GUESSERS, BUZZERS)  # registries of parts whose VERSION is an input of numbers
ROOMS = ("paper", "studies")  # folders of experiments/ whose modules list items
ARCHIVED = ROOT / "experiments" / "ledger" / "archived.yaml"
Measure = Callable[[Path, Path], Iterable[Row]]
Drawing = Callable[[Ledger], "Figure | Image.Image"]


def config_inputs(config: Path) -> dict[str, str]:
    """Return {"config NAME": digest of the file}, or {} for an item without a config."""
    return {f"config {config.name}": digest_of(read_yaml(config))} if config.name else {}


@dataclass(frozen=True, slots=True)
class Item:
    """A figure, a table or a study."""

    name: str  # name of its ledger, and on the command line
    shows: str  # one-sentence description for lists
    config: str  # file in configs/, or `file.yaml:entry`; "" = none
    columns: tuple[str, ...]  # columns of a row's cell
    measure: Measure  # (config, runs) -> rows; missing runs are computed first
    inputs: Callable[[Path], Mapping[str, str]] = config_inputs  # config -> digests of all inputs of the numbers
    blocks: Mapping[str, Block] = field(default_factory=dict)  # shown in pages, by name
    figures: Mapping[str, Drawing] = field(default_factory=dict)  # picture file, relative to the repository -> drawing
    values: Callable[[Path, Path], Mapping[tuple[str, ...], Floats]] | None = None  # (config, runs) -> stored values
    kept: str = ""  # reason to measure it only by name or --force; "": measured by default

    def path(self) -> Path:
        """Return the path of the config; an empty path if there is none."""
        return config_file(CONFIGS / self.config) if self.config else Path()

    @property
    def command(self) -> str:
        """Command that measures the item."""
        return f"sqa results update {self.name}"


def elsewhere(how: str) -> Measure:
    """Return a `measure` function for rows from outside the project, which raises ConfigError with the rows' origin."""

    def measure(config: Path, runs: Path) -> Iterable[Row]:
        raise ConfigError(f"no command measures this item: {how}; its ledger stays as it is")

    return measure


def items() -> dict[str, Item]:
    """Return all items of experiments/ and of plugins, by name."""
    packages = [import_module(f"experiments.{room}") for room in ROOMS]
    names = [f"{package.__name__}.{module.name}" for package in packages for module in iter_modules(package.__path__)]
    all_items = [item for name in names for item in getattr(import_module(name), "ITEMS", ())]
    all_items += [item for name in ITEMS.names() for item in ITEMS.resolve(name)()]
    all_items += archived(ARCHIVED)
    return {item.name: item for item in sorted(all_items, key=lambda item: item.name)}


@cache
def archived(path: Path) -> list[Item]:
    """Return the items whose code has left, with the tables that pages show of their ledgers."""
    return [
        Item(
            name=name,
            shows=entry["shows"],
            config="",
            columns=(),
            measure=elsewhere("its code left the repository, and the head of its ledger names the commit that has it"),
            blocks={title: tables.from_mapping(block) for title, block in entry.get("blocks", {}).items()},
            kept="its code left the repository",
        )
        for name, entry in (read_yaml(path).items() if path.is_file() else ())
    ]


def chosen(names: Sequence[str]) -> list[Item]:
    """Return items by name or file (`mine.py:ITEM`), or all if none is named; raises ConfigError for unknown names."""
    by_name = items()
    for name in names:
        if name not in by_name and not in_file(name):
            raise ConfigError(f"{name}: no such item{did_you_mean(name, by_name)}; known: {', '.join(by_name)}")
    return [by_name.get(name) or _own(name) for name in names] or list(by_name.values())


def _own(target: str) -> Item:
    """Return an item of the user's file; the digest of its code is one of the item's inputs."""
    code, item = named(target)
    if not isinstance(item, Item):
        raise ConfigError(f"{short(target)} is a {type(item).__name__}, expected an Item")
    return replace(item, inputs=lambda config: {**item.inputs(config), f"code {short(target)}": code.digest[:DIGITS]})


def digest_of(config: Any) -> str:
    """Return the first digits of the sha256 of a config: the keys of its file, or a loaded config with all defaults."""
    return hashlib.sha256(yaml.safe_dump(to_mapping(config), sort_keys=True).encode()).hexdigest()[:DIGITS]


def inputs_of(
    names: Sequence[str] = (), datasets: Sequence[str] = (), kind: type | None = None
) -> Callable[[Path], dict[str, str]]:
    """Return an `inputs` function that adds bundled models, registered parts and data sets to the config.

    names, datasets: their names.  kind: class of the config, whose models and parts are added.
    """

    def inputs(config: Path) -> dict[str, str]:
        named = _named_inputs(set(names)) | (part_inputs(load(config, kind)) if kind else {})
        return config_inputs(config) | named | dataset_digests(datasets)

    return inputs


def part_inputs(config: Any) -> dict[str, str]:
    """Return the digests of the bundled models and the versions of the parts that a config names."""
    strings = _strings(to_mapping(config))
    return _named_inputs(strings | {f"buzzer-{kind}-{model}" for kind in strings for model in strings})


def _named_inputs(names: set[str]) -> dict[str, str]:
    folders = {folder.name: folder for folder in (DATA / "models").iterdir() if folder.is_dir()}
    targets = {name: parts.target(name) for parts in PARTS for name in sorted(names & {*parts.names()})}
    modules = {name: import_module(target.partition(":")[0]) for name, target in targets.items()}
    return {
        **{f"model {name}": files_digest(folders[name])[:DIGITS] for name in sorted(names & folders.keys())},
        **{f"version {name}": str(part.VERSION) for name, part in modules.items() if hasattr(part, "VERSION")},
    }


def dataset_digests(names: Iterable[str]) -> dict[str, str]:
    """Return the digest of each question set, from the manifest or of the user's file, or "bundled" in other cases."""
    from sqa.data.download import entries

    manifest = {entry.name: entry.sha256 for entry in entries()}
    own_files = {name: file_digest(Path(name)) for name in names if Path(name).is_file()}
    return {f"data {name}": (manifest | own_files).get(name, "bundled")[:DIGITS] for name in names}


def _strings(value: Any) -> set[str]:
    """Return the set of all strings in nested YAML values, including keys."""
    if isinstance(value, str):
        return {value}
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    return set().union(*map(_strings, parts)) if isinstance(parts, list) else set()


# ---------------------------------------------------------------------------------------- items on the runs of a grid


def measure_grid(config_path: Path, runs: Path) -> Iterable[Row]:
    """Return the rows of every cell of a grid's config; missing runs are computed."""
    return finished_grid(config_path, runs).frame.rows


def finished_grid(config_path: Path, runs: Path, wanted: Callable[[Cell], bool] = lambda _: True) -> Results:
    """Return the wanted cells of a grid; missing runs are computed."""
    return grids.finished(load(config_path, AblationConfig), runs, wanted)


def grid_inputs(config_path: Path) -> dict[str, str]:
    """Return digests of the config, of the models that it names and of its data sets, and the versions of its parts."""
    config = load(config_path, AblationConfig)
    digests = {f"config {config_path.name}": digest_of(replace(config, workers=None))}  # `workers` does not matter
    return digests | part_inputs(config) | dataset_digests(config.datasets)


def values_of(
    metrics: tuple[str, ...], wanted: Callable[[Cell], bool]
) -> Callable[[Path, Path], dict[tuple[str, ...], Floats]]:
    """Return a function of (config, runs) that returns the statistics of `metrics` for the wanted cells of a grid."""

    def tables(config: Path, runs: Path) -> dict[tuple[str, ...], Floats]:
        grid = finished_grid(config, runs, wanted)
        return {(*one.cell.key, name): one.stats[name] for one in grid for name in metrics if name in one.stats}

    return tables


def of_grid(
    name: str,
    shows: str,
    *,
    columns: tuple[str, ...] = COLUMNS,
    measure: Callable[[Path, Path], Iterable[Row]] = measure_grid,
    **options: Any,
) -> Item:
    """Return an item that is measured on the runs of the ablation and has the inputs of these runs."""
    return Item(name, shows, "ablation.yaml", columns, measure, grid_inputs, **options)
