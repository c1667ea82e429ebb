"""SimulEval 1.1.4 with two fixes that its remote evaluation needs.

A text segment's default target language is a type, which JSON cannot encode (later versions use null). The remote
evaluator reads `instance_iterator`, which the evaluator calls `iterator`. This module can be run in place of the
`simuleval` command.
"""

from __future__ import annotations

import json

from sqa_services.simuleval.agent import quiet_imports

with quiet_imports():
    from simuleval.data import segments
    from simuleval.evaluator import SentenceLevelEvaluator


def _json(segment: segments.Segment) -> str:
    return json.dumps(segment.__dict__, default=lambda _: None)


def mend() -> None:
    """Patch the package in this process."""
    segments.Segment.json = _json
    SentenceLevelEvaluator.instance_iterator = property(lambda self: self.iterator)


if __name__ == "__main__":
    with quiet_imports():
        from simuleval.cli import main
    mend()
    main()
