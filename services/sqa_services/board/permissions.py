"""Permissions: who may change a model, and what is public in each phase of a data set.

phase     inputs    answers, single examples, exact scores    evaluated models
open      public    public                                    all
closed    public    secret                                    all
hidden    secret    secret                                    models that run on the board
"""

from dataclasses import dataclass

from sqa.core.errors import SqaError

PHASES = ("open", "closed", "hidden")
PUBLIC_INPUTS = ("open", "closed")
PUBLIC_ANSWERS = ("open",)
RUN_HERE = ("config", "session")  # kinds of models that run on the board; for others, owners upload answers


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


def require_inputs(dataset: str, phase: str) -> None:
    """Raise Denied if the inputs of a data set are secret."""
    if phase not in PUBLIC_INPUTS:
        raise Denied(f"{dataset}: is {phase}; only models that run on the board receive it")


def require_answers(dataset: str, phase: str) -> None:
    """Raise Denied if the answers of a data set are secret."""
    if phase not in PUBLIC_ANSWERS:
        raise Denied(f"{dataset}: is {phase}; its answers are not published")
