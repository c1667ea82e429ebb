"""The shipped translators' words and delays for one sentence, so that no change goes unnoticed.

For an intended change, increase the VERSION of the module (CONTRIBUTING.md, "When a number changes") and update the
expected words here.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from safetensors.numpy import load
from tables import tables_of

from smt.lm import causal_lm as lm
from smt.lm.adapter import load_adapter
from smt.lm.word_scores import LmScorer
from smt.models.waitk_translator import WaitKConfig, build
from sqa.core import DATA
from sqa.files import content
from sqa.files.model_files import files_digest, model_files
from sqa.pipeline import CountedSource

TABLES = tables_of(__file__)

ADAPTERS = sorted(path.name for path in (DATA / "models").glob("lm-*"))


def written(translator, sentence: str) -> str:
    """Return each word with the number of source words read before it; "+" marks the end of the source."""
    source = CountedSource(sentence.split())
    return " ".join(f"{word}/{source.read}{'+' * source.ended}" for word in translator.translate(source))


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[ProcessPoolExecutor]:
    """Yield another process for language models, which take two gigabytes."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        yield process


def words_and_scores(model: str, options: dict[str, object], sentence: str) -> tuple[str, list[float]]:
    """Return the words that a language model writes, and their ln p given the source."""
    translator = lm.build(lm.CausalLmConfig(model, k=2, dtype="float32", **options))
    words = written(translator, sentence)
    target = [word.rpartition("/")[0] for word in words.split()]
    [scores] = LmScorer(lambda: translator.writer, "").score([(sentence.split(), target)])
    return words, list(scores.given)


@pytest.mark.parametrize(("model", "sentence", "search", "words"), TABLES["transformer_words_are_as_recorded"])
def test_transformer_words_are_as_recorded(model, sentence, search, words):
    assert written(build(WaitKConfig(model, **{"k": 3} | search)), sentence) == words


@pytest.mark.needs("lm")
@pytest.mark.parametrize(
    ("model", "options", "sentence", "words", "given"),
    TABLES["language_model_words_are_as_recorded"],
    ids=["es", "pl with glosses"],
)
def test_language_model_words_are_as_recorded(elsewhere, model, options, sentence, words, given):
    """The tolerance is below the effect of wrong token positions, which change the second decimal of ln p."""
    expected = (words, pytest.approx(given, abs=0.003))
    assert elsewhere.submit(words_and_scores, model, options, sentence).result() == expected


@pytest.mark.parametrize("name", ADAPTERS)
def test_shipped_adapters_have_the_current_layout(name):
    config = load_adapter(DATA / "models" / name).config
    assert f"lm-{config['source']}-{config['target']}" == name


def test_adapter_weights_are_finite():
    for path in model_files(DATA / "models"):
        for name, array in load(content(path)).items() if path.suffix == ".safetensors" else ():
            assert array.dtype.kind != "f" or np.isfinite(array).all(), (path, name)


@pytest.mark.parametrize(("model", "digest"), [("es-en", "9a9f67540dbd"), ("gru", "075b2457ac1d")])
def test_packing_a_model_keeps_its_digest(model, digest, tmp_path):
    """Ledgers and stores contain the digest of the unpacked files."""
    assert files_digest(DATA / "models" / model).startswith(digest)
    for path in model_files(DATA / "models" / model):
        (tmp_path / path.name).write_bytes(content(path))
    assert files_digest(tmp_path).startswith(digest)
