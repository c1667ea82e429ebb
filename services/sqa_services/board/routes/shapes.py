"""Bodies and parameters of the board's requests, and its JSON response."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import Path
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from sqa.data.datasets import question_sets
from sqa.data.perturb import PERTURBATIONS
from sqa_services.board.task import PHASES

NAME = r"^[a-z0-9][a-z0-9-]{0,62}$"
PREFIXED = r"^[a-z0-9][a-z0-9-]{0,125}$"
MAX_ID = 2**31 - 1
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": {"text/plain" if status == 413 else "application/json": {}}}
    for status, text in {
        400: "The request is wrong",
        401: "A token is needed",
        403: "It belongs to another account, or is hidden",
        404: "There is no such thing",
        409: "The name is in use already",
        413: "The body is too large",
        429: "Too many submissions today",
        503: "Too many are being checked now",
    }.items()
}

TaskCode = Annotated[str, Path(pattern=NAME, examples=["sqa-es"])]
Name = Annotated[str, Path(pattern=NAME, examples=["mini"])]
CopyName = Annotated[str, Path(pattern=PREFIXED, examples=["robustness-mini"])]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
Weights = dict[Annotated[str, Field(max_length=63)], Annotated[float, Field(gt=0, le=1e6)]]


class NewQuestion(BaseModel):
    """A question as in a file of your own."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: Annotated[str, Field(min_length=1, max_length=200)]
    source: Annotated[list[Text], Field(min_length=1, max_length=200, description="Sentences")]
    reference: Annotated[list[Text], Field(min_length=1, max_length=200, description="English sentences")]
    page: Text
    language: Annotated[str, Field(pattern="^[a-z]{2}$")]


class NewDataset(BaseModel):
    """A question set by name, or questions."""

    model_config = ConfigDict(extra="forbid", strict=True)

    source: Annotated[str | None, Field(max_length=63, description=f"One of {', '.join(question_sets())}")] = None
    questions: Annotated[list[NewQuestion] | None, Field(min_length=1, max_length=10_000)] = None
    # the names are known at run time only, where the request's schema is made
    perturbations: Annotated[list[Literal[tuple(PERTURBATIONS)]], Field(max_length=len(PERTURBATIONS))] = []  # type: ignore[valid-type]
    seed: Annotated[int, Field(ge=0, le=MAX_ID)] = 0
    phase: Literal[PHASES] = "closed"  # type: ignore[valid-type]


class NewAccount(BaseModel):
    """A name and an invitation."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(pattern=NAME)]
    invitation: Annotated[str, Field(min_length=1, max_length=200)]


class NewInvitation(BaseModel):
    """How many may use it, and for how many days."""

    model_config = ConfigDict(extra="forbid", strict=True)

    uses: Annotated[int, Field(ge=1, le=10_000)] = 1
    days: Annotated[float, Field(gt=0, le=3660)] = 30.0


class NewView(BaseModel):
    """Weights of data sets, and of metrics (left out: the task's)."""

    model_config = ConfigDict(extra="forbid", strict=True)

    datasets: Annotated[Weights, Field(min_length=1, max_length=1000)]
    metrics: Annotated[Weights | None, Field(min_length=1, max_length=100)] = None


class Ascii(JSONResponse):
    """JSON in ASCII: half a surrogate pair in a request cannot break the answer to it."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
