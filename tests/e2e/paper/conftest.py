"""What the tests of the paper's items share."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from recorded import recorded

from experiments import grid


@pytest.fixture(scope="module", autouse=True)
def in_this_process(request: pytest.FixtureRequest) -> Iterator[None]:
    """A grid's runs are made in a thread: processes cost seconds, and tests/e2e/paper/test_ablation.py has some.

    What items write and draw is compared with what was recorded; nothing recorded may be missing when all tests of the
    module have been run.
    """
    whole = not request.config.option.keyword and not any("::" in name for name in request.config.args)
    with pytest.MonkeyPatch.context() as patch, recorded(request.path, whole):
        patch.setattr(grid, "ProcessPoolExecutor", lambda workers, *_: ThreadPoolExecutor(1))
        yield
