"""JSON as Gson 2.10 reads it in lenient mode, for files written for programs that use Gson.

Accepted beyond JSON: a byte order mark, the prefix `)]}'`, comments (#, // and /* */), single quotes or no quotes
around names and strings, `=` or `=>` for `:`, `;` for `,`, missing array elements (null), and any text after the
document.  The last value of a repeated name counts.  Numbers and booleans are returned as text, because Gson converts
them to text where a string is requested; null is None.

The text is rewritten as JSON token by token, then parsed by the standard library.
"""

import json
import re

from sqa.core.errors import SqaError

Json = str | None | list["Json"] | dict[str, "Json"]

_BETWEEN = r"[ \n\r\t]+|(?:#|//)[^\n\r]*|/\*.*?\*/"  # whitespace and comments
_STRING = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_LITERAL = r"(?![\"'])[^/\\;#={}\[\]:, \t\f\r\n]+"
_TOKEN = re.compile(rf"({_BETWEEN})|({_STRING})|(=>|[\[\]{{}},:;=])|({_LITERAL})", re.DOTALL)
_PREFIX = re.compile(rf"\ufeff?(?:{_BETWEEN})*(?:\)\]\}}'\n)?", re.DOTALL)
_ESCAPE = re.compile(r"\\(u(.{0,4})|.?)", re.DOTALL)
_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"} | {c: c for c in "\n'\"\\/"}
_MARKS = {"=>": ":", "=": ":", ";": ","}
_KEYWORDS = {"null": "null", "true": '"true"', "false": '"false"'}


class JsonSyntax(SqaError):
    """Gson's JsonSyntaxException: the text is invalid even as lenient JSON."""


class Uncaught(SqaError):
    """A Java exception that ends the original program."""


def parse(text: str) -> Json:
    """Return the first document of a text.  Raises JsonSyntax, or Uncaught if Gson returns no document."""
    prefix = _PREFIX.match(text)
    at = prefix.end() if prefix else 0
    if at == len(text):
        raise Uncaught("the file contains no JSON (the original ends with a NullPointerException)")
    written, before = text[:at].count("\n") * "\n", ""
    problem: SqaError = JsonSyntax("unexpected character or end of the file")
    try:
        while token := _TOKEN.match(text, at):
            between, string, mark, literal = token.groups()
            at = token.end()
            if between is not None:
                written += between.count("\n") * "\n" or " "
                continue
            mark = mark and _MARKS.get(mark, mark)
            if (before == "," and mark in (",", "]")) or (before == "[" and mark == ","):
                written += "null"
            if literal:
                written += _KEYWORDS.get(literal.lower()) or json.dumps(literal)
            else:
                written += mark or json.dumps(_unescaped(string[1:-1], len(text) - at))
            before = mark
    except (JsonSyntax, Uncaught) as error:
        problem = error
    try:
        return json.JSONDecoder().raw_decode(written, len(written) - len(written.lstrip()))[0]
    except json.JSONDecodeError as error:
        if error.pos < len(written):
            raise JsonSyntax(f"{error.msg} at line {error.lineno}") from error
        raise problem from error
    except RecursionError as error:
        raise JsonSyntax("nested too deeply") from error


def _unescaped(content: str, left: int) -> str:
    """Return the text of a string literal; `left` is the number of characters after its closing quote."""

    def character(escape: re.Match[str]) -> str:
        digits = escape[2]
        if digits is None:
            if escape[1] not in _ESCAPES:
                raise JsonSyntax("invalid escape sequence")
            return _ESCAPES[escape[1]]
        if re.fullmatch("[0-9a-fA-F]{4}", digits):
            return chr(int(digits, 16))
        if len(digits) < 4 and left + 1 < 4 - len(digits):
            raise JsonSyntax("unterminated escape sequence")
        problem = f"\\u{digits}: expected four hexadecimal digits"
        raise Uncaught(f"{problem} (the original ends with a NumberFormatException)")

    text = _ESCAPE.sub(character, content)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
