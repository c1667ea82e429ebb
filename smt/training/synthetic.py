"""Synthetic sentence pairs with one machine-made side: back-translation and sequence-level distillation.

    corpus:
      made:
        - corpus: round-trip                # name of the pairs in `weights`
          texts: tossups                    # English tossups, or parallel: the sources of the parallel text
          makes: source                     # back-translation (Sennrich et al., ACL 2016); target = distillation
          translator: {name: causal-lm, model: lm-en-es}                          (Kim and Rush, EMNLP 2016)
          every: 4                          # every n-th text

Any translator of the required direction can be used.  Its output is cached in blocks, keyed by the translator's
fingerprint and the texts.  Other training runs reuse the cache, and a killed run resumes from it.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from tqdm import tqdm

from smt.training.clean import Pair
from sqa.core.errors import DataError
from sqa.core.paths import cache_dir
from sqa.core.registry import TRANSLATORS
from sqa.core.schema import Count, checked
from sqa.core.trace import hypotheses
from sqa.core.types import BatchTranslator, Question, Translator
from sqa.files.atomic import claimed
from sqa.files.records import parse_json
from sqa.files.store import digest
from sqa.pipeline.config import read_parts
from sqa.pipeline.engine import stream

BLOCK = 512  # texts translated and stored together


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
    """Translate each text with full input; reuse cached translations."""
    [component] = read_parts(translator=translator)
    built = TRANSLATORS.build(component.name, component.options)
    key = digest([built.fingerprint(), *texts])
    folder = cache_dir() / "made" / key[:32]
    folder.mkdir(parents=True, exist_ok=True)
    with claimed(folder):
        file = folder / "blocks.jsonl"
        done = _finished_blocks(file)
        blocks = range(len(done) * BLOCK, len(texts), BLOCK)
        for start in tqdm(blocks, desc=name, unit="block", disable=not sys.stderr.isatty()):
            block = [text.split() for text in texts[start : start + BLOCK]]
            lines = _write(built, block)
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(lines, ensure_ascii=False) + "\n")
            done.append(lines)
    return [line for block in done for line in block]


def _finished_blocks(file: Path) -> list[list[str]]:
    """Read the complete blocks of a file and remove a truncated last line from it."""
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").split("\n")
    if lines[-1]:
        file.write_text("".join(line + "\n" for line in lines[:-1]), encoding="utf-8")
    try:
        return [[str(text) for text in parse_json(line)] for line in lines[:-1]]
    except ValueError as error:
        raise DataError(f"{file}: {error}; delete {file.parent} and run again") from error


def _write(translator: Translator | BatchTranslator, texts: Sequence[Sequence[str]]) -> list[str]:
    questions = [Question(str(i), "made", "xx", (tuple(text),), (), "") for i, text in enumerate(texts)]
    if isinstance(translator, BatchTranslator):
        written = translator.translate_batch(questions)
    else:
        written = [stream(translator, question) for question in questions]
    return [" ".join(hypotheses(question, emissions)) for question, emissions in zip(questions, written, strict=True)]
