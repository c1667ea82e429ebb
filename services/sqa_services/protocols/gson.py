"""JSON as Gson 2.10 reads it when lenient, for files written for programs that used it.

Accepted beyond JSON: a BOM, the prefix `)]}'`, comments (#, // and /* */), names and strings in single quotes or in
none, `=` or `=>` for `:`, `;` for `,`, missing array elements (null), and anything after the document.  A repeated
name keeps its last value.  Numbers and booleans come as their text, since Gson turns them into text where text is
asked for; null is None.
"""

from __future__ import annotations

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
    """Gson's JsonSyntaxException: not even lenient JSON."""


class NoDocument(SqaError):
    """Only blanks and comments: Gson gives null for such a file."""


class BadUnicodeEscape(SqaError):
    """A \\u escape without four hexadecimal digits: in Gson 2.10 a NumberFormatException, which few catch."""


class _Reader:
    """The text and a position in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 1 if text.startswith("\ufeff") else 0

    def wrong(self, message: str) -> JsonSyntax:
        line = self.text.count("\n", 0, self.at) + 1
        return JsonSyntax(f"{message} at line {line}")

    def next(self) -> str:
        """The next character that is neither blank nor in a comment, taken."""
        between = _BETWEEN.match(self.text, self.at)
        self.at = between.end() if between else self.at
        if self.text.startswith("/*", self.at):
            raise self.wrong("unterminated comment")
        if self.at == len(self.text):
            raise self.wrong("end of input")
        self.at += 1
        return self.text[self.at - 1]

    def quoted(self, quote: str) -> str:
        """The string up to its closing quote; the opening one is taken."""
        found = _QUOTED[quote].match(self.text, self.at)
        assert found is not None  # it matches nothing, too
        self.at = found.end(1)
        text = _ESCAPE.sub(self._unescaped, found[1])
        if not found[2]:
            raise self.wrong("unterminated string")
        self.at = found.end()
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def _unescaped(self, escape: re.Match[str]) -> str:
        if (digits := escape[2]) is None:
            if escape[1] not in _ESCAPES:
                raise self.wrong("invalid escape sequence")
            return _ESCAPES[escape[1]]
        if re.fullmatch("[0-9a-fA-F]{4}", digits):
            return chr(int(digits, 16))
        if len(digits) < 4 and self.at + 4 - len(digits) > len(self.text):
            raise self.wrong("unterminated escape sequence")
        raise BadUnicodeEscape(f"\\u{digits}: four hexadecimal digits were expected")

    def literal(self) -> str:
        """An unquoted name or value, from here."""
        found = _LITERAL.match(self.text, self.at)
        assert found is not None
        self.at = found.end()
        return found[0]

    def name(self, first: bool) -> str | None:
        """The next name of an object and its colon, taken; None at the end of an empty object."""
        c = self.next()
        if c in "\"'":
            name = self.quoted(c)
        elif c == "}" and first:
            return None
        else:
            self.at -= 1
            name = self.literal()
            if not name:
                raise self.wrong("expected name")
        c = self.next()
        if c == "=":
            self.at += self.text.startswith(">", self.at)
        elif c != ":":
            raise self.wrong("expected ':'")
        return name


def parse(text: str) -> Json:
    """The first document of `text`.  JsonSyntax, NoDocument or BadUnicodeEscape where Gson gives none."""
    reader = _Reader(text)
    try:
        reader.next()
    except JsonSyntax as error:
        if "unterminated" in str(error):
            raise
        raise NoDocument("the file holds no JSON") from error
    reader.at -= 1
    if text.startswith(")]}'\n", reader.at):
        reader.at += 5
    document: list[Json] = []
    stack: list[list[Json] | dict[str, Json]] = [document]  # open containers, outermost first: no recursion
    names: list[str] = []  # the name that waits for its value, one for each open object
    _value(reader, stack, names)
    while len(stack) > 1:
        top, end = stack[-1], "]" if isinstance(stack[-1], list) else "}"
        first = not top
        c = "," if first else reader.next()
        if c == end:
            stack.pop()
            if end == "}":
                names.pop()
        elif c not in ",;":
            raise reader.wrong(f"unterminated {'array' if end == ']' else 'object'}")
        elif isinstance(top, list):
            _element(reader, stack, names, first)
        else:
            name = reader.name(first)
            if name is None:
                stack.pop()
                names.pop()
            else:
                names[-1] = name
                _value(reader, stack, names)
    return document[0]


def _element(reader: _Reader, stack: list[list[Json] | dict[str, Json]], names: list[str], first: bool) -> None:
    """The next element of the innermost array; a missing one is null."""
    c = reader.next()
    if c == "]" and first:
        stack.pop()
        return
    reader.at -= 1
    if c in "],;":
        _store(stack, names, None)
    else:
        _value(reader, stack, names)


def _value(reader: _Reader, stack: list[list[Json] | dict[str, Json]], names: list[str]) -> None:
    """Store the next value in the innermost container; a container is left open on the stack."""
    c = reader.next()
    if c in "[{":
        container: list[Json] | dict[str, Json] = [] if c == "[" else {}
        _store(stack, names, container)
        stack.append(container)
        if c == "{":
            names.append("")
        return
    if c in "\"'":
        _store(stack, names, reader.quoted(c))
        return
    reader.at -= 1
    text = reader.literal()
    if not text:
        raise reader.wrong("expected value")
    _store(stack, names, _KEYWORDS.get(text.lower(), text))


def _store(stack: list[list[Json] | dict[str, Json]], names: list[str], value: Json) -> None:
    top = stack[-1]
    if isinstance(top, list):
        top.append(value)
    else:
        top[names[-1]] = value
