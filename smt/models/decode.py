"""Wait-k decoding in two forms: streaming (reads words one by one) and batched (a recorded corpus at once).

Both forms give equal words and equal g(j).  The search is greedy and follows these rules:

1.  READ k words; then, per target word, WRITE its pieces and READ one more source word.  With an emission rate r
    other than 1, word j + 1 needs k + floor(j / r) source words: some READs then take two words, or none.
2.  A word is complete when the model's next choice starts another word or ends the sentence.  It is published with the
    g of that moment; the choice itself is discarded and repeated after the READ.  It is then restricted to word starts
    and the end of the sentence, because the published word can no longer grow.
3.  Choosing the end of the sentence before the source has ended means READ.  So
    g(j) = min(k + j - 1, |S|) unless the model chose to wait; g(j) is never smaller.
4.  smt/models/stepper.py defines which pieces may be chosen.

With `unit: piece` k counts pieces, as fairseq's does, and rules 1 and 2 become:

1.  Target piece j is chosen when at least k + floor((j - 1) / r) source pieces were read; the end of the source counts
    as a piece.  READ takes whole source words until that many pieces have been read.
2.  The choice that completes a word is kept.  The word is published with the g (in WORDS) of that moment,
    which includes the READ due for that choice: if every word is one piece, g(j) = k + j, not k + j - 1.

smt/models/stepper.py defines the model interface.

On a GPU a batch makes CHOICES choices per sentence before it publishes their words, to avoid waiting for the device in
between.  Sentences that end before the last choice stay unchanged.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from smt.models.stepper import Begun, Stepper, Writer, Written, by_length
from smt.policies.waitk import Schedule

ALIVE = 0.75  # finished sentences are dropped when fewer than this share are live; dropping each at once costs more
CHOICES = 16
ROWS = 4096  # hypotheses decoded together on a GPU; more are not faster


@torch.inference_mode()
def decode_batch(writer: Writer, sentences: Sequence[Sequence[str]], schedule: Schedule) -> list[list[Written]]:
    """Translate complete sentences in batches; an empty sentence gives no words.

    A batch that does not fit into the memory of a GPU is halved.
    """
    rows = ROWS if writer.device.type == "cuda" else writer.batch
    written: list[list[Written]] = [[] for _ in sentences]
    waiting = by_length(sentences, rows)
    while waiting:
        numbers = waiting.pop(0)
        try:
            words = _decode(writer, [sentences[i] for i in numbers], schedule)
        except torch.OutOfMemoryError:
            if len(numbers) == 1:
                raise
            half = len(numbers) // 2
            waiting[:0] = [numbers[:half], numbers[half:]]
            continue
        for i, of_sentence in zip(numbers, words, strict=True):
            written[i] = of_sentence
    return written


def _decode(writer: Writer, sources: Sequence[Sequence[str]], schedule: Schedule) -> list[list[Written]]:
    """Translate non-empty sentences together."""
    written: list[list[Written]] = [[] for _ in sources]
    numbers = list(range(len(sources)))
    stepper = writer.begin(sources, schedule)
    start_reading(stepper, schedule)
    trackers = [writer.bonus.tracker(words) for words in sources] if writer.bonus else [None] * len(sources)
    search = GreedySearch(writer, stepper, schedule, trackers)
    choices = 1 if writer.device.type == "cpu" or writer.bonus else CHOICES
    state = stepper.state
    while going := int(state.alive.sum()):
        if going < ALIVE * len(state.alive):
            numbers = [i for i, on in zip(numbers, state.alive.tolist(), strict=True) if on]
            search.keep(state.alive)
        for i, words in search.advance(choices):
            written[numbers[i]] += words
        stepper.read(search.due, stepper.state.written)
    return written


def decode_stream(writer: Writer, source: Iterator[str], schedule: Schedule) -> Iterator[str]:
    """Translate while reading: pulls a word from `source` for READ, yields a word for WRITE."""
    tracker = writer.bonus.tracker() if writer.bonus else None
    stepper = writer.stream(_reading(tracker, source), schedule)
    start_reading(stepper, schedule)
    if not int(stepper.state.length[0]):
        return
    search = GreedySearch(writer, stepper, schedule, [tracker])
    while bool(stepper.state.alive[0]):
        for _, words in search.advance():
            yield from (word.token for word in words)
        stepper.read(search.due, stepper.state.written)


def _reading(tracker: Any, source: Iterator[str]) -> Iterator[str]:
    """Yield the words of `source`, reporting each word read to the bonus's tracker, if there is one."""
    for word in source:
        if tracker is not None:
            tracker.hear(word)
        yield word


