"""HTTP client for external services, with limits of time and size.

    Http        requests within limits, from any number of threads; errors are `Failed`
    Http.stream a long response in pieces, for downloads
    Service     a JSON service; errors are RemoteProtocolErrors that quote the response

Redirects are followed only on request, and never from https to http.
"""

import json
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal
from urllib.parse import urljoin, urlsplit

import requests
import urllib3
from requests.auth import HTTPBasicAuth
from requests.utils import get_auth_from_url

from sqa.core.errors import ConfigError, RemoteProtocolError
from sqa.files.records import parse_json

MAX_REPLY = 8 << 20  # bytes
SHOWN = 80  # characters of a response that a message quotes
REDIRECTS = (301, 302, 303, 307, 308)


def url_problems(url: str) -> list[str]:
    """List the problems of a service's address in a config."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        return [f"url: expected something like http://localhost:4861, got {without_secret(url)!r}"]
    if parts.password:
        return ["url: run folders keep it, so it must not contain a password; name the token's variable in token_env"]
    return []


def without_secret(url: str) -> str:
    """Return an address without user name and password, for messages."""
    return re.sub(r"//[^/@]*@", "//", url)


def token_from(variable: str | None) -> str:
    """Return the token in an environment variable, or "" if `variable` is None.

    Raises ConfigError if the variable is not set.
    """
    token = os.environ.get(variable, "").strip() if variable else ""
    if variable and not token:
        raise ConfigError(f"token_env: the environment variable {variable} is not set")
    return token


Kind = Literal["other", "late", "large", "insecure", "absent", "broken"]  # "absent": no connection was opened


class Failed(Exception):
    """Raised if there is no usable response.

    `again` is True if the connection failed, so that the same request may succeed later.
    """

    def __init__(self, message: str, again: bool = False, kind: Kind = "other") -> None:
        super().__init__(message)
        self.again, self.kind = again, kind


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete response."""

    status: int
    content: bytes
    url: str  # URL of the request, with its query
    headers: Mapping[str, str] = field(default_factory=dict)  # case-insensitive names

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Http:
    """An HTTP client with limits; each thread has its own connections."""

    timeout: float  # seconds until the response is complete; in `stream`, seconds to connect
    max_reply: int = MAX_REPLY  # bytes
    token: str = field(default="", repr=False)
    proxies: bool = False  # use the proxies of the environment
    quiet: float = 0.0  # maximum seconds without a byte in `stream`; 0: the timeout
    netrc: bool = False  # use the passwords of ~/.netrc if `proxies` is set and there is no token
    _local: threading.local = field(default_factory=threading.local)

    @property
    def _session(self) -> requests.Session:
        if not hasattr(self._local, "session"):
            session = self._local.session = requests.Session()
            session.trust_env = self.proxies  # otherwise no proxy and no ~/.netrc
            if self.token or not self.netrc:
                session.auth = self._authorised
        return self._local.session

    def _authorised(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the token, or the credentials in the URL.  As the session's `auth`, this method disables ~/.netrc."""
        if self.token:
            request.headers["Authorization"] = f"Bearer {self.token}"
        elif any(named := get_auth_from_url(request.url or "")):
            HTTPBasicAuth(*named)(request)
        return request

    def ask(
        self,
        method: str,
        url: str,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> Reply:
        """Return the response, whatever its status.  Raises Failed if it is late, incomplete or too large."""
        end = time.monotonic() + self.timeout
        sent = {"Accept-Encoding": "identity", **(headers or {})}
        request = partial(self._session.request, timeout=self.timeout, stream=True, allow_redirects=False)
        try:
            with request(method, url, params=params, data=data, headers=sent) as reply:
                content = bytearray()
                while part := reply.raw.read1(1 << 16, decode_content=False):
                    content += part
                    if len(content) > self.max_reply:
                        raise Failed(f"refused a response of more than {self.max_reply} bytes", kind="large")
                    if time.monotonic() > end:
                        raise requests.Timeout
                return Reply(reply.status_code, bytes(content), reply.url, reply.headers)
        except (requests.Timeout, urllib3.exceptions.ReadTimeoutError) as error:
            raise Failed(f"no complete response in {self.timeout:g} seconds", kind="late") from error
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            broken = not isinstance(error, requests.exceptions.InvalidURL | requests.exceptions.InvalidSchema)
            reason = " ".join(str(error).split())[-SHOWN:]
            raise Failed(f"the connection failed ({reason})", again=broken, kind=_kind(error)) from error

    @contextmanager
    def stream(self, url: str, headers: Mapping[str, str], redirects: int = 0) -> Iterator[requests.Response]:
        """Yield the response to a GET request before its body is read; follow at most `redirects` redirects.

        Raises Failed for a refused redirect.
        """
        times = (self.timeout, self.quiet or self.timeout)
        for left in range(redirects, -1, -1):
            reply = self._session.get(url, headers=dict(headers), stream=True, timeout=times, allow_redirects=False)
            with reply:
                if reply.status_code not in REDIRECTS or not left:
                    yield reply
                    return
                url = self._redirected(url, reply.headers.get("Location", ""))

    def _redirected(self, url: str, location: str) -> str:
        """Return the URL to which a response redirects; raises Failed if it must not be followed."""
        target = urljoin(url, location)
        if not location or url_problems(target) or (url.startswith("https:") and not target.startswith("https:")):
            raise Failed(f"it leads to {without_secret(location)!r}, which is not followed")
        return target


def _kind(error: Exception) -> Kind:
    """Return the kind of a failed connection."""
    if isinstance(error, requests.exceptions.SSLError):
        return "insecure"
    reason = getattr(error.args[0], "reason", None) if error.args else None
    absent = isinstance(error, requests.ConnectionError) and isinstance(reason, urllib3.exceptions.NewConnectionError)
    return "absent" if absent else "broken"


class Service:
    """A JSON service.  An unexpected response raises a RemoteProtocolError that quotes it."""

    def __init__(self, url: str, timeout: float, token: str = "") -> None:
        self.url = url.rstrip("/")
        self._http = Http(timeout, token=token)

    def json(self, method: str, path: str, body: object = None) -> Any:
        """Return the parsed JSON of the response to a request."""
        text = self.text(method, path, body)
        try:
            return parse_json(text)
        except ValueError as error:
            raise self.problem(method, path, f"expected JSON, got {text[:SHOWN]!r}") from error

    def text(self, method: str, path: str, body: object = None) -> str:
        """Return the text of the response to a request; raises RemoteProtocolError unless its status is 200."""
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            reply = self._http.ask(method, self.url + path, data, headers)
        except Failed as error:
            raise self.problem(method, path, str(error)) from error
        if reply.status != 200:
            raise self.problem(method, path, f"HTTP {reply.status}, {reply.text[:SHOWN]!r}")
        return reply.text

    def problem(self, method: str, path: str, message: str) -> RemoteProtocolError:
        """Return the error to raise for a request."""
        return RemoteProtocolError(f"{method} {without_secret(self.url)}{path}: {message}")
