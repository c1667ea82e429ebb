"""Target words from a language model's reply: stop rules, and detection of replies that are no translation.

    marks          a control mark written as text, such as <|im_end|>: the reply ends before it
    refusal        the model declines
    explanation    a preface ("Here is the translation:"), a JSON object, or further lines
    echo           the reply repeats the instruction
    language       the reply is in the source language
    length         more words than any translation: the reply is cut
    loop           a phrase is written twice in a row, or a word three times: the reply is cut before the last of them
    thinking       the reply has only thoughts
    empty          the reply has no text, although no word has been committed or the server broke it off
    nothing-more   the reply has no text after committed words
    label          the reply repeats the label of the prompt ("English:"), which is removed
    oddities       invisible characters or HTML escapes, which are removed or decoded (sqa/files/target_words.py)
    undecodable    U+FFFD or a control character: the reply ends before its word
    pieces         the reply consists of pieces of words
    filter         the server's content filter cut or withheld the reply
    error          the server failed while it wrote the reply
    cut            the reply to a whole sentence ends at the token limit; its last word, perhaps a part, is dropped

A reply of the kinds `VOID` gives no words.  Every kind is counted.  The rules assume English as the target language.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from smt.policies.policy import Words
from sqa.core import DataError, language_of
from sqa.files import Cleaner
from sqa.files.target_words import DAMAGE, MARK
from sqa.net.chat import THINKING

VERSION = 4  # increase when the same reply gives different words
PHRASE = 8  # longest phrase, in words, that may not be written twice in a row; for pieces: smt/models/stepper.py
ECHO = 6  # consecutive words of the instruction that make an echo
VOID = ("refusal", "explanation", "echo", "language", "thinking", "empty", "filter", "error", "pieces")
CLOSING = ".!?…"
_QUOTES = "\"'”’»)]"
_LEADING = re.compile(rf"\A(?:\s*(?:{MARK.pattern}))+|<(?:unk|pad)>")  # before the translation, or in it
_TAG = "(?:seed:)?(?:think|thinking|thoughts?|reasoning)"
_ENDED = rf"</{_TAG}>|\[/THINK\]|<\|channel\|>final<\|message\|>"  # the opening tag may be part of the prompt
_THOUGHT = re.compile(rf"\A.*(?:{_ENDED})\s*|\s*(?:<{_TAG}>|\[THINK\]|<\|channel\|>analysis).*", re.DOTALL)
_REFUSAL = re.compile(
    r"(?:sorry|i(?:['’]m| am) (?:sorry|unable|not able)|i can(?:['’]t|not| not)|as an ai)\b"
    r".*\b(?:translat|assist|help|provide|comply|request|language model)",
    re.IGNORECASE,
)
_EXPLANATION = re.compile(
    r"(?:here(?:['’]s| is| are)|sure|certainly|of course|okay|(?:the |english )*translation|note)\b[^.:!]{0,80}[:!]",
    re.IGNORECASE,
)


class Asked(NamedTuple):
    """The context of a reply."""

    source: str  # words read so far
    target: Words  # words committed so far; the reply continues them
    instruction: str  # the fixed text of the prompt
    languages: tuple[str, str]
    joined: bool  # the reply continues the text directly; without a leading space it extends the last word
    cut: bool = False  # the reply ends at its limit, perhaps inside a word
    whole: bool = False  # the source has ended, so that a reply must be complete
    finish: str = ""  # `Reply.finish`
    label: str = ""  # the end of the prompt ("English:"), which a model may repeat


def translation(text: str, asked: Asked) -> tuple[Words, tuple[str, ...]]:
    """Return the words that continue the target, and the kinds of problems of the reply."""
    if asked.finish in ("content_filter", "error"):
        return (), ("filter" if asked.finish == "content_filter" else "error",)
    thoughts = asked.finish == THINKING or bool(_THOUGHT.search(text))
    text, problems = _THOUGHT.sub("", text, count=1), list[str]()
    if asked.label and text.lstrip().startswith(asked.label):
        text, problems = text.lstrip().removeprefix(asked.label), ["label"]
    if MARK.search(text):
        text, problems = MARK.split(_LEADING.sub("", text), maxsplit=1)[0], [*problems, "marks"]
    lines = [line for line in text.split("\n") if line.strip()] or [""]
    if not text.strip():
        done = asked.target and asked.finish in ("", "stop")
        return (), (*problems, "thinking" if thoughts else "nothing-more" if done else "empty")
    if kind := _void(lines, asked):
        return (), (*problems, kind)
    if asked.cut and asked.whole:
        problems = [*problems, "cut"]
    line, *undecodable = DAMAGE.split(lines[0], maxsplit=1)
    cleaner, words = Cleaner("replies"), _words(line, asked)
    try:
        words = tuple(cleaner.words("reply", words, words)[0])
    except DataError:
        return (), (*problems, "pieces")
    if undecodable and line and not line[-1].isspace():
        words = words[:-1]
    problems = [*problems, *(["undecodable"] if undecodable else []), *(["oddities"] if cleaner.changed else [])]
    most = 2 * len(asked.source.split()) + 10
    if len(asked.target) + len(words) > most:
        words, problems = words[: max(0, most - len(asked.target))], [*problems, "length"]
    if len(kept := unlooped(asked.target, words)) < len(words):
        words, problems = kept, [*problems, "loop"]
    return unclosed(words, asked.source), tuple(problems)


def _void(lines: Sequence[str], asked: Asked) -> str:
    """Return the reason why a reply is not a translation, or "" if it is one."""
    first = lines[0].strip()
    words = first.split()
    if _REFUSAL.match(first):
        return "refusal"
    if _phrases(words, ECHO) & _phrases(asked.instruction.split(), ECHO):
        return "echo"
    if _EXPLANATION.match(first) or first.startswith('{"') or (len(lines) > 1 and not asked.joined):
        return "explanation"
    source, target = (language_of(code).function_words for code in asked.languages)
    lower = [word.strip(",;:" + CLOSING).lower() for word in words]
    foreign, own = (sum(word in kind for word in lower) for kind in (source - target, target - source))
    return "language" if foreign >= 3 and foreign > 2 * own else ""


def _phrases(words: Sequence[str], n: int) -> set[tuple[str, ...]]:
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}


def _words(line: str, asked: Asked) -> Words:
    """Return the words of a line that follow the target, which a model may repeat at the beginning of the line."""
    words = tuple(line.split())
    if asked.target and words[: len(asked.target)] == asked.target:
        return words[len(asked.target) :]
    if asked.cut and len(words) > 1:
        words = words[:-1]
    if asked.target and words and not line[0].isspace():
        is_mark = not any(map(str.isalnum, words[0]))
        if is_mark and words[0][0] in CLOSING:
            return words[:1]
        if is_mark or asked.joined:
            return words[1:]
    return words


def unlooped(before: Words, words: Words) -> Words:
    """Return the words up to the first phrase of at most PHRASE words that repeats the words before it.

    Words with digits may be repeated, and a single word may be doubled (Humbert Humbert, had had) but not tripled.
    """
    text = [*before, *words]
    for end in range(len(before) + 1, len(text) + 1):
        for n in range(1, min(PHRASE, end // 2) + 1):
            phrase = text[end - n : end]
            tripled = n > 1 or text[end - 3 : end] == phrase * 3
            if (
                tripled
                and phrase == text[end - 2 * n : end - n]
                and not any(c.isdigit() for word in phrase for c in word)
            ):
                return words[: max(0, end - n - len(before))]
    return words


def unclosed(words: Words, source: str) -> Words:
    """Return the words without a final mark in CLOSING, such as a full stop, unless the source ends with one."""
    if not words or not source or source.rstrip(_QUOTES)[-1:] in (*CLOSING, ""):
        return words
    last = words[-1].rstrip(_QUOTES)
    core = last.rstrip(CLOSING)
    if core == last or "." in core:
        return words
    return (*words[:-1], core) if core else words[:-1]
