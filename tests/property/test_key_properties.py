"""Different inputs have different store keys, even if texts contain separators or keywords."""

import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from smt.engines import pretrained
from smt.engines.fixed import FixedConfig, FixedTranslator
from sqa.files import CPU

# texts that resemble separators, values and keywords
TRICKY = st.sampled_from(["", " ", "a", "b", "a b", "b a", "None", "1", "reference", "source", "a\tb", "a\nb", "['a']"])
CODE = st.none() | TRICKY


LINES = st.lists(TRICKY.filter(lambda text: text == " ".join(text.split())), min_size=1, max_size=2)
TEXTS = st.tuples(st.just("given"), st.sampled_from(["reference", "source"])) | st.tuples(st.just("file"), LINES)
FIXED = st.tuples(TEXTS, st.sampled_from(["full", "diagonal"]), st.sampled_from(["sentence", "question"]))


def _of_fixed(folder: str, drawn: tuple) -> str:
    (kind, text), reveal, unit = drawn
    if kind == "file":
        path = Path(folder, "text")
        path.write_text("\n".join(text) + "\n", encoding="utf-8")
        text = str(path)
    return FixedTranslator(FixedConfig(text, reveal, unit)).fingerprint()


@given(FIXED, FIXED)
def test_fixed_texts_share_a_fingerprint_only_if_equal(one: tuple, other: tuple) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert (_of_fixed(folder, one) == _of_fixed(folder, other)) == (one == other)


@pytest.mark.parametrize("text", ["reference", "source"])
def test_keyword_and_file_with_that_text_differ(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        drawn = [((kind, content), "full", "sentence") for kind, content in (("given", text), ("file", [text]))]
        assert _of_fixed(folder, drawn[0]) != _of_fixed(folder, drawn[1])


LANGUAGES = st.tuples(CODE, CODE, st.integers(1, 2))


@given(one=LANGUAGES, other=LANGUAGES)
@example(one=("a b", "a", 1), other=("a", "b a", 1))
def test_languages_share_a_fingerprint_only_if_equal(one: tuple, other: tuple) -> None:
    def of(drawn: tuple) -> str:
        names = ("source_language", "target_language", "beams")
        config = SimpleNamespace(**dict(zip(names, drawn, strict=True)), max_new_tokens=9)
        inside = SimpleNamespace(device="cpu", compute_type="int8")
        return pretrained.Pretrained.fingerprint(
            SimpleNamespace(config=config, where=CPU, device="cpu", engine=inside, _files="")
        )

    assert (of(one) == of(other)) == (one == other)
