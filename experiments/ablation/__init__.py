"""The paper's ablation over k: its grid, figure, report and seeds."""
