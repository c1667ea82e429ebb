"""Words of a translation as files contain them: dropped marks, decoded escapes, and refused damage.

Every reader of target text uses `Cleaner`, so one oddity has one treatment in logs, files and replies:

    control marks          </s>, <|im_end|>, <end_of_turn>, ...: dropped and counted
    escapes                &quot;, &apos;, &#91;, ...: decoded and counted
    invisible characters   soft hyphens, zero-width spaces, byte order marks: removed and counted
    U+FFFD                 refused: it stands for bytes that could not be decoded
    pieces of words        refused with the remedy: ▁, @@
    tabs and JSON lines    refused in a file of plain text, which they show to be another format
"""

import html
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

from sqa.core.errors import DataError

T = TypeVar("T")
MARK = re.compile(r"<\|[^<>]{1,40}\|>|</?s>|<(?:eos|bos|pad|unk|(?:start|end)_of_turn)>|\[/?INST\]")
_ESCAPE = re.compile(r"&(?:quot|apos|amp|lt|gt|nbsp|bar|#\d{1,6}|#x[0-9a-fA-F]{1,5});")
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")
_ODD = re.compile(f"{MARK.pattern}|{_ESCAPE.pattern}|{_INVISIBLE.pattern}|\ufffd")
_OTHER_FORMAT = re.compile(r'\t|\s*\{\s*"')


class Cleaner:
    """Cleaner of the words of one file; `report` prints what it changed."""

    def __init__(self, file: object) -> None:
        self._file = file
        self._changed: Counter[str] = Counter()
        self._example: dict[str, str] = {}

    def words(self, where: str, words: Sequence[str], values: Sequence[T]) -> tuple[list[str], list[T]]:
        """Return the words without oddities, and the value of each; a word of nothing else is dropped with its value.

        Raises DataError for U+FFFD.
        """
        pairs = [(self._word(where, word), value) for word, value in zip(words, values, strict=True)]
        kept = [(part, value) for word, value in pairs for part in word.split()]
        return [word for word, _ in kept], [value for _, value in kept]

    def line(self, where: str, text: str) -> str:
        """Return a line of plain text without oddities.

        Raises DataError if the line is of another format, has pieces of words, or has U+FFFD.
        """
        if match := _OTHER_FORMAT.match(text) or ("\t" in text and _OTHER_FORMAT.search(text)):
            kind = "a tab" if match[0] == "\t" else "a JSON object"
            raise DataError(f"{where}: expected one translation in plain text, got {kind}; write only the translations")
        for word in text.split():
            if "▁" in word or word.endswith("@@"):
                raise DataError(f"{where}: {word[:40]!r} is a piece of a word; join the pieces to words first")
        return " ".join(self.words(where, words := text.split(), words)[0])

    def report(self) -> None:
        """Print one line for each kind of change."""
        for kind, n in self._changed.items():
            print(f"sqa: {self._file}: {n} {kind} such as {self._example[kind]}", file=sys.stderr)
        self._changed.clear()

    def _word(self, where: str, word: str) -> str:
        if not _ODD.search(word):
            return word
        if "\ufffd" in word:
            raise DataError(f"{where}: {word[:40]!r} has U+FFFD, which replaces undecodable bytes; write UTF-8 again")
        word = self._replaced(MARK, "", "control marks are dropped,", word)
        word = self._replaced(_ESCAPE, None, "HTML escapes are decoded,", word)
        return self._replaced(_INVISIBLE, "", "invisible characters are removed,", word)

    def _replaced(self, pattern: re.Pattern[str], by: str | None, kind: str, word: str) -> str:
        def replace(match: re.Match[str]) -> str:
            self._changed[kind] += 1
            self._example.setdefault(kind, match[0] if match[0].isprintable() else ascii(match[0])[1:-1])
            return (html.unescape(match[0]) if match[0] != "&bar;" else "|") if by is None else by

        return pattern.sub(replace, word)


def clean_lines(file: object, lines: Iterable[str]) -> list[str]:
    """Return the lines of a file of plain text without oddities, and report the changes."""
    cleaner = Cleaner(file)
    cleaned = [cleaner.line(f"{file}:{number}", line) for number, line in enumerate(lines, 1)]
    cleaner.report()
    return cleaned
