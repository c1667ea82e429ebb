"""State of one evaluation on the server: the part of each sentence that was read, and the written words with times.

`strict` reproduces faults of the original servers:

    the result of a sentence contains its reference and its whole source, whether read or not
    scores of a part of the corpus look like scores of the whole corpus
    negative sentence numbers index from the end; hypotheses of unknown sentences are accepted and break the result
    the last token of a sentence is dropped even if it is not "</s>"; tokens after "</s>" count
    one sentence without words breaks the result, or makes it NaN (SimulEval 1.0.2)
    the guide's routes count every delay below |x| one too high, and omit the end of a sentence
    SimulEval's sentence BLEU has "</s>" in the hypothesis
    a token without a word, such as "" by the guide's route, has a delay; by that route several words are one token
    a browser's navigation requests are executed, so any page can reset a session or read in it
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqa.metrics.latency import IWSLT_2020_FINAL, IWSLT_2020_FIRST, SIMULEVAL_1_0_2
from sqa_services.net.guard import Refused
from sqa_services.net.server import LOG
from sqa_services.protocols.iwslt import scores as scoring
from sqa_services.protocols.iwslt.corpus import EOS, Corpus, Sentence, SpeechCorpus, TextCorpus, words
from sqa_services.protocols.iwslt.questions import MAX_WORDS, QuestionScorer, Row
from sqa_services.protocols.iwslt.scores import Latency, Translated

MAX_TOKENS = 10_000  # maximum number of tokens of one sentence


class Session:
    """State of all sentences of one client.  Methods are called from one thread; `frozen` may be scored in another.

    Raises Refused for these requests; a refused request changes nothing:

    - 500: a sentence that the corpus does not contain or cannot score, as in the originals
    - 413: more than MAX_TOKENS tokens of a sentence, or more than MAX_WORDS words of a question
    """

    def __init__(self, corpus: Corpus, strict: bool = False, scorer: QuestionScorer | None = None) -> None:
        """Create an empty session.  With a `scorer`, the corpus consists of the scorer's questions."""
        self.corpus, self.strict, self.scorer = corpus, strict, scorer
        self.reset()

    def reset(self) -> None:
        """Discard all sentences and scores."""
        self.sentences: dict[int, Sentence] = {}
        self.scored = False  # whether a result of all sentences was requested since the last reset
        self.rows: dict[int, tuple[int, Row]] = {}  # question -> number of scored words, and their statistics

    def sentence(self, number: int, writing: bool = False, wrap: bool = True) -> Sentence:
        """Return the state of a sentence; every request for a sentence calls this method first.

        Raises Refused (500) if the corpus has no such sentence.  `strict` with `wrap` accepts negative numbers, like
        the original's list index, and any number when `writing`.
        """
        exists = 0 <= number < len(self.corpus)
        if self.strict and wrap:
            exists = writing or -len(self.corpus) <= number < len(self.corpus)
        if not exists:
            raise Refused(500, f"sentence {number}: the corpus has 0 to {len(self.corpus) - 1}")
        return self.sentences.get(number, Sentence())

    def _put(self, number: int, state: Sentence) -> None:
        """Keep the new state of a sentence."""
        if number not in self.sentences and len(self.sentences) >= 2 * len(self.corpus) + MAX_TOKENS:
            raise Refused(413, "more sentences than the corpus can have")
        self.sentences[number] = state

    def read(self, number: int, size: int | None = None, guide: bool = False, instance: bool = False) -> dict[str, Any]:
        """Return the next segment as JSON of the 2020 server, or of SimulEval 1.0.2 (by samples) if `instance` is set.

        With `guide` and `strict`, reading the end does not count.  Segments that were sent once stay read, wherever the
        cursors move.
        """
        sentence = self.sentence(number, wrap=not instance)
        step, samples = cursor = sentence.step, sentence.samples
        if instance and isinstance(self.corpus, SpeechCorpus):
            segment = self.corpus.take(number, samples, size)
            after, reach = (step, segment.after), segment.reach
        else:
            segment = self.corpus.read(number, int(step), size)
            after, reach = (segment.after, samples), segment.reach
            if guide and self.strict and segment.answer["segment"] == EOS:
                after, reach = cursor, step
        started, reach = sentence.started or time.monotonic(), max(sentence.reach, reach)
        self._put(number, replace(sentence, started=started, reach=reach, step=after[0], samples=after[1]))
        return segment.answer | {"instance_id": number} if instance else {"sent_id": number} | segment.answer

    def tokens_of(self, hypothesis: str, guide: bool = False) -> list[str]:
        """Return the words of a hypothesis; `strict`: the originals' tokens, or one token by the guide's route."""
        if not self.strict:
            return words(hypothesis)
        return [hypothesis] if guide else hypothesis.split()

    @property
    def finished(self) -> int:
        """Number of finished sentences of the corpus."""
        return sum(s.finished and number < len(self.corpus) for number, s in self.sentences.items())

    def write(self, number: int, tokens: Sequence[str], wrap: bool = True) -> None:
        """Record tokens with the current delay.  Tokens after "</s>" are ignored, except by the strict 2020 server."""
        state = self.sentence(number, writing=True, wrap=wrap)
        if len(state.tokens) + len(tokens) > MAX_TOKENS:
            raise Refused(413, f"sentence {number}: more than {MAX_TOKENS} tokens")
        if self.scorer is not None and not self.scorer.has_room(number, len(tokens), self.sentences):
            raise Refused(413, f"sentence {number}: more than {MAX_WORDS} words of its question")
        now = time.monotonic()
        started = state.started or now
        if not (self.strict and wrap) and (state.finished or EOS in tokens):
            tokens = () if state.finished else tokens[: tokens.index(EOS) + 1]
        elapsed = (now - started) * 1000 + (state.reach if self.corpus.kind == "speech" else 0)
        more = len(tokens)
        self._put(
            number,
            replace(
                state,
                started=started,
                tokens=(*state.tokens, *tokens),
                delays=(*state.delays, *[state.reach] * more),
                elapsed=(*state.elapsed, *[elapsed] * more),
            ),
        )

    def frozen(self) -> Session:
        """Return a copy that is independent of later requests."""
        frozen = copy(self)
        frozen.sentences, frozen.rows = dict(self.sentences), dict(self.rows)
        return frozen

    # ------------------------------------------------------------------------------------------- results of 2020

    def result(self, folder: Path | None = None, guide: bool = False) -> dict[str, Any]:
        """Return the scores of all sentences up to the last one that has words, and write them to `folder`.

        Scores are null while the corpus has unfinished sentences, unless `strict` is set.

        Raises Refused if there are no words, and with `strict` if a sentence is unknown or has no words.
        """
        first = guide and self.strict
        last = max((number for number, s in self.sentences.items() if s.tokens), default=-1)
        if last >= min(len(self.corpus), len(self.corpus.targets)):
            raise Refused(500, f"sentence {last} has words and is not in the corpus")
        sentences = [self._translated(number, first) for number in range(last + 1)]
        convention = IWSLT_2020_FIRST if first else IWSLT_2020_FINAL
        scores = scoring.flat_scores(sentences, convention, self.strict)
        if self.scorer is not None:
            scores |= self.scorer.result(self.sentences, self.rows)
        if not self.strict:
            scores = scoring.of_the_finished(scores, self.finished, len(self.corpus))
        if folder is not None:
            try:
                scoring.write_files(folder, sentences, scores)
            except OSError as error:  # the client still gets its scores, as in the original
                LOG.error("%s: %s; not written", error.filename, error.strerror)
        return scores

    def _translated(self, number: int, first: bool) -> Translated:
        sentence = self.sentences.get(number, Sentence())
        tokens, delays = sentence.tokens, sentence.delays
        if self.strict:
            tokens, delays = tokens[:-1], delays[:-1] if first else delays
        length = self.corpus.length(number)
        if self.corpus.kind == "text":
            length += not first
        else:
            delays = tuple(min(delay, length) for delay in delays)  # the original's length is in whole ms
        return Translated(self._text(tokens), tuple(delays), length, self.corpus.targets[number])

    def _text(self, tokens: Sequence[str]) -> str:
        """Return the text to be scored, without the end mark; `strict` keeps all tokens."""
        return " ".join(tokens if self.strict else [token for token in tokens if token != EOS])

    # ---------------------------------------------------------------------------------- results of SimulEval 1.0.2

    def nested_result(self) -> dict[str, Any]:
        """Return {"Quality": {"BLEU"}, "Latency": {"AL", "AP", "DAL"}}.

        For speech, each latency also has a "_CA" variant.  For a corpus of questions, the result also has "Answers".
        """
        targets = self.corpus.targets[: len(self.corpus)]
        states = [self.sentences.get(number, Sentence()) for number in range(len(targets))]

        def latency(times: str) -> dict[str, float | None]:
            return scoring.mean_latency(
                [self._latency(number, getattr(state, times)) for number, state in enumerate(states)], self.strict
            )

        scores: dict[str, Any] = {"Quality": {}, "Latency": latency("delays")}
        if self.corpus.kind == "speech":
            aware = {f"{key}_CA": value for key, value in latency("elapsed").items()}
            scores["Latency"] = dict(sorted((scores["Latency"] | aware).items()))
        if self.scorer is not None:
            scores["Answers"] = self.scorer.result(self.sentences, self.rows)
            scores["Quality"]["BLEU"] = scores["Answers"].pop("BLEU")
        else:
            texts = [" ".join(token for token in state.tokens if token != EOS) for state in states]
            scores["Quality"]["BLEU"] = scoring.bleu(texts, targets)
        return scores if self.strict else scoring.of_the_finished(scores, self.finished, len(self.corpus))

    def instance(self, number: int) -> dict[str, Any]:
        """Return all public values of one sentence, and null for the others.

        Only words that were sent are shown.  Lengths and scores are shown after the sentence is finished.  Only
        `strict` shows references; it shows everything, and also scores an unfinished sentence once all sentences were
        scored.
        """
        sentence = self.sentence(number, wrap=False)
        told = self.strict or sentence.finished
        reference = self.corpus.targets[number].split()
        scored = sentence.finished or self.scored if self.strict else told
        if isinstance(self.corpus, TextCorpus):
            source_words = self.corpus.sources[number]
            source: str | None = " ".join(source_words if self.strict else source_words[: int(sentence.reach)])
        else:
            path = self.corpus.recordings[number].path
            source = str(path) if self.strict else path.name if told else None
        return {
            "index": number,
            "prediction": " ".join(sentence.tokens),
            "delays": sentence.delays,
            "elapsed": sentence.elapsed,
            "prediction_length": len(sentence.tokens),
            "reference": " ".join(reference) if self.strict else None,
            "source": source,
            "source_length": self.corpus.duration(number) if told else None,
            "reference_length": len(reference) if told else None,
            "metric": self._metric(number, sentence) if scored else {},
        }

    def _metric(self, number: int, sentence: Sentence) -> dict[str, Any]:
        reference = self.corpus.targets[number]
        named = self.scorer is None or reference  # a question's reference may have another number of sentences
        metric = {
            "sentence_bleu": scoring.sentence_bleu(self._text(sentence.tokens), reference) if named else None,
            "latency": self._shown(self._latency(number, sentence.delays)),
        }
        if self.corpus.kind == "speech":
            metric["latency_ca"] = self._shown(self._latency(number, sentence.elapsed))
        return metric

    def _latency(self, number: int, delays: Sequence[float]) -> Latency:
        """Return the latency of one sentence; the length of a text includes its end."""
        text = self.corpus.kind == "text"
        reference = len(delays) if text else len(self.corpus.targets[number].split()) + 1
        return scoring.sentence_latency(delays, self.corpus.duration(number) + text, SIMULEVAL_1_0_2, reference)

    def _shown(self, latency: Latency) -> dict[str, float | None]:
        """Return {"AL", "AP", "DAL"}; undefined values are null, or NaN with `strict`."""
        values = latency._asdict()
        return values if self.strict else {key: None if math.isnan(value) else value for key, value in values.items()}
