"""SimulEval, both ways: its agents as translators, our translators as its agents."""
