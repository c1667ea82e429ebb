"""Configs are strict, and all problems of a file are reported at once."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import pytest
from doubles import EchoConfig
from msgspec import Meta
from refusals import refused
from tables import tables_of

from sqa.core import ROOT, BelowOne, ConfigError, Count, Positive, Share, Whole, checked
from sqa.files import parse_yaml, read_yaml
from sqa.pipeline import load, load_run, load_study, load_with, parsed, run_from_mapping, to_mapping, with_limit

TABLES = tables_of(__file__)

OWN = '{name: "doubles:build_translator", k: 2}'
GOOD = TABLES["good"]


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def problems(path: Path, read: Callable[[Path], object] = load_run) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(path)
    return [problem.removeprefix(f"{path} ") for problem in caught.value.problems]


def test_valid_file_yields_a_config(tmp_path: Path) -> None:
    config = load_run(write(tmp_path, GOOD))
    assert (config.name, config.seed, config.metrics) == ("x", 3, ("ew", "bleu"))
    assert asdict(config.translator.options) == asdict(EchoConfig(k=2))
    assert config.guesser is not None and config.guesser.options.pages == ("Spain",)
    assert config.buzzer is not None and config.buzzer.options.threshold == 0.5
    limited = with_limit(config, 2)
    assert (limited.name, limited.dataset.limit) == ("x-limit2", 2)
    plain = load_run(write(tmp_path, "dataset: {name: mini-es}\ntranslator: {name: 'doubles:build_translator'}\n"))
    assert plain.guesser is plain.buzzer is plain.dataset.limit is None and "ew" in plain.metrics


def test_all_problems_are_reported_with_places(tmp_path: Path) -> None:
    table = TABLES["all_problems_are_reported_with_places"]
    assert problems(write(tmp_path, table["text"])) == table["problems"]


@pytest.mark.parametrize(("change", "expected"), TABLES["single_problem_is_reported_in_one_line"])
def test_single_problem_is_reported_in_one_line(tmp_path: Path, change: tuple[str, str], expected: str) -> None:
    [problem] = problems(write(tmp_path, GOOD.replace(*change)))
    assert expected in problem


@dataclass(frozen=True, slots=True)
class Inner:
    """A nested config."""

    rate: float = 0.1

    def __post_init__(self) -> None:
        if self.rate <= 0:
            raise ConfigError(f"inner.rate: must be > 0, got {self.rate}")


@dataclass(frozen=True, slots=True)
class Outer:
    """A config with every kind of field."""

    k: int | str
    mode: Literal["a", "b"] = "a"
    folder: Path | None = None
    weights: dict[str, float] = field(default_factory=dict)
    pair: tuple[int, str] = (1, "x")
    ks: tuple[int | str, ...] = ()
    inner: Inner = Inner()


def test_any_dataclass_loads_and_names_its_problems(tmp_path: Path) -> None:
    text = "k: full\nmode: b\nfolder: a/b\nweights: {x: 1, y: 1e-3}\npair: [2, z]\nks: [3, full]\ninner: {rate: 1}\n"
    config = load(write(tmp_path, text), Outer)
    assert config == Outer("full", "b", Path("a/b"), {"x": 1.0, "y": 0.001}, (2, "z"), (3, "full"), Inner(1.0))
    assert isinstance(config.inner.rate, float)
    text = "k: [1]\nmode: c\nfolder: 3\nweights: {x: y, z: true}\npair: [2]\nks: [1.5]\ninner: {rate: 0}\n"
    assert problems(write(tmp_path, text), lambda path: load(path, Outer)) == TABLES["problems_of_any_dataclass"]


FILES = [path for path in sorted((ROOT / "configs").glob("*.yaml")) if path.name.startswith(("mini_", "xqb"))]
RUNS = [
    path.with_name(f"{path.name}:{entry}") if entry else path
    for path in FILES
    for entry in parse_yaml(path.read_text("utf-8")).get("entries", [None])
]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_every_run_config_of_the_project_loads(path: Path) -> None:
    config = load_run(path)
    assert config.name.endswith(path.name.rpartition(":")[2].removesuffix(".yaml"))
    assert run_from_mapping(to_mapping(config)) == config


# ------------------------------------------------------------------------------------------------ bounds of numbers


@dataclass(frozen=True, slots=True)
@checked
class Numbers:
    count: Count = 1
    whole: Whole = 0
    positive: Positive = 0.1
    share: Share = 1.0
    below: BelowOne = 0.0
    inner: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    optional: Count | None = None
    free: int = -5

    def problems(self) -> list[str]:
        if self.free == 13:
            raise ConfigError("free: its own part says no")
        return ["free: is even"] if self.free % 2 == 0 else []


@pytest.mark.parametrize(("key", "valid", "wrong", "bound"), TABLES["number_out_of_bounds_is_refused_in_one_line"])
def test_number_out_of_bounds_is_refused_in_one_line(key, valid, wrong, bound):
    assert [getattr(Numbers(**{key: value}), key) for value in valid] == list(valid)
    for value in wrong:
        with pytest.raises(ConfigError) as caught:
            Numbers(**{key: value})
        assert caught.value.problems == (f"{key}: must be {bound}, got {value}",)


def test_all_problems_of_numbers_are_named_at_once():
    for keys, expected in (({"count": 0, "share": 2.0, "free": 4}, "count share free"), ({"free": 13}, "free")):
        with pytest.raises(ConfigError) as caught:
            Numbers(**keys)
        assert [problem.partition(":")[0] for problem in caught.value.problems] == expected.split()


# -------------------------------------------------------------------------------------- several configs in a file

ENTRIES = TABLES["entries"]


def test_entry_inherits_and_overrides_keys(tmp_path: Path) -> None:
    file = write(tmp_path, ENTRIES)
    small, other = (load_run(Path(f"{file}:{name}")) for name in ("small", "other"))
    assert (small.name, small.dataset.limit, small.translator.options.k) == ("small", 3, 6)
    assert read_yaml(Path(f"{file}:large")) == {
        "dataset": {"name": "mini-es", "limit": None},
        "translator": {"name": "waitk", "model": "es-en", "k": 6},
        "seed": 0,
    }
    assert (other.name, other.dataset.limit, other.translator.name) == ("mine", None, "fixed")  # no k, no model


@pytest.mark.parametrize(("text", "entry", "message"), TABLES["invalid_entries_are_refused"])
def test_invalid_entries_are_refused(tmp_path: Path, text: str | None, entry: str, message: str) -> None:
    refused(ConfigError, message, read_yaml, Path(f"{write(tmp_path, text or ENTRIES)}{entry}"))


def test_long_chain_of_entries_is_refused(tmp_path: Path) -> None:
    chain = "".join(f"  e{i}: {{like: e{i + 1}}}\n" for i in range(3000))
    file = write(tmp_path, f"entries:\n{chain}  e3000: {{seed: 0}}\n")
    refused(ConfigError, "like: a chain of more than 100 entries", read_yaml, Path(f"{file}:e0"))
    assert read_yaml(Path(f"{file}:e2990")) == {"seed": 0}


def test_policy_key_needs_no_prefix(tmp_path: Path) -> None:
    text = "dataset: {name: mini-es}\ntranslator: {name: command, command: [cat], policy: wait-k, k: 6}\n"
    config = load_with(write(tmp_path, text), parsed(["k=3"]))
    assert to_mapping(config)["translator"]["k"] == 3
    refused(ConfigError, "k: is given twice", parsed, ["k=3", "k=4"])


@pytest.mark.parametrize(("translator", "reason"), TABLES["impossible_k_is_explained"])
def test_impossible_k_is_explained(tmp_path: Path, translator: str, reason: str) -> None:
    path = write(tmp_path, GOOD.replace(OWN, translator))
    assert reason in "\n".join(problems(path))
    path = write(tmp_path, GOOD.replace(OWN, translator.replace(", k: 3", "")))
    refused(ConfigError, reason.partition("; ")[2], load_with, path, parsed(["k=3"]))


@pytest.mark.parametrize("guesser", ["bm25", "gru", "rerank"])
def test_buzzer_is_the_one_trained_for_the_guesser(guesser):
    parts = {"name": "x", "dataset": "mini-es", "translator": {"name": "fixed"}, "guesser": guesser}
    assert run_from_mapping({**parts, "buzzer": "mlp"}).buzzer.options.model == guesser
    assert run_from_mapping({**parts, "buzzer": {"name": "mlp", "model": "bm25"}}).buzzer.options.model == "bm25"
    assert run_from_mapping({**parts, "buzzer": "threshold"}).buzzer.options.model is None


@dataclass(frozen=True)
class Study:
    name: str
    k: tuple[int | str, ...]
    limit: int | None = None


def test_arguments_replace_keys_of_a_study(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text("name: study\nk: [1, 2]\n", encoding="utf-8")
    assert load_study(path, Study, ()) == Study("study", (1, 2))
    changed = load_study(path, Study, ("k=3,full", "limit=5"))
    assert (changed.k, changed.limit) == ((3, "full"), 5) and changed.name.startswith("study-k3_full-limit5-")
    assert load_study(path, Study, ("k=[3]", "name=mine")) == Study("mine", (3,))
    assert load_study(path, Study, ("k=3",)).name != load_study(path, Study, ("k=4",)).name
    refused(ConfigError, "kk: unknown, did you mean 'k'", load_study, path, Study, ("kk=3",))
    refused(ConfigError, "expected KEY=VALUE", load_study, path, Study, ("3",))
