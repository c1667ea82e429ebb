"""Pretrained word vectors from a user's file, GloVe or word2vec text.

A word and its numbers a line, blanks between, as GloVe has it (https://nlp.stanford.edu/projects/glove/); a first line
of two numbers, as word2vec and fastText write it, is skipped; .zst is read as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from guessers import text
from sqa.core.errors import DataError
from sqa.files import records


def table(path: Path, vocabulary: Sequence[str], width: int, *, stems: bool) -> tuple[np.ndarray, int]:
    """Vectors of a vocabulary, (V + 1, width) float32, and how many of its words the file has.

    Row 0, the unknown word, and the words that the file lacks get the mean of those found (QANTA's rule).  With
    `stems` a stem gets the mean vector of the file's words that have it.  DataError if the vectors have another width
    or if none of the words is found.
    """
    rows = {word: row for row, word in enumerate(vocabulary, start=1)}
    total, count = np.zeros((len(rows) + 1, width)), np.zeros(len(rows) + 1)
    for word, vector in read(path, width):
        for row in _rows(word, rows, stems):
            total[row] += vector
            count[row] += 1
    has_vector = count > 0
    if not has_vector.any():
        raise DataError(f"{path}: none of the {len(rows)} words of the training is in it; is it an English file?")
    total[has_vector] /= count[has_vector, None]
    total[~has_vector] = total[has_vector].mean(0)
    return total.astype(np.float32), int(has_vector.sum())


def _rows(word: str, rows: Mapping[str, int], stems: bool) -> list[int]:
    """The row of a word of the file: none if it is not exactly one token, or not in the vocabulary."""
    tokens = text.tokens(word)
    if len(tokens) != 1:
        return []
    row = rows.get(text.stem(tokens[0]) if stems else tokens[0])
    return [] if row is None else [row]


def read(path: Path, width: int) -> Iterator[tuple[str, np.ndarray]]:
    """The words of a file and their vectors, (width,) each. DataError names the line that is wrong."""
    for number, line in enumerate(tqdm(records.lines(path), "reading vectors", unit=" words", mininterval=4), start=1):
        fields = line.rstrip().split(" ")
        if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
            if int(fields[1]) != width:
                raise DataError(_wrong_width(path, width, int(fields[1])))
            continue
        if number == 1 and len(fields) != width + 1:
            raise DataError(_wrong_width(path, width, len(fields) - 1))
        try:
            vector = np.array(fields[-width:], dtype=np.float64)
        except ValueError:
            vector = np.full(width, np.nan)
        if len(fields) <= width or not np.isfinite(vector).all():
            raise DataError(f"{path}:{number}: expected a word and {width} numbers, got {line[:60]!r}")
        yield " ".join(fields[:-width]), vector  # GloVe 840B has a few words with blanks in them


def _wrong_width(path: Path, width: int, actual: int) -> str:
    return f"{path}: its vectors have {actual} numbers, the config says embedding: {width}; set embedding: {actual}"
