"""SimulEval: its agents as translators, translators of this project as its agents, and scorers inside it."""
