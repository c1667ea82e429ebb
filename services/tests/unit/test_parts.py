"""The commands that the distribution `sqa-services` registers."""

from sqa.cli import PANELS
from sqa.core import COMMANDS


def test_help_lists_commands_of_services_together() -> None:
    ours = {name for name in COMMANDS.names() if COMMANDS.entries[name].startswith("sqa_services.")}
    assert ours == set(PANELS["Serve"])
