"""Pretrained word vectors from a user's file in GloVe or word2vec text format.

Each line has a word and its numbers, separated by spaces, as in GloVe (https://nlp.stanford.edu/projects/glove/).  A
first line of two numbers, as in word2vec and fastText, is skipped.  The file may be compressed as .zst.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from guessers import text
from sqa.core.errors import DataError
from sqa.files import records


def table(path: Path, vocabulary: Sequence[str], width: int, *, stems: bool) -> tuple[np.ndarray, int]:
    """Return a vocabulary's vectors, float32 of shape (V + 1, width), and the number of its words found in the file.

    Row 0 (the unknown word) and missing words get the mean of the vectors found, as in QANTA.  With `stems`, a stem
    gets the mean vector of the file's words with that stem.  Raises DataError if the vectors have another width or if
    no word is found.
    """
    rows = {word: row for row, word in enumerate(vocabulary, start=1)}
    total, count = np.zeros((len(rows) + 1, width)), np.zeros(len(rows) + 1)
    for word, vector in read(path, width):
        for row in _rows(word, rows, stems):
            total[row] += vector
            count[row] += 1
    has_vector = count > 0
    if not has_vector.any():
        raise DataError(f"{path}: contains none of the {len(rows)} training words; is it an English file?")
    total[has_vector] /= count[has_vector, None]
    total[~has_vector] = total[has_vector].mean(0)
    return total.astype(np.float32), int(has_vector.sum())


def _rows(word: str, rows: Mapping[str, int], stems: bool) -> list[int]:
    """Return a list with the row of a word; empty unless the word is exactly one token of the vocabulary."""
    tokens = text.tokens(word)
    if len(tokens) != 1:
        return []
    row = rows.get(text.stem(tokens[0]) if stems else tokens[0])
    return [] if row is None else [row]


def read(path: Path, width: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the words of a file and their vectors of shape (width,).  Raises DataError that names an invalid line."""
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
        yield " ".join(fields[:-width]), vector  # a few words of GloVe 840B contain spaces


def _wrong_width(path: Path, width: int, actual: int) -> str:
    return f"{path}: its vectors have {actual} numbers, but the config has embedding: {width}; set embedding: {actual}"
