"""A client of other people's HTTP services that hold what they say against a limit: of time, of size, of form."""

from __future__ import annotations

import json
import os
import re
import time
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3

from sqa.core.errors import ConfigError, RemoteProtocolError

MAX_REPLY = 8 << 20  # bytes
SHOWN = 80  # characters of a reply in a message


def url_problems(url: str) -> list[str]:
    """What is wrong with the address of a service, for a config."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    return [] if good else [f"url: expected something like http://localhost:4861, got {without_secret(url)!r}"]


def without_secret(url: str) -> str:
    """An address as it may be shown: no user, no password."""
    return re.sub(r"//[^/@]*@", "//", url)


def token_from(variable: str | None) -> str:
    """The token in an environment variable, "" without one.  Not set: ConfigError."""
    token = os.environ.get(variable, "").strip() if variable else ""
    if variable and not token:
        raise ConfigError(f"token_env: the environment variable {variable} is not set")
    return token


class Service:
    """One service.  What it does not answer as it should is a RemoteProtocolError that says what it said."""

    def __init__(self, url: str, timeout: float, retries: int = 0, token: str = "", max_reply: int = MAX_REPLY) -> None:
        """`retries`: further attempts after a broken connection or a 5xx; for requests that change nothing there."""
        self.url = url.rstrip("/")
        self._timeout, self._retries, self._max_reply = timeout, retries, max_reply
        self._http = requests.Session()
        self._http.trust_env = False  # no proxy, no ~/.netrc
        if token:
            self._http.headers["Authorization"] = f"Bearer {token}"

    def json(self, method: str, path: str, body: object = None) -> Any:
        """The JSON of a reply."""
        text = self.text(method, path, body)
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.problem(method, path, f"JSON was expected, it said {text[:SHOWN]!r}") from error

    def text(self, method: str, path: str, body: object = None) -> str:
        """The text of a reply with status 200."""
        for attempt in range(self._retries + 1):
            if attempt:
                time.sleep(min(0.2 * 2**attempt, 5.0))
            try:
                status, content = self._once(method, path, body)
            except requests.ConnectionError as error:
                problem = self.problem(method, path, f"the connection failed ({' '.join(str(error).split())[-SHOWN:]})")
                continue
            if status == 200:
                return content.decode("utf-8", "replace")
            problem = self.problem(
                method, path, f"HTTP {status}, it said {content[:SHOWN].decode('utf-8', 'replace')!r}"
            )
            if status < 500:
                break
        raise problem

    def problem(self, method: str, path: str, what: str) -> RemoteProtocolError:
        """The error to raise about a request."""
        return RemoteProtocolError(f"{method} {without_secret(self.url)}{path}: {what}")

    def _once(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        """Status and body; the body has to be there, whole, within the time of one request."""
        end = time.monotonic() + self._timeout
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept-Encoding": "identity"} | ({} if body is None else {"Content-Type": "application/json"})
        try:
            with self._http.request(
                method, self.url + path, data=data, headers=headers, timeout=self._timeout, stream=True,
                allow_redirects=False,
            ) as reply:  # fmt: skip
                content = bytearray()
                while part := reply.raw.read1(1 << 16, decode_content=False):
                    content += part
                    if len(content) > self._max_reply:
                        raise self.problem(method, path, f"a reply of more than {self._max_reply} bytes, refused")
                    if time.monotonic() > end:
                        raise requests.Timeout
                return reply.status_code, bytes(content)
        except (requests.Timeout, urllib3.exceptions.ReadTimeoutError) as error:
            raise self.problem(method, path, f"no whole reply in {self._timeout:g} seconds") from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            if isinstance(error, requests.ConnectionError):
                raise
            raise requests.ConnectionError(error) from error
