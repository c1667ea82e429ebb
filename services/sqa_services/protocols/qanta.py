"""A guesser and a buzzer of this project as a QANTA system: `sqa serve qanta`.

    GET  /api/1.0/quizbowl/status      {"batch": true, "batch_size": 200, "ready": true, ...}
    POST /api/1.0/quizbowl/act         {"question_idx", "sent_index", "char_index", "text"} -> {"guess", "buzz"}
    POST /api/1.0/quizbowl/batch_act   {"questions": [as for act, ...]} -> [{"guess", "buzz"}, ...]

A request brings all of a question that is known, and nothing is remembered between requests: what the guesser named
after each of its words is worked out again, so the buzzer, which looks back, decides as it does in a run that guesses
after every word.  A word that is cut in the middle is read as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sqa.core.errors import ConfigError, lacking
from sqa.run.named import contestant_from
from sqa_services.protocols.qanta_player import Player


def serve(
    guesser: str,
    buzzer: str,
    host: str,
    port: int,
    token: str | None,
    underscores: bool,
    names: Sequence[str] = (),
) -> None:
    """Serve until interrupted; `guesser` and `buzzer` are YAML, or a run's config file.  ConfigError."""
    try:
        from sqa_services.net.connections import run_app
        from sqa_services.protocols.qanta_http import QantaConfig, make_app
    except ModuleNotFoundError as error:
        raise lacking(error, "sqa serve qanta") from error
    config = QantaConfig(host, port, token, underscores, names=tuple(names))
    guessing, buzzing = contestant_from(guesser, buzzer)
    if buzzing is None:
        raise ConfigError("--buzzer: a QANTA system has to say when it buzzes; name one")
    app = make_app(Player(guessing, buzzing), config)
    print(f"sqa: answering at http://{host}:{port}/api/1.0/quizbowl/act", file=sys.stderr)
    run_app(app, host, port)
