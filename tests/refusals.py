"""What every refusal has to be: the kind of error that was meant, and one line that names the place."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from sqa.core.errors import ConfigError


def refused(kind: type[BaseException], says: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """`call(*arguments, **options)` raises that error; each of its problems is a line, and one of them `says` so
    (a regular expression); the whole message.
    """
    with pytest.raises(kind) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert re.search(says, message), message
    assert isinstance(caught.value, ConfigError) or "\n" not in message, message
    return message