def start_reading(stepper: Stepper, schedule: Schedule) -> None:
    """READ the words that the first target word needs."""
    none = torch.zeros_like(stepper.state.written)
    stepper.read(none + schedule.k if schedule.unit == "word" else none, none)


class GreedySearch:
    """A sequence of choices for each of B sentences; every sentence advances at its own pace."""

    def __init__(self, writer: Writer, stepper: Stepper, schedule: Schedule, trackers: list[Any]) -> None:
        """Start from `stepper`; `trackers` holds the bonus's tracker of each sentence, or None (`Bonus.tracker`)."""
        self.writer, self.stepper, self.state, self.schedule = writer, stepper, stepper.state, schedule
        self.trackers, self.open_pieces = trackers, [list[int]() for _ in trackers]
        self.due = torch.zeros_like(self.state.written)  # (B,) words to READ before the next choice

    def keep(self, rows: Tensor) -> None:
        """Keep only these rows, (B,) bool."""
        kept = rows.nonzero()[:, 0].tolist()
        self.trackers = [self.trackers[i] for i in kept]
        self.open_pieces = [self.open_pieces[i] for i in kept]
        self.stepper.keep(rows)

    @torch.inference_mode()
    def advance(self, choices: int = 1) -> list[tuple[int, list[Written]]]:
        """Make `choices` choices per sentence, with READ between them; return (sentence, words) for completed words.

        Sets `due` for the READ that follows.  Sentences that have ended stay unchanged.
        """
        made = [self.choose()]
        for _ in range(choices - 1):
            self.stepper.read(self.due, self.state.written)
            made.append(self.choose())
        return self.publish(torch.stack(made, 1).cpu())

    def choose(self) -> Tensor:
        """Make one choice per sentence and set `due`; return (complete, commit, piece, g, ended) of each, (B, 5)."""
        state, rules, bonus = self.state, self.writer.rules, self.writer.bonus
        scores, full = self.stepper.score()
        scores = rules.forbid(scores, state)  # (B, V)
        if bonus is not None:
            favoured = bonus.favour(scores.cpu(), Begun(self.open_pieces, self.trackers, state.read.tolist()))
            scores = favoured.to(scores.device)
        choice = torch.where(full, rules.end, scores.argmax(-1))
        end, ended = choice == rules.end, state.ended
        complete = state.word_open & (rules.starts(choice, state.last) | end) & state.alive
        due = torch.where(complete, self.schedule.words_after(state.words + 1), 1)
        due = torch.where(end, due.clamp_min(1), due)
        wait = ~ended & (end | complete) & (due > 0) & state.alive
        commit = ~end & ~wait & state.alive
        state.words = state.words + complete
        state.word_open = state.word_open & ~complete
        state.commit(choice, commit)
        state.alive = state.alive & ~(end & ended)
        self.due = wait * due
        return torch.stack([complete, commit, choice, state.g, ended], 1)

    def publish(self, made: Tensor) -> list[tuple[int, list[Written]]]:
        """Return the words completed by choices (B, T, 5), see `choose`."""
        published, open_pieces, spell = [], self.open_pieces, self.writer.spell
        has_effect = (made[:, :, 0] | made[:, :, 1]) > 0  # (B, T)
        rows = has_effect.nonzero()[:, 0].tolist()
        for row, complete, commit, piece, g, ended in zip(rows, *made[has_effect].T.tolist(), strict=True):
            if complete:
                token = spell(open_pieces[row])
                open_pieces[row] = []
                if token:
                    published.append((row, [Written(token, g, bool(ended))]))
                    if self.trackers[row] is not None:
                        self.trackers[row].wrote(token, g)
            if commit:
                open_pieces[row].append(piece)
        return published
