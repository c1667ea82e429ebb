"""Tables of test cases in YAML files."""

from pathlib import Path
from typing import Any

import yaml


def tables_of(test_file: str) -> dict[str, Any]:
    """Return the tables in the YAML file beside a test file, by the names of their tests or constants."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the first is faster, and not in every build of PyYAML
    return yaml.load(Path(test_file).with_suffix(".yaml").read_text(encoding="utf-8"), loader)
