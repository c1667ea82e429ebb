"""One evaluation on the server: how far each sentence is read, and what was written when.

`strict` keeps what the originals did and should not have:

    a sentence's result has its reference, and before it is finished what was not yet read of its source
    scores of a part of the corpus look like those of all of it
    negative sentence numbers index from the end; hypotheses of unknown sentences are accepted and break the result
    the last token of a sentence is dropped whether or not it is "</s>"; what follows "</s>" counts
    one sentence without words breaks the result, or makes it NaN (SimulEval 1.0.2)
    the guide's routes count every delay below |x| one too high, and leave the end of a sentence out
    SimulEval's sentence BLEU has "</s>" in the hypothesis
    a token without a word, such as "" by the guide's route, has a delay; by that route several words are one token
    what a navigation of a browser asks for is done, so any page can reset a session or read in it
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqa.metrics.latency import IWSLT_2020_FINAL, IWSLT_2020_FIRST, SIMULEVAL_1_0_2
from sqa_services.net.connections import LOG
from sqa_services.net.guard import Refused
from sqa_services.protocols.iwslt import scores as scoring
from sqa_services.protocols.iwslt.corpus import EOS, Corpus, SpeechCorpus, words
from sqa_services.protocols.iwslt.journal import Sentence
from sqa_services.protocols.iwslt.questions import MAX_WORDS, QuestionScorer, Row
from sqa_services.protocols.iwslt.scores import Files, Latency, Translated

MAX_TOKENS = 10_000  # of one sentence
TOKEN_BYTES = 250  # about what a token, its delay and its time take beside its letters
SENTENCE_BYTES = 1500  # and a sentence beside its tokens


class Session:
    """All sentences of one client.  Methods are called from one thread; `frozen` may be scored in another.

    Refused: what the corpus does not have or cannot score (500, as the originals fail), more than MAX_TOKENS tokens of
    a sentence (413), a request that does not follow what the session has (409: another client is at work).
    """

    def __init__(
        self, corpus: Corpus, strict: bool = False, scorer: QuestionScorer | None = None, name: str = ""
    ) -> None:
        """`scorer`: the corpus is that of its questions."""
        self.name, self.corpus, self.strict, self.scorer = name, corpus, strict, scorer
        self.used = time.monotonic()
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.sentences: dict[int, Sentence] = {}
        self.scored = False  # a result of all sentences was asked for since the last reset
        self.size = 0  # bytes that it takes, about
        self.rows: dict[int, tuple[int, Row]] = {}  # question -> words that were scored, and their statistics
        self.waiting: set[int] = set()  # questions that are about to be answered

    def resume(self, sentences: dict[int, Sentence]) -> None:
        """Go on from what a journal has."""
        self.sentences = sentences
        self.size = SENTENCE_BYTES * len(sentences)
        self.size += sum(len(token) + TOKEN_BYTES for s in sentences.values() for token in s.tokens)

    def sentence(self, number: int, writing: bool = False, wrap: bool = True) -> Sentence:
        """The state of a sentence.  `wrap`: where the original's list index took negative numbers."""
        exists = 0 <= number < len(self.corpus)
        if self.strict and wrap:
            exists = writing or -len(self.corpus) <= number < len(self.corpus)
        if not exists:
            raise Refused(500, f"sentence {number}: the corpus has 0 to {len(self.corpus) - 1}")
        if number not in self.sentences:
            if len(self.sentences) >= 2 * len(self.corpus) + MAX_TOKENS:
                raise Refused(413, "more sentences than the corpus can have")
            self.size += SENTENCE_BYTES
            self.sentences[number] = Sentence()
        return self.sentences[number]

    def read(
        self, number: int, size: int | None = None, read: int | None = None, guide: bool = False, instance: bool = False
    ) -> dict[str, Any]:
        """The next segment, as the JSON of the 2020 server, or of SimulEval 1.0.2 (`instance`: a recording by samples).

        `read`: how many reads the client made before this one, which it may have asked for already; see `_cursor`.
        With `guide` and `strict`, reading the end is no step.  What was handed out once has been read, wherever the
        cursors go.
        """
        sentence = self.sentence(number, wrap=not instance)
        step, samples = cursor = self._cursor(number, sentence, read)
        if instance and isinstance(self.corpus, SpeechCorpus):
            segment = self.corpus.take(number, samples, size)
            after, reach = (step, segment.after), segment.reach
        else:
            segment = self.corpus.read(number, int(step), size)
            after, reach = (segment.after, samples), segment.reach
            if guide and self.strict and segment.answer["segment"] == EOS:
                after, reach = cursor, step
        sentence.started = sentence.started or time.monotonic()
        again = read is not None and read < sentence.reads
        if not again:
            sentence.before, sentence.reads = cursor, sentence.reads + 1
        if not (again and self.corpus.kind == "text"):
            sentence.step, sentence.samples = after
        sentence.reach = max(sentence.reach, reach)
        return segment.answer | {"instance_id": number} if instance else {"sent_id": number} | segment.answer

    def _cursor(self, number: int, sentence: Sentence, read: int | None) -> tuple[float, int]:
        """Step and samples at which a read begins; `read` others came before it, None: all that are known.

        A read that was made before is answered again: of a text any, of a recording the last; others: Refused.
        """
        if read is None or read == sentence.reads:
            return sentence.step, sentence.samples
        if self.corpus.kind == "text" and 0 <= read < sentence.reads:
            return min(read, self.corpus.length(number) + 1), 0
        if 0 <= read == sentence.reads - 1:
            return sentence.before
        raise Refused(409, f"sentence {number}: {sentence.reads} reads are known, this would be number {read + 1}")

    def tokens_of(self, hypothesis: str, guide: bool = False) -> list[str]:
        """The words of a hypothesis; `strict`: the originals' tokens, by the guide's route all of it as one."""
        if not self.strict:
            return words(hypothesis)
        return [hypothesis] if guide else hypothesis.split()

    def has_written(self, number: int, written: int, tokens: Sequence[str]) -> bool:
        """Whether a client's tokens, after `written` others, are here already; others in their place: Refused."""
        tokens_here = self.sentence(number, writing=True).tokens
        if written == len(tokens_here):
            return False
        if tokens_here[written : written + len(tokens)] != list(tokens):
            problem = f"has {len(tokens_here)} tokens, these are not numbers {written + 1} on"
            raise Refused(409, f"sentence {number}: {problem}")
        return True

    @property
    def finished(self) -> int:
        """Sentences of the corpus that have ended."""
        return sum(s.finished and number < len(self.corpus) for number, s in self.sentences.items())

    def write(self, number: int, tokens: Sequence[str], wrap: bool = True) -> int:
        """Record tokens at what was read so far; how many came before.

        After "</s>" they are ignored, but by the strict 2020 server.
        """
        sentence = self.sentence(number, writing=True, wrap=wrap)
        first = len(sentence.tokens)
        if first + len(tokens) > MAX_TOKENS:
            raise Refused(413, f"sentence {number}: more than {MAX_TOKENS} tokens")
        if self.scorer is not None and not self.scorer.has_room(number, len(tokens), self.sentences):
            raise Refused(413, f"sentence {number}: more than {MAX_WORDS} words of its question")
        sentence.started = sentence.started or time.monotonic()
        for token in tokens:
            if sentence.finished and not (self.strict and wrap):
                break
            self.size += len(token) + TOKEN_BYTES
            sentence.tokens.append(token)
            sentence.delays.append(sentence.reach)
            spoken = sentence.reach if self.corpus.kind == "speech" else 0
            sentence.elapsed.append((time.monotonic() - sentence.started) * 1000 + spoken)
        return first

    def frozen(self) -> Session:
        """A copy that later requests do not change."""
        copy = Session(self.corpus, self.strict, self.scorer)
        copy.scored, copy.rows = self.scored, dict(self.rows)
        copy.sentences = {
            number: replace(s, tokens=[*s.tokens], delays=[*s.delays], elapsed=[*s.elapsed])
            for number, s in self.sentences.items()
        }
        return copy

    # ------------------------------------------------------------------------------------------- results of 2020

    def result(self, files: Files | None = None, guide: bool = False) -> dict[str, Any]:
        """Scores of the sentences from 0 to the last that has words, null while others remain; to the files too.

        No words at all, and with `strict` an unknown sentence or one without words: Refused.
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
        if files is not None:
            try:
                scoring.write_files(files, sentences, scores)
            except OSError as error:  # the client shall have its scores all the same, as in the original
                LOG.error("sqa: %s: %s; not written", error.filename, error.strerror)
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
            delays = [min(delay, length) for delay in delays]  # the 2020 server's length of a recording is in whole ms
        return Translated(self._text(tokens), tuple(delays), length, self.corpus.targets[number])

    def _text(self, tokens: Sequence[str]) -> str:
        """The tokens as they are scored, without the end; `strict`: as they are."""
        return " ".join(tokens if self.strict else [token for token in tokens if token != EOS])

    # ---------------------------------------------------------------------------------- results of SimulEval 1.0.2

    def nested_result(self) -> dict[str, Any]:
        """{"Quality": {"BLEU"}, "Latency": {"AL", "AP", "DAL"}}, of speech with "_CA" beside each.

        Of questions also "Answers".
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
        """Everything about one sentence that may be shown; what is not yet read is null until it has ended.

        References are shown by `strict` alone, which also scores an unfinished sentence once all were scored.
        """
        sentence = self.sentence(number, wrap=False)
        reference = self.corpus.targets[number].split()
        over = self.strict or sentence.finished
        return {
            "index": number,
            "prediction": " ".join(sentence.tokens),
            "delays": sentence.delays,
            "elapsed": sentence.elapsed,
            "prediction_length": len(sentence.tokens),
            "reference": " ".join(reference) if self.strict else None,
            "source": self._source_info(number, sentence, over),
            "source_length": self.corpus.duration(number) if over else None,
            "reference_length": len(reference) if over else None,
            "metric": self._metric(number, sentence) if sentence.finished or (self.strict and self.scored) else {},
        }

    def _metric(self, number: int, sentence: Sentence) -> dict[str, Any]:
        reference = self.corpus.targets[number]
        named = self.scorer is None or reference  # a question's reference may have other sentences than its source
        metric = {
            "sentence_bleu": scoring.sentence_bleu(self._text(sentence.tokens), reference) if named else None,
            "latency": self._shown(self._latency(number, sentence.delays)),
        }
        if self.corpus.kind == "speech":
            metric["latency_ca"] = self._shown(self._latency(number, sentence.elapsed))
        return metric

    def _latency(self, number: int, delays: Sequence[float]) -> Latency:
        """Of one sentence; that of a text counts its end."""
        text = self.corpus.kind == "text"
        reference = len(delays) if text else len(self.corpus.targets[number].split()) + 1
        return scoring.sentence_latency(delays, self.corpus.duration(number) + text, SIMULEVAL_1_0_2, reference)

    def _shown(self, latency: Latency) -> dict[str, float | None]:
        """{"AL", "AP", "DAL"}; null where undefined, NaN with `strict`."""
        values = latency._asdict()
        return values if self.strict else {key: None if math.isnan(value) else value for key, value in values.items()}

    def _source_info(self, number: int, sentence: Sentence, over: bool) -> str | None:
        """The words that were read, all of them at the end; of a recording its file's name at the end."""
        if self.corpus.kind == "text":
            source = self.corpus.sources[number]
            return " ".join(source if over else source[: int(sentence.reach)])
        path = self.corpus.recordings[number].path
        return str(path) if self.strict else path.name if over else None
