"""Figure 9 with missing metrics and stored scores."""

import pytest
import yaml
from small_ablation import write_small_ablation
from tables import tables_of

from experiments.ablation.report import main
from sqa.files.yaml_reader import read_yaml

TABLES = tables_of(__file__)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figure9")
    write_small_ablation(folder, [3, 6, "full"], 4)
    (folder / "length.py").write_text(LENGTH, encoding="utf-8")
    quality = [{f"{folder}/length.py:build": {}}, {"scores": {"file": "gone/{run}.txt", "name": "prism"}}]
    texts = {"name": "figure9", "contestants": [], "metrics": ["bleu", "dal"], "panels": ["length", "prism"]}
    mapping = read_yaml(folder / "ablation.yaml") | texts | {"quality": quality}
    (folder / "figure9.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return folder


LENGTH = TABLES["length"]


def test_figure9_draws_the_available_points(folder, capsys):
    runs = folder / "runs"
    main(folder / "figure9.yaml", runs)
    assert "Not in the figure: prism of every run" in capsys.readouterr().err
    assert "length grows" in (runs / "figure9" / "differences.tsv").read_text(encoding="utf-8")
    scored = (folder / "calls").read_text(encoding="utf-8")
    main(folder / "figure9.yaml", runs)  # texts are not scored again
    assert (folder / "calls").read_text(encoding="utf-8") == scored and len(scored) <= 3 * 4
