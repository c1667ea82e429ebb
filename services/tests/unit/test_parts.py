"""The parts that the distribution `sqa-services` registers."""

from sqa.core.packages import OF_SERVICES
from sqa.core.registry import COMMANDS, QUALITY, TRANSLATORS


def test_core_lists_the_parts_of_services() -> None:
    ours = {
        registry.kind: {name for name in registry.names() if registry.entries[name].startswith("sqa_services.")}
        for registry in (COMMANDS, TRANSLATORS, QUALITY)
    }
    assert ours == {kind: set(names) for kind, names in OF_SERVICES.items()}
