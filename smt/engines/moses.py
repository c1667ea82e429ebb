"""A Moses server as a remote translator: `mosesserver` and its XML-RPC method `translate`.

    translator: {name: moses, url: "http://localhost:8080/RPC2", tokenize: moses, source_language: es}
    translator: {name: moses, url: "http://localhost:8080/RPC2", tokenize: none, policy: local-agreement, n: 2}

A request is `translate({"text": one line})`, its answer a struct with "text" (moses-smt/mosesdecoder,
contrib/server).  The server is not trusted: responses are limited in size and time and parsed without declarations.
"""

import hashlib
import http
import re
import xmlrpc.client
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit
from xml.parsers.expat import ExpatError

from tqdm import tqdm

from smt.policies.chosen import PolicyConfig, policy_of, simultaneous
from smt.policies.prefixes import PolicyTranslator
from sqa.core.errors import DataError, Positive, RemoteProtocolError, checked
from sqa.core.packages import lacking
from sqa.data.languages import certain_pair
from sqa.net.client import Failed, Http, url_problems

VERSION = 1  # raise when the words that come from the same server change
MAX_TEXT = 20_000  # characters of one text sent
MAX_ANSWER = 1 << 20  # bytes of one answer read
_BLANK = re.compile(r"[\s\x00-\x1f\x7f\ufffe\uffff\ud800-\udfff]+")  # XML has no control characters or surrogates
_XML_HEADER = re.compile(r"^\s*<\?xml[^>]*\?>")


@dataclass(frozen=True, slots=True)
@checked
class MosesConfig:
    """Which server, its tokens, and when its words are written."""

    url: str = "http://localhost:8080/RPC2"  # where `mosesserver --server-port 8080` listens
    tokenize: Literal["moses", "none"] = "moses"  # moses = Moses' own tokenizer, through the package sacremoses
    source_language: str = "es"  # for the tokenizer, ISO 639-1
    target_language: str = "en"  # what it writes
    timeout: Positive = 60.0  # seconds for one answer, from connecting to its last byte
    system: str = ""  # any name for what the server runs; change it with the model: results are stored under it
    policy: PolicyConfig = "wait-k"  # when to write what: see smt/policies/prefixes.py
    k: int | str = "full"  # wait-k: source WORDS read before the first target word, or "full" = the whole sentence
    n: int | None = None  # local-agreement: translations that must agree (2); hold, retranslate: words held back

    def problems(self) -> list[str]:
        """Beside the bounds."""
        policy_of(self)
        return url_problems(self.url)


Tokens = tuple[Callable[[str], str], Callable[[str], str]]  # text as the server takes it, and its answers as text


def tokens_of(config: MosesConfig) -> Tokens:
    """Moses' tokenizer and detokenizer (sacremoses) with its escapes; of plain text only the bar is escaped."""
    if config.tokenize == "none":  # the bar separates factors in Moses' input
        return lambda text: text.replace("|", "&#124;"), lambda text: text.replace("&#124;", "|")
    try:
        from sacremoses import MosesDetokenizer, MosesTokenizer
    except ModuleNotFoundError as error:
        raise lacking(error, "tokenize: moses (not tokenize: none)") from error
    tokenizer, joiner = MosesTokenizer(lang=config.source_language), MosesDetokenizer(lang=config.target_language)
    return (
        lambda text: tokenizer.tokenize(text, return_str=True, escape=True),
        lambda text: joiner.detokenize(text.split(), return_str=True, unescape=True),
    )


class MosesServer:
    """The server as a full-input system: one request a text, one after another."""

    def __init__(self, config: MosesConfig) -> None:
        self.config, self._http = config, Http(config.timeout, MAX_ANSWER)
        self._address = config.url if urlsplit(config.url).path.strip("/") else f"{config.url.rstrip('/')}/RPC2"
        plain = config.tokenize == "none"
        self.languages = None if plain else certain_pair(config.source_language, config.target_language)
        self._split, self._join = tokens_of(config)

    def words(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Target words of each text, with a progress bar on a terminal; a blank text gives () without a request."""
        bar = tqdm(texts, desc="moses", unit="text", disable=None if len(texts) > 1 else True, leave=False)
        return [self._words(_BLANK.sub(" ", text).strip()) for text in bar]

    def _words(self, text: str) -> tuple[str, ...]:
        if not text:
            return ()
        if len(text) > MAX_TEXT:
            raise DataError(f"{self.config.url}: a text of {len(text)} characters; at most {MAX_TEXT} are sent")
        return tuple(self._join(self._translation(self._split(text))).split())

    def _translation(self, text: str) -> str:
        """The text that `translate` returns.  RemoteProtocolError where none arrives whole and in time."""
        url, request = self.config.url, xmlrpc.client.dumps(({"text": text},), "translate", encoding="utf-8").encode()
        try:
            reply = self._http.ask("POST", self._address, request, {"Content-Type": "text/xml"})
        except Failed as error:
            hint = "; start mosesserver, or correct the url" if error.kind == "absent" else ""
            raise RemoteProtocolError(f"{url}: {error}{hint}") from error
        if reply.status != http.HTTPStatus.OK:
            raise RemoteProtocolError(f"{url}: HTTP status {reply.status}; is the path right (/RPC2)?")
        answer = parse(reply.content, url)
        if not isinstance(answer, dict) or not isinstance(answer.get("text"), str):
            got = str(sorted(answer) if isinstance(answer, dict) else type(answer).__name__)[:80]
            raise RemoteProtocolError(f"{url}: expected a struct with a string 'text', got {got}; is it a mosesserver?")
        return str(answer["text"])

    def fingerprint(self) -> str:
        """Hash of the address, the tokens and the name given to the system (its model is not visible from here)."""
        c = self.config
        key = f"{VERSION} {c.url} {c.system!r} {c.tokenize} {c.source_language} {c.target_language}"
        return hashlib.sha256(key.encode()).hexdigest()


def parse(body: bytes, url: str) -> Any:
    """The value in an XML-RPC answer.  A fault, and anything that is not such an answer: RemoteProtocolError.

    Answers have no declarations, so a document with one (the way to entities that swell) is refused; decoding before
    parsing leaves no other encoding to hide it in.
    """
    try:
        text = _XML_HEADER.sub("", body.decode("utf-8-sig"))
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise RemoteProtocolError(f"{url}: the answer declares XML entities, refused")
        values, _ = xmlrpc.client.loads(text, use_builtin_types=True)
    except xmlrpc.client.Fault as fault:
        reason = " ".join(str(fault.faultString).split())[:200]
        raise RemoteProtocolError(f"{url}: the server reports fault {fault.faultCode}: {reason}") from fault
    except (ExpatError, xmlrpc.client.Error, ValueError, LookupError, TypeError, AttributeError) as error:
        start = body[:40].decode("ascii", "replace")
        raise RemoteProtocolError(f"{url}: not an XML-RPC answer, it begins {start!r}") from error
    if len(values) != 1:
        raise RemoteProtocolError(f"{url}: expected one value, got {len(values)}")
    return values[0]


def build(config: MosesConfig) -> PolicyTranslator:
    """The translator of a config."""
    return simultaneous(MosesServer, config)
