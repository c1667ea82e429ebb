"""Expected wins inside simulstream 1.0: its command for latency scores, with SQA_EW and related metrics as scorers.

    sqa scorer simulstream --scorer SQA_EW --sqa-questions questions.jsonl --log-file metrics.jsonl \\
        --eval-config eval.yaml --audio-definition segments.yaml

With `detokenizer_type: simuleval`, `--eval-config` tells whether tokens are words or subwords.  For other detokenizers,
`--sqa-pieces` gives the kind (docs/simulstream.md).

simulstream passes only the final text to a scorer.  The log itself shows which words were deleted later, and when, so
the score equals that of `sqa run` on the log.  simulstream prints the score as a latency "in seconds", although it is
not a time.

SQA_FACTS needs simulstream's `--reference` but no questions.  It scores the facts of each segment (docs/facts.md) after
simulstream's own resegmentation.  With `--sqa-sources FILE`, which has one line per segment, SQA_FACTS_INVENTED,
SQA_FACTS_LAG and SQA_FACTS_TIMED have values, too.  SQA_FACTS_LAG is in seconds, as estimated by `sqa latency LOG
--facts`.  SQA_ANSWERED, SQA_ANSWERED_EARLY and SQA_ANSWERED_LAG with `--sqa-asked FILE` equal the values of `sqa ask`
on these segments.
"""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import yaml
from simulstream.metrics import score_latency
from simulstream.metrics.readers import OutputWithDelays, ReferenceSentenceDefinition
from simulstream.metrics.scorers import latency
from simulstream.metrics.scorers.latency import mwersegmenter

from sqa.core import SqaError
from sqa.files import Pieces
from sqa_services.simuleval.answered import SEGMENTAL, SHOWN, Segmental, add_options, answered


class OfAnswers(latency.LatencyScorer):
    """A metric of the answers that a translation allows."""

    metric: str
    args: Namespace

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        add_options(parser)
        parser.add_argument("--sqa-pieces", choices=get_args(Pieces), help="kind of the log's tokens (--eval-config)")

    def requires_reference(self) -> bool:
        return False

    def score(self, samples: list[latency.LatencyScoringSample]) -> latency.LatencyScores:
        """Return the metric's value for the log as `ideal_latency`; `samples` is ignored."""
        args = self.args
        try:
            result = answered(args.log_file, args.sqa_questions, args.sqa_guesser, args.sqa_buzzer, _pieces(args))
        except SqaError as error:
            raise SystemExit(f"sqa: {error}") from error
        return latency.LatencyScores(ideal_latency=result.value[self.metric])


class OfSegments(mwersegmenter.MWERSegmenterBasedLatencyScorer):
    """A metric of the segments that simulstream cuts."""

    scorer: Segmental
    args: Namespace

    @classmethod
    def add_arguments(cls, parser: ArgumentParser) -> None:
        cls.scorer.add_options(parser)
        parser.add_argument("--sqa-sources", default="", help="for facts: file of transcripts, one line per segment")

    def _do_score(self, samples: list[mwersegmenter.ResegmentedLatencyScoringSample]) -> latency.LatencyScores:
        pairs = [pair for sample in samples for pair in zip(sample.hypothesis, sample.reference, strict=True)]
        try:
            stats = self.scorer.stats("".join(_line(index, *pair) for index, pair in enumerate(pairs)), self.args)
            return latency.LatencyScores(self.scorer.metric.score(stats.sum(axis=0)))
        except SqaError as error:
            raise SystemExit(f"sqa: {error}") from error


for _shown, _name in SHOWN.items():

    @latency.register_latency_scorer(_shown)
    class _Answers(OfAnswers):
        metric = _name


for _shown, _scorer in SEGMENTAL.items():

    @latency.register_latency_scorer(_shown)
    class _Segments(OfSegments):
        scorer = _scorer


def _line(index: int, written: OutputWithDelays, segment: ReferenceSentenceDefinition) -> str:
    """Return a segment as a line in OmniSTEval's format, with times in ms since the segment's start."""
    row = {"index": index, "docid": 0, "segid": 0, "prediction": written.final_text, "reference": segment.content}
    delays = [1000 * (delay - segment.start_time) for delay in written.ideal_delays]
    return json.dumps({**row, "emission_cu": delays, "source_length": 1000 * float(segment.duration)}) + "\n"


def main(arguments: Sequence[str]) -> None:
    """Run simulstream_score_latency."""
    sys.argv = ["simulstream_score_latency", *arguments]
    score_latency.cli_main()


def _pieces(args: Namespace) -> str | None:
    """Return the kind of the log's tokens, from the option or the configuration of simulstream's detokenizer."""
    config = yaml.safe_load(Path(args.eval_config).read_text(encoding="utf-8")) or {}
    pieces: str | None = args.sqa_pieces
    if pieces or config.get("detokenizer_type") != "simuleval":
        return pieces
    return {"spm": "sentencepiece", "char": "characters", "word": "words"}.get(str(config.get("latency_unit")))
