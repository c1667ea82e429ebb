"""Training of phrase-based SMT: `sqa train smt configs/pbmt_es_en.yaml`.

    corpus     clean pairs most suitable for Quizbowl, their tokens, usual case of words
    language   n-gram counts of the English side
    alignment  FastAlign in both directions (Dyer, Chahuneau and Smith 2013)
    phrases    symmetrised links -> phrase pairs
    tuning     weights of the language model, then of the log-linear model, on development sentences
    packing    the folder `packed`: a model of a few MB and nearly the same quality, with its own weights

Each stage stores its files and a record of its inputs.  A killed training run resumes at the first missing stage.
Alignment, language model and decoding come from Thot, the engine of sil-machine[thot].
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from smt.models.vocab import normalise
from smt.statistical import phrase_table, tokens
from smt.statistical.packed import LANGUAGE, TABLE, write_small_files
from smt.statistical.stages_config import PbmtConfig
from smt.statistical.tune import tune, tune_packed
from smt.training.clean import Pair, Report
from smt.training.config import CorpusConfig
from smt.training.prepare import cleaned, lexicon_pairs, work_folder
from sqa.core import ConfigError, DataError, need
from sqa.files import claimed, digest, empty, json_document, write_text

VERSION = 1  # increase when the files of a stage change
_BATCH = 2000  # sentence pairs aligned per call


# ------------------------------------------------------------------------------------------------------- corpus


def suits(pair: Pair) -> tuple[int, str]:
    """Return a sort key that puts the pairs most suitable for Quizbowl first.

    Each of the first 30 words counts one point, and a name (capital after the first word) counts two more.
    """
    words = pair[1].split()
    return -(min(len(words), 30) + 2 * sum(word[:1].isupper() for word in words[1:])), pair[1]


def choose(pairs: Sequence[Pair], sizes: dict[str, int], max_words: int) -> list[Pair]:
    """Return the most suitable pairs: at most `sizes[corpus]` per corpus, of at most `max_words` words per side."""
    chosen: list[Pair] = []
    for corpus, n in sizes.items():
        short = [p for p in pairs if p[2] == corpus and max(len(p[0].split()), len(p[1].split())) <= max_words]
        chosen += sorted(short, key=suits)[:n]
    return chosen


def make_corpus(config: PbmtConfig, folder: Path) -> None:
    """Write train.source, train.target, language.txt and forms.json (the usual case of words, per side)."""
    part = config.corpus
    whole = CorpusConfig(part.pair, made=part.made, clean=part.clean)
    pairs = [pair for pair in cleaned(whole, Report()) if pair[2] in part.pairs]
    missing = [corpus for corpus in part.pairs if corpus not in {pair[2] for pair in pairs}]
    if missing:
        raise ConfigError(f"corpus.pairs: no clean pairs in {', '.join(missing)}; check the names of the corpora")
    chosen = choose(pairs, part.pairs, part.max_words)
    entries = [(normalise(s), normalise(t), c) for s, t, c in lexicon_pairs(part.pair)]
    english = sorted({pair[1] for pair in pairs})
    forms = write_corpus(folder, chosen, entries, english)
    write_text(folder / "forms.json", json.dumps(forms, ensure_ascii=False))


def write_corpus(
    folder: Path, pairs: Sequence[Sequence[str]], entries: Sequence[Sequence[str]], english: Sequence[str]
) -> list[dict[str, str]]:
    """Write train.source, train.target and language.txt; return the usual case of words, per side.

    The training files end with `entries`, such as names.
    """
    sides = ([pair[0] for pair in pairs], english)
    forms = [tokens.usual_forms(tokens.count_forms(map(tokens.tokenise, lines))) for lines in sides]
    for side, name in enumerate(("train.source", "train.target")):
        lines = [tokens.truecase(tokens.tokenise(pair[side]), forms[side]) for pair in pairs]
        phrase_table.write_tokens(folder / name, [*lines, *(tokens.tokenise(entry[side]) for entry in entries)])
    cased = (tokens.truecase(tokens.tokenise(line), forms[1]) for line in english)
    phrase_table.write_tokens(folder / "language.txt", cased)
    return forms


# ------------------------------------------------------------------------------------- language model, phrases


def make_language(config: PbmtConfig, folder: Path) -> None:
    """Write the n-gram counts, with equal weights until the tuning."""
    c, sentences = config.language, phrase_table.read_tokens(folder / "language.txt")
    phrase_table.write_ngrams(sentences, c.order, c.once, folder / "model" / LANGUAGE)
    (folder / "model" / f"{LANGUAGE}.wp").write_text("")
    phrase_table.write_language_weights(folder / "model" / LANGUAGE, c.order, [0.5] * (3 * c.order))


def make_alignment(config: PbmtConfig, folder: Path) -> None:
    """Run FastAlign from source to target (table_invswm: target given source, in Thot's naming) and the reverse."""
    from thot.alignment import FastAlignModel

    sides = [phrase_table.read_tokens(folder / name) for name in ("train.source", "train.target")]
    for name, source, target in (("invswm", *sides), ("swm", *reversed(sides))):
        model = FastAlignModel()
        model.variational_bayes = True
        for x, y in zip(source, target, strict=True):
            model.add_sentence_pair(x, y, 1)
        model.start_training()
        for _ in range(config.phrases.iterations):
            model.train()
        model.end_training()
        prefix = folder / "model" / f"{TABLE}_{name}"
        model.print(str(prefix))
        model.clear()
        phrase_table.prune_lexicon(prefix.with_suffix(".fa_lexnd"), config.phrases.least)
        for ending in (".src", ".trg", ".srctrgc"):  # copies of the text that the decoder requires but does not read
            prefix.with_suffix(ending).write_text("")


def make_phrases(config: PbmtConfig, folder: Path) -> None:
    """Write the phrase table, and the small files that Thot also requires."""
    c = config.phrases
    sides = [phrase_table.read_tokens(folder / name) for name in ("train.source", "train.target")]
    counts = phrase_table.PhraseCounts(c.longest)
    for x, y, links in zip(*sides, aligned(folder, *sides), strict=True):
        counts.add(x, y, links)
    phrase_table.write_rows(counts.rows(c.best, c.once), folder / "model" / f"{TABLE}.ttable")
    write_small_files(folder / "model")


def aligned(folder: Path, source: Sequence[Sequence[str]], target: Sequence[Sequence[str]]) -> Iterator[np.ndarray]:
    """Yield the symmetrised links (|x|, |y|) bool of each pair, by grow-diag-final-and."""
    from thot.alignment import FastAlignModel, SymmetrizationHeuristic, SymmetrizedAligner

    models = []
    for name in ("invswm", "swm"):
        model = FastAlignModel()
        if not model.load(str(folder / "model" / f"{TABLE}_{name}")):
            raise DataError(f"{folder}/model/{TABLE}_{name}: the aligner cannot read it; train again with --fresh")
        models.append(model)
    aligner = SymmetrizedAligner(*models)
    aligner.heuristic = SymmetrizationHeuristic.GROW_DIAG_FINAL_AND
    for i in range(0, len(source), _BATCH):
        for _, matrix in aligner.get_best_alignments(source[i : i + _BATCH], target[i : i + _BATCH]):
            yield np.asarray(matrix.to_numpy(), dtype=bool)
    for model in models:
        model.clear()


# ------------------------------------------------------------------------------------------------------ training

STAGES: tuple[tuple[str, Callable[[PbmtConfig, Path], None], tuple[str, ...]], ...] = (
    # (name, function, parts of the config on which the stage depends in addition to those of earlier stages)
    ("corpus", make_corpus, ("corpus",)),
    ("language", make_language, ("language",)),
    ("alignment", make_alignment, ("phrases",)),
    ("phrases", make_phrases, ()),
    ("tuning", tune, ("tuning", "decoding")),
    ("packing", tune_packed, ("packing",)),
)


def train(config: PbmtConfig, runs: Path, fresh: bool = False) -> Path:
    """Run the missing stages, and return the folder of the finished model."""
    need("thot", "phrase-based translation")
    folder = work_folder(config, runs)
    with claimed(folder):
        if fresh:
            empty(folder)
        (folder / "model").mkdir(exist_ok=True)
        _run_stages(config, folder)
    return folder / "model"


def _run_stages(config: PbmtConfig, folder: Path) -> None:
    whole, key = asdict(config), str(VERSION)
    for name, stage, parts in STAGES:
        key = digest([key, *(whole[part] for part in parts)])
        note = folder / f"{name}.done.json"
        if note.exists() and json_document(note)["key"] == key:
            continue
        note.unlink(missing_ok=True)
        began = time.monotonic()
        stage(config, folder)
        write_text(note, json.dumps({"key": key}) + "\n")
        print(f"sqa: {name}: {time.monotonic() - began:.1f} s", file=sys.stderr)
