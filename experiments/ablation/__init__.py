"""The paper's ablation over k: its report, how its metrics rank the systems, the models as trained."""
