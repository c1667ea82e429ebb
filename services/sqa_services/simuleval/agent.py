"""An unchanged SimulEval agent as a translator.

    translator: {name: simuleval, agent: my_agent.py:MyAgent, args: [--waitk, 3]}
    translator: {name: simuleval, agent: my.package.agents:MyAgent}

The class is built as in `simuleval --agent FILE ARGS` (its own options and all of SimulEval's) and driven as in
SimulEval 1.1's evaluator.  Every `pushpop` passes one more source word, and empty segments after the last word, until
the agent returns a segment that is `finished`.  The agent's output is split at white space into words.

SimulEval announces the last word to an agent together with that word.  A source of this project cannot do so, because
its end is known only when another word is requested.  So `translate` looks at the source's `__length_hint__`, which
iterators over lists and tuples have, and announces the end with the last word, as SimulEval does.  If a source does not
know its length, an empty segment after the last word announces the end.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from operator import length_hint
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

from sqa.core import ConfigError, DataError, Emission, Question, need
from sqa.core.own.code import Code
from sqa.core.paths import BUILT
from sqa.files import digest, file_digest
from sqa_services.protocols.agents import agent_class

if TYPE_CHECKING:
    from simuleval.agents import GenericAgent

VERSION = 1  # increase when the way in which an agent is driven changes
PATIENCE = 10_000  # pushes after the end of a sentence before giving up on an agent that never finishes


@dataclass(frozen=True, slots=True)
class SimulevalConfig:
    """Configuration of an agent: its class and its command line."""

    agent: Annotated[str, '"path/to/file.py:ClassName" or "module:ClassName"']
    args: Annotated[tuple[str | int | float, ...], "as on SimulEval's command line: [--waitk, 3]"] = ()

    def __post_init__(self) -> None:
        if not all(self.agent.rpartition(":")):
            raise ConfigError(f"agent: must be file.py:ClassName or module:ClassName, got {self.agent!r}")


class SimulevalTranslator:
    """A translator that drives one agent object through sentence after sentence."""

    def __init__(self, config: SimulevalConfig) -> None:
        self.name = config.agent
        arguments = [str(argument) for argument in config.args]
        with quiet_imports():
            from simuleval.agents import GenericAgent
            from simuleval.data.segments import EmptySegment, Segment, TextSegment

            kind, code = agent_class("agent", config.agent, GenericAgent)
            self.agent = _build_agent(kind, arguments)
            BUILT.append(code)
        self._empty, self._segment, self._text = EmptySegment, Segment, TextSegment
        medium = f"{self.agent.source_type} to {self.agent.target_type}"
        if medium != "text to text":
            raise ConfigError(f"agent: {self.name} is {medium}; only text-to-text agents are supported")
        self._fingerprint = _fingerprint(kind, self.agent, arguments, code)

    def translate(self, source: Iterator[str]) -> Iterator[str]:
        """Yield the words of one sentence; each `pushpop` pulls a word of `source` until the agent has seen the end."""
        self.agent.reset()
        ended, index, idle = False, 0, 0
        while idle <= PATIENCE:
            word = None if ended else next(source, None)
            if word is None:
                ended, index, idle = True, 0, idle + 1
            else:
                ended = length_hint(source, 1) == 0
                if ended and next(source, None) is not None:
                    raise DataError("the source has more words than its __length_hint__ announced")
            words, finished = self._pushpop(index, word, ended)
            yield from words
            if finished:
                return
            index += 1
        raise DataError(f"{self.name}: did not finish within {PATIENCE} steps after the end of a sentence")

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]:
        """Return the emissions of whole questions, sentence by sentence; every source knows its length."""
        return [[e for i, words in enumerate(q.sentences) for e in self._emissions(words, i)] for q in questions]

    def _emissions(self, words: Sequence[str], sentence: int) -> Iterator[Emission]:
        source = iter(words)
        for token in self.translate(source):
            left = length_hint(source)
            yield Emission(sentence, token, len(words) - left, left == 0)

    def _pushpop(self, index: int, word: str | None, ended: bool) -> tuple[list[str], bool]:
        """Pass a word to the agent (None after the last one); return its words and whether it has finished."""
        segment = self._empty(finished=True) if word is None else self._text(index=index, content=word, finished=ended)
        output = self.agent.pushpop(segment)
        if not isinstance(output, self._segment):
            raise DataError(f"{self.name}: pushpop returned {type(output).__name__}, not a SimulEval Segment")
        return [] if output.is_empty else output.content.split(), output.finished

    def fingerprint(self) -> str:
        """Return a hash of SimulEval's version, the agent's code, its arguments and the files that they name.

        If the agent has a method `fingerprint() -> str`, its value is hashed, too.
        """
        return self._fingerprint


def build(config: SimulevalConfig) -> SimulevalTranslator:
    """Return the translator of a config.  Raises ConfigError if SimulEval or the agent is missing."""
    need("simuleval", "translator 'simuleval'")
    return SimulevalTranslator(config)


# ----------------------------------------------------------------------------------------------- building the agent


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"args: {message}")


def _build_agent(kind: type[GenericAgent], arguments: list[str]) -> GenericAgent:
    """Build an agent with these arguments, as simuleval.utils.agent.build_system_args does."""
    from simuleval import options

    before, sys.argv = sys.argv, ["simuleval", *arguments]  # SimulEval and some agents read sys.argv
    try:
        parser = options.general_parser(None, _Parser(prog="simuleval", add_help=False, conflict_handler="resolve"))
        options.add_evaluator_args(parser)
        options.add_scorer_args(parser, arguments)
        options.add_slurm_args(parser)
        options.add_dataloader_args(parser, arguments)
        kind.add_args(parser)
        args = parser.parse_args(arguments)
        if args.eval_latency_unit != "word":
            raise ConfigError(f"args: --eval-latency-unit must be word, got {args.eval_latency_unit}")
        agent = kind.from_args(args)
        agent.to(args.device, fp16=args.dtype == "fp16" or (args.dtype is None and args.fp16))
        return agent
    finally:
        sys.argv = before


@contextmanager
def quiet_imports() -> Iterator[None]:
    """Silence the warnings of speech packages, which SimulEval imports even for text."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "'audioop' is deprecated", DeprecationWarning)
        warnings.filterwarnings("ignore", "Couldn't find ffmpeg or avconv", RuntimeWarning)
        yield


def _fingerprint(kind: type[GenericAgent], agent: GenericAgent, arguments: list[str], code: Code) -> str:
    parts: list[object] = [VERSION, version("simuleval"), kind.__name__, arguments]
    named = [Path(value) for argument in arguments if (value := argument.rpartition("=")[2])]
    parts.append(code.digest)
    for path in (Path(inspect.getfile(kind)), *named):
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        parts.append([[file.name, file_digest(file)] for file in files if file.is_file()])
    own_fingerprint = getattr(agent, "fingerprint", None)
    if callable(own_fingerprint):
        parts.append(str(own_fingerprint()))
    return digest(parts)
