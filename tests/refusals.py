"""Check that a call is refused with the expected error."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from sqa.core import ConfigError


def refused(kind: type[BaseException], says: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """Check that `call(*arguments, **options)` raises an error of type `kind`, and return the message.

    The message must match the regular expression `says`, and must be one line unless the error is a ConfigError.
    """
    with pytest.raises(kind) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert re.search(says, message), message
    assert isinstance(caught.value, ConfigError) or "\n" not in message, message
    return message
