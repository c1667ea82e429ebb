"""Greedy wait-k decoding, once each way: streaming (reads words one by one) and batched (a recorded corpus at once).

Both follow the same rules and give equal words and equal g(j):

1.  READ k words; then, per target word, WRITE its pieces and READ one more source word.  With an emission rate r
    other than 1, word j + 1 needs k + floor(j / r) source words: now and then two are read, or none.
2.  A word is complete when the model's next choice starts another word or ends the sentence.  It is
    published with the g of that moment; the choice itself is discarded and made again after the READ, now among
    word starts and the end of the sentence only, since the published word can no longer grow.
3.  Choosing the end of the sentence before the source has ended means READ.  So
    g(j) = min(k + j - 1, |S|) unless the model waited by itself; it is never smaller.
4.  Which pieces may be chosen: smt/models/next_piece.py.

With `unit: piece` k counts pieces, as fairseq's does, and rules 1 and 2 become:

1.  Target piece j is chosen when at least k + floor((j - 1) / r) source pieces were read, the end of the source being
    one of them.  A source word arrives whole, so READ takes whole words until that many pieces are there.
2.  The choice that completes a word stands.  The word is published with the g (in WORDS) of that moment,
    which the READ due for the choice is part of: where every word is one piece, g(j) = k + j, not k + j - 1.

A beam, which looks ahead before it publishes a word: smt/models/beam.py.  A model's side: smt/models/stepper.py.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from smt.models.copying import Begun, Names, reading
from smt.models.stepper import Stepper, Writer, Written, by_length
from smt.policies.waitk import Schedule

ALIVE = 0.75  # finished sentences are dropped when fewer than this share go on; copying for every one costs more


@torch.inference_mode()
def decode_batch(writer: Writer, sentences: Sequence[Sequence[str]], schedule: Schedule) -> list[list[Written]]:
    """Translate whole sentences at once; with the words and g of `decode_stream`.  An empty one gives no words."""
    written: list[list[Written]] = [[] for _ in sentences]
    open_pieces: list[list[int]] = [[] for _ in sentences]
    names = [writer.bonus.names(words) if writer.bonus else Names() for words in sentences]
    for numbers in by_length(sentences, writer.batch):
        stepper = writer.begin([sentences[i] for i in numbers], schedule)
        start_reading(stepper, schedule)
        while going := int(stepper.state.alive.sum()):
            if going < ALIVE * len(numbers):
                numbers = [number for number, on in zip(numbers, stepper.state.alive.tolist(), strict=True) if on]
                stepper.keep(stepper.state.alive)
            begun = None
            if writer.bonus:
                read = stepper.state.read.tolist()
                begun = Begun([open_pieces[i] for i in numbers], [names[i] for i in numbers], read)
            choices, due = advance(writer, stepper, schedule, begun)
            for number, choice in zip(numbers, choices.tolist(), strict=True):
                publish(writer, choice, open_pieces[number], written[number], names[number])
            stepper.read(due, stepper.state.written)
    return written


def decode_stream(writer: Writer, source: Iterator[str], schedule: Schedule) -> Iterator[str]:
    """Translate while reading: pulls a word from `source` for READ, yields a word for WRITE."""
    names = writer.bonus.names() if writer.bonus else Names()
    stepper = writer.stream(reading(names, source), schedule)
    start_reading(stepper, schedule)
    if not int(stepper.state.length[0]):
        return
    open_pieces: list[int] = []
    while bool(stepper.state.alive[0]):
        choices, due = advance(writer, stepper, schedule, Begun([open_pieces], [names], [names.words]))
        published: list[Written] = []
        publish(writer, choices[0].tolist(), open_pieces, published, names)
        yield from (word.token for word in published)
        stepper.read(due, stepper.state.written)


def start_reading(stepper: Stepper, schedule: Schedule) -> None:
    """READ what the first word needs."""
    none = torch.zeros_like(stepper.state.written)
    stepper.read(none + schedule.k if schedule.unit == "word" else none, none)


@torch.inference_mode()
def advance(writer: Writer, stepper: Stepper, schedule: Schedule, begun: Begun | None) -> tuple[Tensor, Tensor]:
    """One choice per sentence; those that have ended stay as they are.

    Returns (B, 5) complete (a word is), commit (the piece was taken), piece, ended (the source had), g, and the words
    to READ now (B,).
    """
    state, rules = stepper.state, writer.rules
    scores, full = stepper.score()
    scores = rules.forbid(scores, state.word_open, state.past)  # (B, V)
    if writer.bonus is not None and begun is not None:
        writer.bonus.favour(scores, begun)
    choice = torch.where(full, rules.end, scores.argmax(-1))
    end, ended = choice == rules.end, state.ended
    complete = state.word_open & (rules.starts(choice, state.last) | end) & state.alive
    due = torch.where(complete, schedule.words_after(state.words + 1), 1)
    due = torch.where(end, due.clamp_min(1), due)
    wait = ~ended & (end | complete) & (due > 0) & state.alive
    commit = ~end & ~wait & state.alive
    choices = torch.stack([complete, commit, choice, ended, state.g], 1)
    state.words = state.words + complete
    state.word_open = state.word_open & ~complete
    state.commit(choice, commit)
    state.alive = state.alive & ~(end & ended)
    return choices, wait * due


def publish(
    writer: Writer, choice: Sequence[int], open_pieces: list[int], written: list[Written], names: Names
) -> None:
    """Take over one choice of one sentence: (complete, commit, piece, ended, g)."""
    complete, commit, piece, ended, g = choice
    if complete:
        token = writer.spell(open_pieces)
        open_pieces.clear()
        if token:
            written.append(Written(token, g, bool(ended)))
            names.wrote(token, g)
    if commit:
        open_pieces.append(piece)
