"""`sqa serve iwslt`, asked by `sqa client iwslt`: simultaneous translation evaluated over HTTP, as at IWSLT 2020.

    sqa serve iwslt --src-file SRC --tgt-file TGT --output DIR
    sqa serve iwslt --questions xqb-es                  # expected wins too, while it is translated
    sqa client iwslt --translator '{name: waitk, model: es-en, k: 3}' --reset-server --scores

The server reads source sentences out a word (or 10 ms of speech) at a time and notes how much was read when each target
word comes back.  Programs written for the server of the IWSLT 2020 shared task, for its published guide, or for
SimulEval 1.0.2 work unchanged; what differs from the originals on purpose is listed in `session.py`, and
`--strict-2020` undoes it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sqa.core.errors import ConfigError
from sqa_services.net import connections
from sqa_services.protocols.iwslt.corpus import load
from sqa_services.protocols.iwslt.http import ServeConfig, make_app

if TYPE_CHECKING:
    from sqa_services.protocols.iwslt.corpus import SpeechCorpus, TextCorpus
    from sqa_services.protocols.iwslt.questions import QuestionScorer

STRICT = (
    "--strict-2020 keeps the originals' mistakes: any page in a browser on this machine can reset and read, "
    "tokens without a word have a delay, references are given away; not for evaluating others"
)


def serve(
    source: Path | None,
    target: Path | None,
    kind: Literal["text", "speech"],
    config: ServeConfig,
    questions: str = "",
    guesser: str = "",
    buzzer: str = "",
) -> None:
    """Serve the files, or the sentences of questions, until interrupted.

    `questions` is a question set or a file; `guesser` and `buzzer` are YAML, or a run's config file.
    """
    scorer = None
    if questions:
        if source or target or kind == "speech":
            raise ConfigError("--questions: they are the source and the reference; leave the files and speech out")
        scorer = question_scorer(questions, guesser, buzzer)
        corpus: TextCorpus | SpeechCorpus = scorer.corpus()
    elif target is None:
        raise ConfigError("--tgt-file: a file of references is needed, or --questions")
    else:
        corpus = load(source, target, kind, config.strict)
    app = make_app(corpus, config, scorer)
    kept = f"kept in {config.kept_in}" if config.kept_in else "lost when it ends; --output or --journal keeps them"
    print(f"sqa: sessions are {kept}", file=sys.stderr)
    if config.strict:
        print(f"sqa: {STRICT}", file=sys.stderr)
    print(f"sqa: {len(corpus.targets)} sentences of {corpus.kind} at {config.address.url}", file=sys.stderr)
    connections.run_app(app, config.address)


def question_scorer(questions: str, guesser: str, buzzer: str) -> QuestionScorer:
    """What scores the answers to a question set."""
    from sqa.data.datasets import load_questions
    from sqa.run.named import contestant_from
    from sqa_services.protocols.iwslt.questions import QuestionScorer

    return QuestionScorer(load_questions(questions), *contestant_from(guesser, buzzer))
