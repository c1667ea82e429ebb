"""Any translator of this project as a SimulEval agent.

    agent=services/sqa_services/simuleval/translator_agent.py
    simuleval --agent $agent --translator '{name: waitk, model: es-en, k: 6}' --source FILE --target FILE
    simuleval --agent $agent --translator configs/xqb_es_wait6_bm25.yaml --source FILE --target FILE

`--translator` takes the value of `translator:` in a config, or a config file whose translator is used.  The extra
"simul" installs SimulEval.

Words and delays equal those of a run of this project: a word that `translate` writes after pulling g words has the
delay g.  SimulEval passes a word before it requests output, so words written at g = 0 have the delay 1.
"""

import weakref
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from threading import Thread, current_thread
from typing import NamedTuple

from simuleval.agents import TextToTextAgent
from simuleval.agents.actions import Action, ReadAction, WriteAction
from simuleval.utils import entrypoint

from sqa.core import TRANSLATORS, ConfigError, Write
from sqa.pipeline import fingerprint_of, translator_from
from sqa.pipeline.overrides import translator_config

Translate = Callable[[Iterator[str]], Iterator[str | Write]]


class _Abandoned(BaseException):
    """Exception raised inside `translate` when its sentence is dropped."""


class Turn(NamedTuple):
    """The output of a translator between two reads."""

    words: list[str | Write]
    finished: bool  # whether the last word of the sentence was written
    error: BaseException | None = None


class Pushed:
    """Inverted control flow of `translate`: the caller pushes source words and receives target words.

    A generator that pulls its input can be suspended inside `next(source)` only if it has a stack of its own.  So
    `translate` runs in a thread that alternates with the caller.  Only one of them runs at a time, nothing is computed
    twice, and any translator works.  The thread lives as long as this object, because torch keeps a pool of workers for
    every thread that calls it.
    """

    def __init__(self, translate: Translate) -> None:
        self._translate = translate
        self._written: list[str | Write] = []
        self._closed = False
        self._to: SimpleQueue[str | _Abandoned | None] = SimpleQueue()
        self._from: SimpleQueue[Turn] = SimpleQueue()
        self._thread = Thread(target=self._run, name="translator", daemon=True)
        self._thread.start()

    def push(self, word: str | None) -> Turn:
        """Push one source word, None at the end of a sentence; return the output until the next word is pulled.

        After a finished turn, the next word begins the next sentence.  Exceptions of the translator are raised here.
        """
        self._to.put(word)
        turn = self._from.get()
        if turn.error is not None:
            raise turn.error
        return turn

    def restart(self) -> None:
        """Drop the current sentence, if there is one."""
        self._to.put(_Abandoned())

    def close(self) -> None:
        """End the thread and wait for it, since the program must not exit while torch ends a thread's workers."""
        self._closed = True
        self._to.put(_Abandoned())
        if self._thread is not current_thread():
            self._thread.join(timeout=10)

    def _run(self) -> None:
        """Translate one sentence after another, in the thread."""
        while not self._closed:
            first = self._to.get()
            if isinstance(first, _Abandoned):
                continue
            self._written = []
            try:
                for word in self._translate(self._source(first)):
                    self._written.append(word)
            except _Abandoned:
                pass
            except BaseException as error:  # the caller waits for a turn even after an error
                self._from.put(Turn([], True, error))
            else:
                self._from.put(Turn(self._written, True))

    def _source(self, word: str | None) -> Iterator[str]:
        """Yield the words as they are pushed; pulling the next word returns control to the caller."""
        while word is not None:
            yield word
            self._from.put(Turn(self._written, False))
            self._written = []
            pushed = self._to.get()
            if isinstance(pushed, _Abandoned):
                raise pushed
            word = pushed


@entrypoint
class TranslatorAgent(TextToTextAgent):
    """A translator of this project as a SimulEval agent."""

    def __init__(self, args: Namespace) -> None:
        self._asked: str = args.translator
        self.translator = translator_from(self._asked)
        self._pushed = Pushed(self.translator.translate)
        self._given = 0  # source words of this sentence that the translator has received
        weakref.finalize(self, self._pushed.close)
        super().__init__(args)

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        parser.add_argument(
            "--translator",
            required=True,
            help="value of `translator:` in a config, e.g. '{name: waitk, model: es-en, k: 6}', or a config file",
        )

    def reset(self) -> None:
        """Drop the current sentence."""
        super().reset()
        self._pushed.restart()
        self._given = 0

    def policy(self) -> Action:
        """Return a WRITE of the translator's output for the new words, or a READ if there is no output."""
        words = " ".join(self.states.source).split()  # a preceding agent may send several words at once
        new: list[str | None] = [*words[self._given :]]
        if self.states.source_finished:
            new.append(None)
        self._given = len(words)
        written: list[str] = []
        for word in new:
            turn = self._pushed.push(word)
            written += map(_appended, turn.words)
            if turn.finished:
                return WriteAction(" ".join(written), finished=True)
        return WriteAction(" ".join(written), finished=False) if written else ReadAction()

    def fingerprint(self) -> str:
        """Return the translator's fingerprint, or a fingerprint of its source and config."""
        return fingerprint_of(TRANSLATORS, translator_config(self._asked), self.translator)


def _appended(word: str | Write) -> str:
    """Return a written word.  Raises ConfigError for a retraction, since SimulEval's agents only append."""
    if isinstance(word, Write):
        if word.erase:
            raise ConfigError("--translator: this translator retracts words; a SimulEval agent can only append")
        return word.token
    return word
