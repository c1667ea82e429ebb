"""KEY=VALUE arguments after the config of a study."""

from dataclasses import dataclass
from pathlib import Path

from refusals import refused

from sqa.core.errors import ConfigError
from sqa.pipeline.overrides import load_study


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
    assert (changed.k, changed.limit) == ((3, "full"), 5) and changed.name.startswith("study-limit5-")
    assert load_study(path, Study, ("k=[3]", "name=mine")) == Study("mine", (3,))
    assert load_study(path, Study, ("k=3",)).name != load_study(path, Study, ("k=4",)).name
    refused(ConfigError, "kk: unknown, did you mean 'k'", load_study, path, Study, ("kk=3",))
    refused(ConfigError, "expected KEY=VALUE", load_study, path, Study, ("3",))
