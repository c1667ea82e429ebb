"""The HTTP client for the openai SDK: paces and counts requests, and limits responses in size and time."""

import threading
import time
from typing import TYPE_CHECKING, Any

import openai

from sqa.core import SqaError
from sqa.files import parse_json
from sqa.net.chat import Budget, EndpointError, Halted

if TYPE_CHECKING or int(openai.__version__.partition(".")[0]) < 3:
    import httpx as httpx
else:  # the SDK's library since version 3
    import httpx2 as httpx

MAX_BODY = 1 << 20  # bytes of one response
_RETRIES_SO_FAR = "x-stainless-retry-count"  # a header of the SDK's requests
_OF_THE_ENVIRONMENT = ("OpenAI-Organization", "OpenAI-Project")  # headers that the SDK sets from the environment
_ENCODED = "content-encoding"
_AGAIN = (408, 409, 429)  # statuses below 500 after which the SDK retries
HALF = "an incomplete response"


class Refused(openai.OpenAIError):
    """Wrapper that passes an error of this project through the SDK, which retries after other exceptions."""

    def __init__(self, error: SqaError) -> None:
        super().__init__(str(error))
        self.error = error


class PacedHttp(httpx.Client):
    """HTTP client that starts requests `60 / per_minute` seconds apart over all threads and counts them in `budget`."""

    def __init__(self, budget: Budget, per_minute: float, timeout: float, backoff: float, key: str) -> None:
        """Create the client.

        Args:
            budget: Counts every request, including retries.
            per_minute: Requests started per minute.
            timeout: Seconds until the response must be complete.
            backoff: Seconds before the first retry after an error response, doubled each time; 0 leaves the delay to
                the SDK.
            key: API key, which is replaced by *** in responses; empty if no key is sent.
        """
        super().__init__(timeout=timeout, follow_redirects=False, headers={"Accept-Encoding": "identity"})
        self._budget, self._gap, self._longest, self._backoff = budget, 60 / per_minute, timeout, backoff
        self._key = key.encode()
        self._next = 0.0  # earliest time of the next request
        self._connected = False
        self._lock = threading.Lock()

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """Return the complete response.

        Raises Refused if the request must not be sent or the response cannot be read.
        """
        for name in (*_OF_THE_ENVIRONMENT, *([] if self._key else ["Authorization"])):
            request.headers.pop(name, None)
        try:
            self._wait_for_turn()
            self._budget.spend()
            answer = self._answer(request, {**options, "stream": True})
            if answer.status_code in _AGAIN or answer.status_code >= 500:
                self._budget.failed(f"HTTP {answer.status_code}")
            return answer
        except SqaError as error:
            raise Refused(error) from error
        except httpx.TimeoutException:
            self._budget.failed("no complete response in time")
            raise
        except httpx.TransportError as error:
            self._budget.failed(HALF if str(error) == HALF else "a broken connection")
            raise

    def _wait_for_turn(self) -> None:
        with self._lock:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + self._gap
        if self._budget.halted.wait(start - now):
            raise Halted("not sent")

    def _answer(self, request: httpx.Request, options: dict[str, Any]) -> httpx.Response:
        deadline = time.monotonic() + self._longest
        try:
            answer = super().send(request, **options)
        except httpx.ConnectError as error:
            if self._connected:
                raise
            raise EndpointError(f"unreachable ({error}); start the server, or correct base_url") from error
        self._connected = True
        body = bytearray()
        try:
            for part in answer.iter_raw():
                body += part
                if len(body) > MAX_BODY:
                    raise EndpointError(f"refused a response of more than {MAX_BODY} bytes")
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout("the response is not complete", request=request)
        finally:
            answer.close()
        if answer.status_code == 200 and _is_half(bytes(body)):
            raise httpx.RemoteProtocolError(HALF, request=request)
        headers = {name: value for name, value in answer.headers.items() if name != _ENCODED}
        if answer.status_code >= 400 and self._backoff:
            retries = int(request.headers.get(_RETRIES_SO_FAR, 0))
            headers.setdefault("retry-after", str(self._backoff * 2**retries))  # read by the SDK
        shown = bytes(body).replace(self._key, b"***") if len(self._key) >= 8 else bytes(body)  # some echo the key
        return httpx.Response(answer.status_code, headers=headers, content=shown, request=request)


def _is_half(body: bytes) -> bool:
    """Return whether a response begins like a JSON object but is not valid JSON, as if it had been cut off."""
    if not body.lstrip().startswith(b"{"):
        return False
    try:
        parse_json(body)
    except (ValueError, RecursionError):
        return True
    return False
