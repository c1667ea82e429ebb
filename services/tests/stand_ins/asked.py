"""In-process requests to an application, in the form that uvicorn uses."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple


class Asked(NamedTuple):
    """An HTTP request."""

    method: str
    path: str
    query: bytes = b""
    body: bytes = b""


async def ask(
    app: Callable[..., Awaitable[None]], asked: Asked, headers: list[tuple[bytes, bytes]]
) -> tuple[int, bytes]:
    """Send a request to the application and return the status and the body of the response."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": asked.method,
        "scheme": "http",
        "path": asked.path,
        "raw_path": asked.path.encode("utf-8", "surrogatepass"),
        "query_string": asked.query,
        "headers": [(b"host", b"127.0.0.1"), *headers],
        "client": ("127.0.0.1", 9),
        "server": ("127.0.0.1", 80),
    }
    waiting = [{"type": "http.request", "body": asked.body, "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return waiting.pop() if waiting else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    assert [message["type"] for message in sent[:2]] == ["http.response.start", "http.response.body"]
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])
