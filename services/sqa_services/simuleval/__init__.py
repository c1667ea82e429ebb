"""SimulEval in both directions: its agents as translators, and translators of this project as its agents."""
