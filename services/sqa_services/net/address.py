"""Where a server listens, and which requests it admits."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated

from sqa.core.errors import Bound, Count, checked

SHORTEST = 16  # characters of a token


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
@checked
class Address:
    """The address of a server and the limits of its requests."""

    host: str = "127.0.0.1"
    port: Annotated[int, Bound(0, 65535)] = 0  # 0 = a free one
    token: str | None = None  # "Authorization: Bearer TOKEN" is then needed; beyond loopback there has to be one
    names: tuple[str, ...] = ()  # host names by which it may be asked, beside this machine's; beyond loopback none: any
    max_body: Count = 1 << 20  # bytes of a request

    def problems(self) -> list[str]:
        """List the problems, one line each."""
        starred = [name for name in self.names if "*" in name.removeprefix("*.")]
        wrong = [f"--name: a star stands as in *.example.org, got {name!r}" for name in starred]
        if not self.local and not self.token:
            wrong.append(f"--host: {self.host} can be reached from other machines; give a --token-file")
        if self.token and len(self.token) < SHORTEST:
            wrong.append(f"--token-file: a token has {SHORTEST} characters or more, got {len(self.token)}")
        return wrong

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://{self.host}:{self.port}"

    @property
    def hosts(self) -> list[str]:
        """The host names that a request may be for, as Starlette takes them.

        A page in a browser can point its own host name at this machine (DNS rebinding) and would then be allowed to
        read a server's answers here; its requests still carry that name.
        """
        local_names = ("localhost", "127.0.0.1", "::1", self.host) if self.local else ()
        return [f"[{name}]" if ":" in name else name for name in (*local_names, *self.names)] or ["*"]
