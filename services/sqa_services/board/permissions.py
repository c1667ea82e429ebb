"""Permissions: who may change a model."""

from dataclasses import dataclass

from sqa.core.errors import SqaError


class Denied(SqaError):
    """Raised for an action that the caller must not perform, and for an invalid invitation."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The author of a request: the organiser (no account) or the holder of an account."""

    account: int | None = None
    name: str | None = None

    @property
    def organiser(self) -> bool:
        """Whether the caller is the organiser, who has all permissions."""
        return self.account is None

    def __str__(self) -> str:
        return self.name or "the organiser"


ORGANISER = Caller()


def require_owner(caller: Caller, model: str, owner: int | None) -> None:
    """Raise Denied unless the caller may change a model of this owner."""
    if not caller.organiser and caller.account != owner:
        raise Denied(f"{model}: belongs to another account")
