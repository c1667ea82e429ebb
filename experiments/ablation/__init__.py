"""The paper's ablation over k: its report, the rankings by its metrics, the models as trained."""
