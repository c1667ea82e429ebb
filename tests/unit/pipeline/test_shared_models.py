"""Models in memory: translators that differ only in k share the weights, and a process keeps one workshop."""

import gc
import weakref
from pathlib import Path

from smt.models.waitk_translator import WaitKConfig, build
from sqa.files.store import Store
from sqa.pipeline.blocks import workshop_of


def test_translators_with_different_k_share_the_weights() -> None:
    networks = {id(build(WaitKConfig("es-en", k)).writer.model) for k in (1, 3, "full")}
    assert len(networks) == 1


def test_workshop_of_the_last_store_is_freed(tmp_path: Path) -> None:
    first = weakref.ref(workshop_of(Store(tmp_path / "a")))
    assert workshop_of(Store(tmp_path / "a")) is first()
    workshop_of(Store(tmp_path / "b"))
    gc.collect()
    assert first() is None
