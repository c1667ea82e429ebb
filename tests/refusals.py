"""Checks of refusals: the expected error type, and one line that names the place."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from sqa.core.errors import ConfigError


def refused(kind: type[BaseException], says: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """Check that `call(*arguments, **options)` raises `kind` and return the whole message.

    Each of its problems is one line, and one of them matches the regular expression `says`.
    """
    with pytest.raises(kind) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert re.search(says, message), message
    assert isinstance(caught.value, ConfigError) or "\n" not in message, message
    return message
