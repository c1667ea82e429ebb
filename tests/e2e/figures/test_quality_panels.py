"""configs/studies.yaml:quality with tiny models of BERTScore and COMET draws both in Figure 3b."""

import pytest
import yaml
from small_ablation import rows

from experiments.ablation.report import main
from sqa.core import ROOT
from sqa.files import read_yaml


def test_figure3b_has_bertscore_and_comet(tmp_path, monkeypatch):
    pytest.importorskip("comet")
    pytest.importorskip("bert_score")
    from stand_ins.quality_models import save_bert, save_comet, save_xlmr

    comet = save_comet(tmp_path / "comet", save_xlmr(tmp_path / "xlmr"))
    quality = [
        {"bertscore": {"model": str(save_bert(tmp_path / "bert")), "layer": 2}},
        {"comet": {"model": str(comet)}},
    ]
    keys = {"datasets": ["mini-es"], "limit": 3, "k": [3, 6, "full"], "workers": 1, "resamples": 20}
    contestants = [{"guesser": {"name": "bm25"}, "buzzer": {"name": "mlp", "model": "bm25"}}]
    config = ROOT / "configs" / "studies.yaml:quality"
    drawn = []
    monkeypatch.setattr("experiments.outputs.save", lambda figure, folder, stem: drawn.append(figure) or [])
    path = tmp_path / "quality.yaml"
    path.write_text(yaml.safe_dump(read_yaml(config) | keys | {"quality": quality, "contestants": contestants}))
    main(path, tmp_path)
    [figure] = drawn
    axes = {axes.get_title(loc="left"): axes for axes in figure.axes if axes.get_visible()}
    assert [*axes] == ["EW", "oracle EW", "accuracy", "BLEU", "BERTScore", "COMET"]
    values = {(r["metric"], r["k"]): float(r["value"]) for r in rows(tmp_path / "ablation-quality" / "systems.csv")}
    for label, name in (("BERTScore", "bertscore"), ("COMET", "comet")):
        [line] = [line for line in axes[label].get_lines() if line.get_label() == "wait-k"]
        assert line.get_ydata() == pytest.approx([values[name, k] for k in ("3", "6")], abs=5e-6)
    report = (tmp_path / "ablation-quality" / "report.md").read_text("utf-8")
    assert "| translator | k | trainings | BLEU | BERTScore | COMET | DAL |" in report
