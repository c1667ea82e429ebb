"""Words of a translation as files contain them: dropped marks, decoded escapes, and refused damage.

Every reader of target text uses `Cleaner`, so one oddity has one treatment in logs, files and replies:

    control marks          </s>, <|im_end|>, <unk>, [SEP], eng_Latn, ...: dropped and counted
    escapes                &quot;, &rsquo;, &#91;, &amp;lt;, ...: decoded and counted
    invisible characters   soft hyphens, zero-width spaces, byte order marks, marks of direction: removed and counted
    decomposed letters     composed and counted (NFC)
    damage                 refused: U+FFFD stands for bytes that could not be decoded; no text has control characters
    pieces of words        refused with the remedy: ▁, @@, ##, Ġ
    tabs and JSON lines    refused in a file of plain text, which they show to be another format

The tokens of a log may be pieces of words, which `words_at` joins.  The user, or a field of the log, names their kind:

    sentencepiece   "▁Vien" "na": ▁ stands for a space, <0xC3> for a byte
    bytes           "ĠVien" "na": letters represent bytes, as in GPT-2's vocabulary
    bpe             "Vien@@" "na"
    wordpiece       "Vien" "##na"
    characters      "V" "i" "e" "n" "n" "a" " ": joined without spaces
    words           each token is a word
"""

import html
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar
from unicodedata import is_normalized, normalize

from sqa.core import DataError
from sqa.files import records
from sqa.files.logs import Pieces

T = TypeVar("T")
MOST_INITIALS = 0.25  # words may begin with Ġ, a Maltese letter; a larger share means byte-level pieces
NAME_KIND = "if these are pieces of words, set `pieces: {}`, else `pieces: words`"
JOIN = "join pieces of words to words first"
_BYTES = re.compile("(?:<0x[0-9A-F]{2}>)+")


def check_words(where: str, tokens: Iterable[str], pieces: Pieces | None, remedy: str = "") -> None:
    """Raise DataError for tokens that do not fit their kind, or that look like pieces if the user names no kind.

    `remedy` replaces the advice to name the kind, where it cannot be named.
    """
    if pieces == "bytes" and (wrong := [token for token in tokens if not set(token) <= _BYTE_OF.keys()]):
        raise DataError(f"{where}: the token {wrong[0][:40]!r} has letters that represent no byte (`pieces: bytes`)")
    if pieces is not None:
        return
    initials = total = 0
    for token in tokens:
        total += 1
        initials += token.startswith("Ġ")
        if kind := _kind_of_piece(token):
            shown = token if " " in token else f"the token {token[:40]!r}"
            raise DataError(f"{where}: {shown}: {remedy or NAME_KIND.format(kind)}")
    if initials > max(1, MOST_INITIALS * total):
        raise DataError(f"{where}: {initials} of {total} tokens begin with Ġ: {remedy or NAME_KIND.format('bytes')}")


def _kind_of_piece(token: str) -> str | None:
    """Return the kind of pieces that a token shows, or None."""
    found = _PIECE.search(token) and _PIECE.search(MARK.sub("", token))
    return found.lastgroup if found else None


def words_at(
    where: str,
    prediction: str,
    times: Sequence[T],
    key: str,
    pieces: Pieces | None,
    spm: Sequence[str] | None = None,
) -> tuple[list[str], list[T]]:
    """Return the words of a log's prediction, each with the time of its last piece.

    Args:
        where: Location of the line, "FILE:LINE".
        prediction: The line's `prediction`.
        times: A time for each word, or for each piece.
        key: The name of the times in the log.
        pieces: Kind of the tokens of `prediction`.
        spm: The line's `prediction_spm`, SentencePiece's pieces of `prediction`, to which the times belong.

    Raises:
        DataError: There are more or fewer times than tokens, or the tokens are of another kind.
    """
    tokens = prediction.split() if spm is None else list(spm)
    if len(tokens) != len(times):
        raise DataError(f"{where}: {len(tokens)} words but {len(times)} {key}; each word needs one")
    kind = pieces if spm is None else "sentencepiece"
    check_words(where, tokens, kind)
    words, at = (tokens, list(times)) if kind in (None, "words") else _joined(tokens, times, JOINERS[kind])
    if spm is not None and words != prediction.split():
        raise DataError(f"{where}: the pieces of prediction_spm do not match the words of prediction")
    return words, at


