"""Device and dtype of parts with weights."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from tables import tables_of

from sqa.core import ROOT, ConfigError
from sqa.files import Arithmetic, Place, devices, place

TABLES = tables_of(__file__)


def config_with(device: str, dtype: str, arithmetic: Arithmetic) -> SimpleNamespace:
    return SimpleNamespace(device=device, dtype=dtype, ARITHMETIC=arithmetic)


@pytest.mark.parametrize(("arithmetic", "dtype", "fast", "taken", "warning"), TABLES["dtype_fits_the_processor"])
def test_dtype_fits_the_processor(arithmetic, dtype, fast, taken, warning, monkeypatch, capsys):
    of_part = Arithmetic(**{key: tuple(dtypes) for key, dtypes in arithmetic.items()})
    devices._warn.cache_clear()
    monkeypatch.setattr(devices, "is_fast", lambda dtype, device: dtype in {"float32", *fast})
    for _ in range(2):
        assert place(config_with("cpu", dtype, of_part)) == Place("cpu", taken)
    said = capsys.readouterr().err
    assert (warning in said and said.count("\n") == 1) if warning else not said


def test_missing_device_is_refused(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    assert place(config_with("auto", "float32", Arithmetic())).device == "cpu"
    for device in ("cuda", "cuda:1", "mps"):
        with pytest.raises(ConfigError, match=f"no GPU {device} is available"):
            place(config_with(device, "float32", Arithmetic()))


def test_avx2_has_no_fast_16_or_8_bit_type():
    code = (
        "from sqa.files.devices import is_fast; print(*(is_fast(dtype) for dtype in ('bfloat16', 'float16', 'int8')))"
    )
    environment = os.environ | {"ATEN_CPU_CAPABILITY": "avx2"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "False False False\n", done.stderr


def imported(code: str, *names: str) -> list[bool]:
    """Return whether each module is imported in a new process that runs the code."""
    code = f"import sys; {code}; print(*(name in sys.modules for name in {names}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return [word == "True" for word in done.stdout.split()]


def test_loading_a_model_does_not_import_torch_dynamo():
    code = (
        "from sqa.core.registry import GUESSERS, TRANSLATORS; "
        "GUESSERS.build('gru', GUESSERS.config_class('gru')()); "
        "TRANSLATORS.build('waitk', TRANSLATORS.config_class('waitk')(model='es-en', k=6)).writer"
    )
    assert imported(code, "torch", "torch._dynamo") == [True, False]


def test_reading_a_config_does_not_import_torch():
    """The process that starts the workers of an ablation does not need torch, nor does a run with stored results."""
    ablation = (
        "from pathlib import Path; from experiments.ablation.report import AblationConfig, load_study; "
        "from experiments.grid import experiment; from sqa.core.registry import TRANSLATORS as parts; "
        "config = load_study(Path('configs/ablation.yaml'), AblationConfig, ()); "
        "experiment(config, ['mini-es'], Path('runs')).cells(); "
        "parts.build('waitk', parts.config_class('waitk')(model='es-en', k=6)).fingerprint()"
    )
    assert imported(ablation, "smt.lm.causal_lm", "guessers.gru.guesser", "torch") == [True, True, False]


def test_embedding_is_initialized_as_in_torch():
    torch.manual_seed(3)
    ours = devices.embedding(5, 4, 0.5)
    torch.manual_seed(3)
    theirs = torch.nn.Embedding(5, 4)
    torch.nn.init.normal_(theirs.weight, std=0.5)
    assert torch.equal(ours.weight, theirs.weight) and ours.weight.requires_grad
    with torch.device("meta"):
        assert devices.embedding(1 << 40, 1 << 20).weight.is_meta
