"""Synthetic sentence pairs with one machine-made side: back-translation and sequence-level distillation.

    corpus:
      made:
        - corpus: round-trip                # name of the pairs in `weights`
          texts: tossups                    # English tossups, or parallel: the sources of the parallel text
          makes: source                     # back-translation (Sennrich et al., ACL 2016); target = distillation
          translator: {name: causal-lm, model: lm-en-es}                          (Kim and Rush, EMNLP 2016)
          every: 4                          # every n-th text

Any translator of the required direction can be used.  Its output is a stage of the store in the cache folder.  Other
training runs reuse it, and a killed run resumes from it.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from tqdm import tqdm

from smt.training.clean import Pair
from sqa.core import TRANSLATORS, BatchTranslator, Count, Question, Translator, cache_dir, checked, hypotheses, table_of
from sqa.files import Stage, Store, blocks_of, digest
from sqa.pipeline import read_parts, stream

BLOCK = 512  # texts translated and stored together
LINES = {"line": "text"}


@dataclass(frozen=True, slots=True)
@checked
class MadeConfig:
    """One corpus of synthetic pairs."""

    corpus: Annotated[str, "name of the corpus in `weights`"]
    texts: Annotated[Literal["tossups", "parallel", "made"], "tossups, or sources of the parallel text or of `of`"]
    makes: Annotated[Literal["source", "target"], "side that the translator makes"]
    translator: Annotated[dict[str, Any], "as in a run's config"]
    of: Annotated[tuple[str, ...], "for parallel and made: corpora whose sources are used; empty = all"] = ()
    every: Annotated[Count, "every n-th text"] = 1
    longest: Annotated[Count, "maximum number of words of a text; longer texts are omitted"] = 60
    shortest: Annotated[Count, "minimum number of words of a text; shorter texts are omitted"] = field(default=4)

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        read_parts(translator=self.translator)
        if (self.texts == "tossups") != (self.makes == "source"):
            return ["made: for tossups, which are English, the source must be made; for other texts, the target"]
        return []


def made_pairs(config: MadeConfig, texts: Sequence[str]) -> Iterator[Pair]:
    """Yield (source, target, corpus) of every n-th text; texts without a translation are omitted."""
    chosen = [text for text in texts if config.shortest <= len(text.split()) <= config.longest][:: config.every]
    for text, translation in zip(chosen, translated(config.translator, chosen, config.corpus), strict=True):
        if translation:
            yield (translation, text, config.corpus) if config.makes == "source" else (text, translation, config.corpus)


def translated(translator: dict[str, Any], texts: Sequence[str], name: str = "texts") -> list[str]:
    """Translate each text with full input; reuse stored translations."""
    [component] = read_parts(translator=translator)
    built = TRANSLATORS.build(component.name, component.options)
    store, blocks = Store(cache_dir()), blocks_of(texts, BLOCK)
    stage = Stage("made", component.name, built.fingerprint(), (), digest(list(texts)), BLOCK)
    with store.working_on(stage):
        missing = store.missing(stage, len(blocks))
        for index in tqdm(missing, desc=name, unit="block", disable=not sys.stderr.isatty()):
            lines = _write(built, [text.split() for text in blocks[index]])
            store.write(stage, index, table_of(LINES, ([line] for line in lines)))
    return [line for index in range(len(blocks)) for line in store.read(stage, index, LINES)["line"].to_list()]


def _write(translator: Translator | BatchTranslator, texts: Sequence[Sequence[str]]) -> list[str]:
    questions = [Question(str(i), "made", "xx", (tuple(text),), (), "") for i, text in enumerate(texts)]
    if isinstance(translator, BatchTranslator):
        written = translator.translate_batch(questions)
    else:
        written = [stream(translator, question) for question in questions]
    return [" ".join(hypotheses(question, emissions)) for question, emissions in zip(questions, written, strict=True)]