def _joined(
    tokens: Sequence[str], times: Sequence[T], join: Callable[[Sequence[str]], str]
) -> tuple[list[str], list[T]]:
    words: list[str] = []
    at: list[T] = []
    for end, time in enumerate(times, 1):
        before, words = words, join(tokens[:end]).split()
        continued = bool(before) and words[len(before) - 1] != before[-1]
        at = at[: len(before) - continued]
        at += [time] * (len(words) - len(at))
    return words, at


def _of_bytes(tokens: Sequence[str]) -> str:
    return bytes(_BYTE_OF.get(letter, 63) for letter in "".join(tokens)).decode("utf-8", "replace")


def _of_sentencepiece(tokens: Sequence[str]) -> str:
    text = "".join(tokens).replace("▁", " ")
    return _BYTES.sub(lambda match: bytes.fromhex(re.sub("<0x|>", "", match[0])).decode("utf-8", "replace"), text)


def _byte_letters() -> dict[str, int]:
    """Return a dict that maps the letters of GPT-2's vocabulary to bytes.

    Visible Latin-1 characters stand for themselves; letters from U+0100 on stand for the other bytes.
    """
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {chr(256 + i): byte for i, byte in enumerate(hidden)}


_BYTE_OF = _byte_letters()
JOINERS: dict[str, Callable[[Sequence[str]], str]] = {  # kind -> function that joins its tokens to a text
    "words": " ".join,
    "sentencepiece": _of_sentencepiece,
    "bytes": _of_bytes,
    "bpe": lambda tokens: re.sub("@@( |$)", "", " ".join(tokens)),
    "wordpiece": lambda tokens: " ".join(tokens).replace(" ##", ""),
    "characters": "".join,
}


# keys of files that other programs write as a list -> the program, and how to convert the file
_LISTS = {
    "rw": ("SiLLM", "`prediction` is translation, `delays` is rw"),
    "read_contents": ("EAST", "`delays` are the words of read_contents so far, for each word of hypo"),
    "chunk_start_time": ("StreamUni", "`delays` are end_time in milliseconds, for each word; `source` is [audio_path]"),
}
MARK = re.compile(
    r"<[|｜][^<>]{1,40}[|｜]>|(?i:</?s>|<(?:eos|bos|pad|unk|mask|sep|cls|extra_id_\d+|(?:start|end)_of_turn|2[a-z]{2,3})>)"
    r"|\[(?:/?INST|CLS|SEP|PAD|UNK|MASK|BOS|EOS)\]"
    r"|(?<!\S)(?:[a-z]{2}_XX|[a-z]{3}_(?:Latn|Cyrl|Arab|Hans|Hant|Jpan)|__[a-z]{2,3}__|>>[a-z_]{2,8}<<)(?!\S)"
)
DAMAGE = re.compile("[\0-\b\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffd-\uffff]")
_ESCAPE = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
    "|(?<=[A-Za-zÀ-ɏ])[\u200c\u200d\ufe00-\ufe0f]"  # elsewhere, some scripts and emoji need these
)
_PIECE = re.compile(
    r"(?P<sentencepiece>▁|<0x[0-9A-F]{2}>)|(?P<bpe>@@$)|(?P<wordpiece>^##(?=\w))|(?P<words>[￭￨]|^@@(?=\w))"
)
_ODD = re.compile(f"{MARK.pattern}|{_ESCAPE.pattern}|{_INVISIBLE.pattern}|{DAMAGE.pattern}")
_FORMATS = {  # other than plain text
    "a JSON object": re.compile(r'\s*\{\s*"'),
    "candidates of Moses": re.compile(r"\d+ \|\|\| "),
    "fairseq's index": re.compile(r"[DHSTP]-\d+\s"),
    "markup": re.compile(r"\s*(?:</?(?:seg|doc|tstset|refset|srcset|hl|p)\b|<\?xml|[\d:.,]+ --> )"),
}


def oddity(word: str) -> str:
    """Return what a word has that no word of a translation has, such as "a control mark"; "" if it has nothing odd."""
    kinds = {MARK: "a control mark", _INVISIBLE: "an invisible character", DAMAGE: "an undecodable character"}
    kinds[_PIECE] = "a mark of a piece of a word"
    if _decoded(word) != word:
        return "an HTML escape"
    found = next((kind for pattern, kind in kinds.items() if pattern.search(word)), "")
    return found or ("" if is_normalized("NFC", word) else "decomposed letters")


