"""Fixture for the tests of the paper's items."""

from collections.abc import Iterator

import pytest
from recorded import recorded


@pytest.fixture(scope="module", autouse=True)
def compared_with_records(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compare the files and figures that the items make with the recorded output.

    If all tests of the module are run, every file and figure in the recorded output must have been made.
    """
    whole = not request.config.option.keyword and not any("::" in name for name in request.config.args)
    with recorded(request.path, whole, rendered=False):
        yield
