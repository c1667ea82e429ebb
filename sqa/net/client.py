"""HTTP client for external services, with limits of time and size.

    Http        requests within limits, from any number of threads; errors are `Failed`
    attempts    the pauses between repeated requests

Redirects are not followed.
"""

import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from requests.auth import HTTPBasicAuth
from requests.utils import get_auth_from_url

MAX_REPLY = 8 << 20  # bytes
SHOWN = 80  # characters of a response that a message quotes


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


class Failed(Exception):
    """Raised if there is no usable response.

    `again` is True if the connection failed, so that the same request may succeed later.
    """

    def __init__(self, message: str, again: bool = False) -> None:
        super().__init__(message)
        self.again = again


def attempts(first: float, longest: float, number: int = 0, seconds: float = 0.0) -> Iterator[bool]:
    """Yield, before each attempt at a request, whether it is the last one; pause before every further attempt.

    The pause is `first` seconds and doubles up to `longest`.  There are `number` attempts, or if that is 0, no attempt
    follows one that began `seconds` after the first.
    """
    end, pause = time.monotonic() + seconds, first
    for attempt in count(1):
        last = attempt == number if number else time.monotonic() >= end
        yield last
        if last:
            return
        time.sleep(pause)
        pause = min(2 * pause, longest)


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

    timeout: float  # seconds until the response is complete
    max_reply: int = MAX_REPLY  # bytes
    token: str = field(default="", repr=False)
    _local: threading.local = field(default_factory=threading.local)

    @property
    def _session(self) -> requests.Session:
        if not hasattr(self._local, "session"):
            session = self._local.session = requests.Session()
            session.trust_env = False  # no proxy and no ~/.netrc
            session.auth = self._authorised
        return self._local.session

    def _authorised(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the token, or the credentials in the URL."""
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
                        raise Failed(f"refused a response of more than {self.max_reply} bytes")
                    if time.monotonic() > end:
                        raise requests.Timeout
                return Reply(reply.status_code, bytes(content), reply.url, reply.headers)
        except (requests.Timeout, urllib3.exceptions.ReadTimeoutError) as error:
            raise Failed(f"no complete response in {self.timeout:g} seconds") from error
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            broken = not isinstance(error, requests.exceptions.InvalidURL | requests.exceptions.InvalidSchema)
            reason = " ".join(str(error).split())[-SHOWN:]
            raise Failed(f"the connection failed ({reason})", again=broken) from error