def _decoded(text: str) -> str:
    """Return the text with decoded escapes; &bar; is Moses's escape of |."""
    return _ESCAPE.sub(lambda match: "|" if match[0] == "&bar;" else html.unescape(match[0]), text)


def log_rows(lines: Iterable[str], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number and the record of each line of a log.

    Raises DataError, which says how to convert the file, for a list of SiLLM, EAST or StreamUni.
    """
    lines = iter(lines)
    start = list(islice(lines, 40))
    for key, (program, conversion) in _LISTS.items():
        if any(f'"{key}":' in line for line in start):
            line = "write a line {index, prediction, delays, source, source_length} for each sentence"
            raise DataError(f"{name}: a file of {program}; {line}: {conversion}, with one delay for each word")
    yield from records.numbered(chain(start, lines), name)


class Cleaner:
    """Cleaner of the words of one file; `report` prints what it changed."""

    def __init__(self, file: object, pieces: Pieces | None = None) -> None:
        """Clean words; if the user names the kind of `pieces`, words that look like pieces are kept."""
        self._file = file
        self._kept: Pieces | None = "words" if pieces else None
        self._changed: Counter[str] = Counter()
        self._example: dict[str, str] = {}

    @property
    def changed(self) -> bool:
        """Whether something was changed since the last report."""
        return bool(self._changed)

    def words(self, where: str, words: Sequence[str], values: Sequence[T]) -> tuple[list[str], list[T]]:
        """Return the words without oddities, and the value of each; a word of nothing else is dropped with its value.

        Raises DataError for damage and for pieces of words.
        """
        check_words(where, words, self._kept, JOIN)
        pairs = [(self._word(where, word), value) for word, value in zip(words, values, strict=True)]
        kept = [(part, value) for word, value in pairs for part in word.split()]
        return [word for word, _ in kept], [value for _, value in kept]

    def line(self, where: str, text: str) -> str:
        """Return a line of plain text without oddities, with single spaces.

        Raises DataError if the line is of another format, has pieces of words, or is damaged.
        """
        check_plain(where, text)
        return " ".join(self.words(where, words := text.split(), words)[0])

    def report(self) -> None:
        """Print one line for each kind of change."""
        for kind, n in self._changed.items():
            print(f"sqa: {self._file}: {n} {kind} such as {self._example[kind]}", file=sys.stderr)
        self._changed.clear()

    def _word(self, where: str, word: str) -> str:
        if _ODD.search(word):
            if "<|end-of-read|>" in word:
                raise DataError(f"{where}: EAST's output holds the source too; write only the words after {word!r:.40}")
            while (decoded := self._replaced(_ESCAPE, "HTML escapes are decoded,", word)) != word:
                word = decoded  # may be escaped twice
            word = self._replaced(MARK, "control marks are dropped,", word)
            if damage := DAMAGE.search(word):
                code = f"U+{ord(damage[0]):04X}"
                problem = f"has {code}, which replaces undecodable bytes; write UTF-8 again"
                raise DataError(f"{where}: {word[:40]!r} {problem}")
            word = self._replaced(_INVISIBLE, "invisible characters are removed,", word)
        if not is_normalized("NFC", word):
            self._count("decomposed letters are composed,", word)
            word = normalize("NFC", word)
        return word

    def _count(self, kind: str, example: str) -> None:
        self._changed[kind] += 1
        self._example.setdefault(kind, example if example.isprintable() else ascii(example)[1:-1])

    def _replaced(self, pattern: re.Pattern[str], kind: str, word: str) -> str:
        def replace(match: re.Match[str]) -> str:
            by = _decoded(match[0]) if pattern is _ESCAPE else ""
            if by != match[0]:
                self._count(kind, match[0])
            return by

        return pattern.sub(replace, word)


def check_plain(where: str, text: str) -> None:
    """Raise DataError if a line shows that its file is not plain text."""
    kind = "a tab" if "\t" in text else next((kind for kind, form in _FORMATS.items() if form.match(text)), "")
    if kind:
        raise DataError(f"{where}: expected one sentence in plain text, got {kind}; write only the sentences")


def clean_lines(file: str | Path) -> list[str]:
    """Return the lines of a file of plain text without oddities, and report the changes."""
    cleaner = Cleaner(file)
    cleaned = [cleaner.line(f"{file}:{number}", line) for number, line in enumerate(records.lines(Path(file)), 1)]
    cleaner.report()
    return cleaned
