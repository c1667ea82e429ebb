"""Lines that a causal language model writes after prompts, and the numbers of pieces read and written."""

import pytest
from stand_ins.lm_models import make

from smt.lm.base import load_base
from smt.lm.lines import LineWriter

PROMPTS = ["the big dog", "of Spanish", "casa"]


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    return LineWriter(load_base(make(tmp_path_factory.mktemp("lines"), "llama")), "English the house")


def test_lines_do_not_depend_on_the_batch(writer):
    together = writer.write(PROMPTS, 6)
    assert together == [line for prompt in PROMPTS for line in writer.write([prompt], 6)]


def test_lines_count_the_pieces_of_prompt_and_line(writer):
    tokens = writer._tokens
    begun = [tokens.bos, *tokens.text("English the house")]
    for prompt, line in zip(PROMPTS, writer.write(PROMPTS, 3), strict=True):
        assert line.prompt_tokens == len(begun) + len(tokens.text(prompt))
        assert 0 <= line.reply_tokens <= 3
    assert any(line.reply_tokens == 3 for line in writer.write(PROMPTS, 3))
    assert [line.reply_tokens for line in writer.write(PROMPTS, 0)] == [0, 0, 0]
