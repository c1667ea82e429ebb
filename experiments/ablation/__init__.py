"""The paper's ablation over k: report, rankings by metric, and settings of the trained models."""
