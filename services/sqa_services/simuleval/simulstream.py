"""Expected wins inside simulstream 1.0: its own command that scores latencies, with SQA_EW and its kin as scorers.

    sqa simulstream-score --scorer SQA_EW --sqa-questions questions.jsonl --log-file metrics.jsonl \
        --eval-config eval.yaml --audio-definition segments.yaml

simulstream gives a scorer the final text alone; what was shown and then deleted, and when, is read from the log itself.
So the number is that of `sqa run` on the log.  simulstream prints it as a latency "in seconds", which it is not.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from simulstream.metrics import score_latency
from simulstream.metrics.scorers.latency import (
    LatencyScorer,
    LatencyScores,
    LatencyScoringSample,
    register_latency_scorer,
)

from sqa_services.simuleval.answered import SHOWN, Answered, add_options, answered


class OfAnswers(LatencyScorer):
    """A metric of the answers that a translation allows."""

    metric = "ew"
    args: Namespace

    def requires_reference(self) -> bool:
        return False

    def score(self, samples: list[LatencyScoringSample]) -> LatencyScores:
        """The value of the log."""
        return LatencyScores(ideal_latency=_answered(self.args).value[self.metric])

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        add_options(parser)


for _shown, _name in SHOWN.items():
    register_latency_scorer(_shown)(type(_shown, (OfAnswers,), {"metric": _name}))


def main(arguments: Sequence[str]) -> None:
    """simulstream_score_latency with the arguments; what is wrong with log or questions is said first."""
    sys.argv = ["simulstream_score_latency", *arguments]
    if set(SHOWN) & set(arguments) and not {"-h", "--help"} & set(arguments):
        parser = ArgumentParser(add_help=False)
        parser.add_argument("--log-file", required=True)
        add_options(parser)
        _answered(parser.parse_known_args(arguments)[0])
    score_latency.cli_main()


def _answered(args: Namespace) -> Answered:
    return answered(Path(args.log_file), args.sqa_questions, args.sqa_guesser, args.sqa_buzzer)
