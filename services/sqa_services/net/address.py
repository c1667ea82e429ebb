"""The address of a server, and the hosts whose requests it admits."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated

from msgspec import Meta

from sqa.core import Count, checked

SHORTEST = 16  # minimum length of a token, in characters


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
@checked
class Address:
    """The address of a server and the limits on its requests."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535), "0 selects a free port"] = 0
    token: Annotated[str | None, 'clients must send "Authorization: Bearer TOKEN"; required except on loopback'] = None
    names: Annotated[
        tuple[str, ...], "further host names that the server answers to; empty = any name, except on loopback"
    ] = ()
    max_body: Annotated[Count, "maximum bytes of a request"] = 1 << 20

    def problems(self) -> list[str]:
        """Return the problems, one line each."""
        starred = [name for name in self.names if "*" in name.removeprefix("*.")]
        wrong = [f"--name: a star is allowed only as in *.example.org, got {name!r}" for name in starred]
        if not self.local and not self.token:
            wrong.append(f"--host: {self.host} can be reached from other machines; give a --token-file")
        if self.token and len(self.token) < SHORTEST:
            wrong.append(f"--token-file: a token must have at least {SHORTEST} characters, got {len(self.token)}")
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
        """The host names that the server answers to, in Starlette's form.

        A page in a browser can point its own host name at this machine (DNS rebinding) and could then read a server's
        responses.  Its requests still carry that host name, so the server can refuse them.
        """
        local_names = ("localhost", "127.0.0.1", "::1", self.host) if self.local else ()
        return [f"[{name}]" if ":" in name else name for name in (*local_names, *self.names)] or ["*"]
