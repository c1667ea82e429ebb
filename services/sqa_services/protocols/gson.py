"""JSON as Gson 2.10 reads it when lenient, for files written for programs that used it.

Accepted beyond JSON: a byte order mark, the prefix `)]}'`, comments (#, // and /* */), single quotes or no quotes
around names and strings, `=` or `=>` for `:`, `;` for `,`, missing array elements (null), and any text after the
document.  The last value of a repeated name counts.  Numbers and booleans are returned as text, because Gson converts
them to text where a string is requested; null is None.
"""

import re

from sqa.core.errors import SqaError

Json = str | None | list["Json"] | dict[str, "Json"]

_BETWEEN = re.compile(r"(?:[ \n\r\t]|(?:#|//)[^\n\r]*|/\*.*?\*/)*", re.DOTALL)  # blanks and comments
_LITERAL = re.compile(r"[^/\\;#={}\[\]:, \t\f\r\n]*")
_QUOTED = {quote: re.compile(rf"((?:[^{quote}\\]|\\.)*)({quote}?)", re.DOTALL) for quote in "\"'"}
_ESCAPE = re.compile(r"\\(u(.{0,4})|.?)", re.DOTALL)
_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"} | {c: c for c in "\n'\"\\/"}
_KEYWORDS: dict[str, str | None] = {"true": "true", "false": "false", "null": None}


class JsonSyntax(SqaError):
    """Gson's JsonSyntaxException: invalid even as lenient JSON."""


class NoDocument(SqaError):
    """A file of blanks and comments alone, for which Gson returns null."""


class BadUnicodeEscape(SqaError):
    """A \\u escape without four hexadecimal digits: a NumberFormatException in Gson 2.10."""


class _Reader:
    """A recursive-descent parser: the text and a position in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 1 if text.startswith("\ufeff") else 0

    def error(self, message: str) -> JsonSyntax:
        line = self.text.count("\n", 0, self.at) + 1
        return JsonSyntax(f"{message} at line {line}")

    def peek(self) -> str:
        """The next character after blanks and comments, "" at the end of the text."""
        between = _BETWEEN.match(self.text, self.at)
        self.at = between.end() if between else self.at
        if self.text.startswith("/*", self.at):
            raise self.error("unterminated comment")
        return self.text[self.at : self.at + 1]

    def take(self, characters: str, expected: str) -> str:
        """The next character, which must be one of these."""
        c = self.peek()
        if not c or c not in characters:
            raise self.error(f"expected {expected}")
        self.at += 1
        return c

    def value(self) -> Json:
        """The next value."""
        match self.peek():
            case "[":
                return self.array()
            case "{":
                return self.object()
            case '"' | "'":
                return self.quoted()
        text = self.literal("value")
        return _KEYWORDS.get(text.lower(), text)

    def array(self) -> list[Json]:
        """Elements between brackets; a missing element is null."""
        self.at += 1
        elements: list[Json] = []
        if self.peek() == "]":
            self.at += 1
            return elements
        while True:
            elements.append(None if self.peek() in ("]", ",", ";") else self.value())
            if self.take("],;", "',' or ']'") == "]":
                return elements

    def object(self) -> dict[str, Json]:
        """Names and values between braces."""
        self.at += 1
        members: dict[str, Json] = {}
        if self.peek() == "}":
            self.at += 1
            return members
        while True:
            name = self.quoted() if self.peek() in ("'", '"') else self.literal("name")
            if self.take(":=", "':'") == "=" and self.text.startswith(">", self.at):
                self.at += 1
            members[name] = self.value()
            if self.take("},;", "',' or '}'") == "}":
                return members

    def quoted(self) -> str:
        """A string between quotes of either kind."""
        match = _QUOTED[self.peek()].match(self.text, self.at + 1)
        assert match is not None  # both groups may be empty
        self.at = match.end(1)
        text = _ESCAPE.sub(self._unescaped, match[1])
        if not match[2]:
            raise self.error("unterminated string")
        self.at = match.end()
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def _unescaped(self, escape: re.Match[str]) -> str:
        if (digits := escape[2]) is None:
            if escape[1] not in _ESCAPES:
                raise self.error("invalid escape sequence")
            return _ESCAPES[escape[1]]
        if re.fullmatch("[0-9a-fA-F]{4}", digits):
            return chr(int(digits, 16))
        if len(digits) < 4 and self.at + 4 - len(digits) > len(self.text):
            raise self.error("unterminated escape sequence")
        raise BadUnicodeEscape(f"\\u{digits}: four hexadecimal digits were expected")

    def literal(self, expected: str) -> str:
        """An unquoted name or value."""
        match = _LITERAL.match(self.text, self.at)
        if match is None or not match[0]:
            raise self.error(f"expected {expected}")
        self.at = match.end()
        return match[0]


def parse(text: str) -> Json:
    """The first document of `text`.  JsonSyntax, NoDocument or BadUnicodeEscape where Gson gives none."""
    reader = _Reader(text)
    if not reader.peek():
        raise NoDocument("the file holds no JSON")
    if text.startswith(")]}'\n", reader.at):
        reader.at += 5
    try:
        return reader.value()
    except RecursionError as error:
        raise reader.error("nested too deeply") from error
