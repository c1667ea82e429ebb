"""Target words from a language model's reply, without a model."""

import pytest

from smt.engines.llm_replies import Asked, translation, unlooped

OPEN = "El río Danubio nace en la Selva"
CLOSED = "El río Danubio nace en la Selva Negra."
ORDER = "Translate a Spanish text into English and write the translation only, on one line."
CASES = {  # source, committed target, reply, expected words, expected kinds
    "plain": (CLOSED, "", " The Danube rises in the Black Forest.", "The Danube rises in the Black Forest.", ""),
    "open": (OPEN, "The river", " Danube.", "Danube", ""),
    "open, quoted": (OPEN, "", ' The "Danube."', 'The "Danube', ""),
    "abbreviation": (OPEN, "", " The U.S.", "The U.S.", ""),
    "repeats the target": (OPEN, "The river", " The river Danube rises", "Danube rises", ""),
    "extends a word": (OPEN, "The river Dan", "ube rises in", "rises in", ""),
    "comma": (OPEN, "The river", ", which rises", "which rises", ""),
    "full stop": (CLOSED, "The Danube rises there", ".", ".", ""),
    "full stop, open": (OPEN, "The Danube rises", ".", "", ""),
    "empty": (OPEN, "The river", "", "", "nothing-more"),
    "mark": (CLOSED, "", " The Danube rises<|im_end|>\n<|im_start|>user", "The Danube rises", "marks"),
    "only a mark": (CLOSED, "", "<|im_end|>", "", "marks empty"),
    "thoughts": (CLOSED, "", "<think>Spanish\nfirst</think> The Danube rises", "The Danube rises", ""),
    "refusal": (CLOSED, "", "I'm sorry, but I can't help with that request.", "", "refusal"),
    "no refusal": (CLOSED, "", "I cannot swim in the Danube.", "I cannot swim in the Danube.", ""),
    "preface": (CLOSED, "", "Sure! Here is it: The Danube rises", "", "explanation"),
    "preface, colon": (CLOSED, "", "Here is the translation:", "", "explanation"),
    "echo": (CLOSED, "", f"{ORDER} El río", "", "echo"),
    "source language": (CLOSED, "", "El río nace en la Selva Negra y es de los más largos", "", "language"),
    "too long": (
        CLOSED,
        "",
        " " + " ".join(f"w{i}" for i in range(40)),
        " ".join(f"w{i}" for i in range(26)),
        "length",
    ),
    "loop": (CLOSED, "", " The source of the hand of the hand of the hand", "The source of the hand", "loop"),
    "loop of one word": (CLOSED, "so very very", " very far", "", "loop"),
    "doubled name": (CLOSED, "so Humbert", " Humbert drove", "Humbert drove", ""),
}


@pytest.mark.parametrize("case", CASES)
def test_reply_yields_the_listed_words_and_kinds(case):
    source, target, reply, words, kinds = CASES[case]
    asked = Asked(source, tuple(target.split()), ORDER, ("es", "en"), joined=True)
    assert translation(reply, asked) == (tuple(words.split()), tuple(kinds.split()))


def test_chat_reply_of_two_lines_is_an_explanation():
    asked = Asked(CLOSED, (), ORDER, ("es", "en"), joined=False)
    assert translation("The Danube rises.\n\nNote that", asked) == ((), ("explanation",))


def test_truncated_reply_loses_its_last_word():
    asked = Asked(CLOSED, (), ORDER, ("es", "en"), joined=True, cut=True)
    assert translation(" The Danube ri", asked)[0] == ("The", "Danube")


@pytest.mark.parametrize("phrase", ["a b", "a b c d e f g h"])
def test_phrase_is_not_written_twice_in_a_row(phrase):
    words = tuple(phrase.split())
    assert unlooped(("x",), words + words) == words
    assert unlooped(("x", *words), words) == ()
    assert unlooped(("x", *words), words[:-1]) == words[:-1]
    assert unlooped(("x", *words, "1"), (*words, "1")) == (*words, "1")  # words with digits may repeat


def test_word_may_be_doubled_but_not_tripled():
    assert unlooped((), ("Humbert", "Humbert", "left")) == ("Humbert", "Humbert", "left")
    assert unlooped(("so", "very"), ("very", "very", "far")) == ("very",)
