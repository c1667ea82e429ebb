"""What this distribution registers is what the core says it would."""

from sqa.core.packages import OF_SERVICES
from sqa.core.registry import BUZZERS, COMMANDS, GUESSERS, QUALITY, TRANSLATORS


def test_the_core_knows_what_is_missing_without_us() -> None:
    ours = {
        registry.kind: {name for name in registry.names() if registry.entries[name].startswith("sqa_services.")}
        for registry in (COMMANDS, TRANSLATORS, GUESSERS, BUZZERS, QUALITY)
    }
    assert ours == {kind: set(names) for kind, names in OF_SERVICES.items()}
