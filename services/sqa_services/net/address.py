"""Where a server listens, and by which names it may be asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def address_problems(host: str, port: int, token: str | None) -> list[str]:
    """What is wrong with where a server shall listen, one line each."""
    wrong = [] if 0 <= port <= 65535 else [f"--port: must be 0 to 65535, got {port}"]
    if not is_loopback(host) and not token:
        wrong.append(f"--host: {host} can be reached from other machines; give a --token")
    return wrong


@dataclass(frozen=True, slots=True)
class Names:
    """The host names that a request may be for, in lower case; none: any.

    A page in a browser can have a name of its own point at this machine (DNS rebinding), and would then be allowed to
    read what a server here answers; its requests still carry that name.
    """

    known: frozenset[str] = frozenset()

    @classmethod
    def of(cls, host: str, more: Sequence[str] = ()) -> Names:
        """Those of a server that listens on `host`: this machine's on loopback, else `more` alone."""
        own = ("localhost", "127.0.0.1", "::1", host) if is_loopback(host) else ()
        return cls(frozenset(name.lower() for name in (*own, *more)))

    def allow(self, host: bytes) -> bool:
        """Whether the value of a Host header is one of them, with or without a port."""
        if not self.known:
            return True
        name = host.decode("latin-1").strip().lower()
        if name.startswith("["):
            name = name[1:].partition("]")[0]
        else:
            name = name.rpartition(":")[0] if ":" in name else name
        return name in self.known


ANY_NAME = Names()
