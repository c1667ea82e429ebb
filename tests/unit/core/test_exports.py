"""Names that a package imports on first use."""

import subprocess
import sys
from importlib import import_module

import pytest


@pytest.mark.parametrize("package", ["sqa", "sqa.core", "sqa.files", "sqa.pipeline"])
def test_package_exports_the_names_of_its_stub(package: str) -> None:
    module = import_module(package)
    assert len(module.__all__) > 5
    assert {*module.__all__} <= {*dir(module)}
    for name in module.__all__:
        assert callable(getattr(module, name)) or name.isupper() or name[0].isupper(), name
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = module.nothing


def test_exported_name_loads_only_its_module() -> None:
    code = "import sys; from sqa.core import ConfigError; print(*{'sqa.core.errors', 'numpy'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["sqa.core.errors"]
