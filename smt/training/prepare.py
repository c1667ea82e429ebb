"""Preparation of one direction's training data, from data sets to packed arrays: `prepare(config, folder)`.

The data consist of the parallel corpora, names (countries, languages and currencies of Unicode CLDR, bilingual
lexicons), and synthetic pairs such as back-translated English tossups (smt/training/synthetic.py).
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from smt.models.vocab import Vocabulary, normalise
from smt.training.clean import VERSION, Pair, Report, aligned_enough, clean
from smt.training.config import CorpusConfig
from smt.training.corpus import Packed, align, lexicon, pack, save_arrays, weigh, with_links
from smt.training.synthetic import MadeConfig, made_pairs
from sqa.core import ConfigError, need
from sqa.data import texts
from sqa.data.datasets import load_questions
from sqa.files import file_digest, json_document, parse_json, write_text
from sqa.pipeline import folder_name

HELD_OUT = {
    "es-en": ("newstest2011", "newstest2012", "newstest2013", "flores-dev", "xquad-sentences", "xquad-paragraphs"),
    "pl-en": ("newstest2020", "flores-dev", "ntrex128"),
}
OWN = "own"  # default corpus name of the user's own pairs
LEXICONS = ("freedict", "cldr")  # corpora of single words or names
LEXICON_ARTEFACT = re.compile(r"^[a-z]+(the|of|in|to)[a-z]*$")


def names(language: str) -> Iterator[Pair]:
    """Yield country, language and currency names in `language` and English (Unicode CLDR through Babel)."""
    from babel import Locale

    source, english = Locale(language), Locale("en")
    for table in ("territories", "languages", "currencies"):
        source_names, english_names = getattr(source, table), getattr(english, table)
        for code in source_names:
            if code in english_names and not str(code).isdigit():
                yield source_names[code], english_names[code], "cldr"


def lexicon_pairs(pair: str) -> Iterator[Pair]:
    """Yield the freedict lexicon, except entries whose English side lacks the spaces between its words, and `names`."""
    for source, target, _ in texts.load_parallel(pair, "freedict"):
        if not LEXICON_ARTEFACT.match(target):
            yield source, target, "freedict"
    yield from names(pair[:2])


def development_pairs(config: Any) -> list[tuple[str, str]]:
    """Return the pairs on which a training run measures BLEU, from its own file or a part of the project's data.

    `config` has the keys `corpus`, `development` and `train.evaluate_sentences`.
    """
    rows = _pairs(config.corpus.development, config.corpus.pair, config.development)
    return [(source, target) for source, target, _ in islice(rows, config.train.evaluate_sentences)]


def _pairs(own: str | None, pair: str, part: str) -> Iterator[Pair]:
    """Yield parallel text from a config's own file, or from a part of the project's data."""
    return texts.load_parallel(pair, part) if own is None else texts.load_own_pairs(Path(own), pair)


def held_out(config: CorpusConfig) -> Iterator[str]:
    """Yield both sides of the project's development and test sentences and of XQB.

    For a user's own pairs, yield only their development pairs.
    """
    pair = config.pair
    if config.train is not None:
        if config.development is not None:
            yield from (side for row in _pairs(config.development, pair, "") for side in row[:2])
        return
    for part in HELD_OUT[pair]:
        for source, target, _ in texts.load_parallel(pair, part):
            yield source
            yield target
    for question in load_questions(f"xqb-{pair[:2]}"):
        yield from (" ".join(sentence) for sentence in question.sentences)
        yield from question.reference


def tossup_sentences() -> list[str]:
    """Return the English Quizbowl sentences for back-translation."""
    from sentence_splitter import SentenceSplitter

    splitter = SentenceSplitter("en")
    whole = (" ".join(tossup.text.split()) for tossup in texts.load_tossups())
    return [sentence.strip() for text in whole for sentence in splitter.split(text) if sentence.strip()]


def texts_for(entry: MadeConfig, pair: str, earlier: Mapping[str, list[Pair]]) -> list[str]:
    """Return the texts for the translator of `entry`; `earlier` holds the pairs of the preceding entries."""
    if entry.texts == "tossups":
        return tossup_sentences()
    if entry.texts == "made" and (unknown := set(entry.of) - earlier.keys()):
        raise ConfigError(f"made.of: {', '.join(sorted(unknown))} is not among the entries before {entry.corpus}")
    made = (row for rows in earlier.values() for row in rows)
    rows = texts.load_parallel(pair, "train") if entry.texts == "parallel" else made
    return [source for source, _, corpus in rows if not entry.of or corpus in entry.of]


def cleaned(config: CorpusConfig, report: Report) -> Iterator[Pair]:
    """Yield the pairs of all parallel and synthetic corpora that pass the cleaner."""
    made: dict[str, list[Pair]] = {}
    for entry in config.made:
        made[entry.corpus] = list(made_pairs(entry, texts_for(entry, config.pair, made)))
    raw = chain(_pairs(config.train, config.pair, "train"), *made.values())
    passed = clean(raw, held_out(config), config.clean, report)
    return aligned_enough(passed, config.clean.min_aligned, report)


def weighed(config: CorpusConfig) -> tuple[list[Pair], dict[str, float], Report]:
    """Return the clean pairs and the entries of the lexicons, the weight of each named corpus, and what was dropped.

    A user's own pairs have weight 1 unless the config gives another, and come without the project's lexicons.
    """
    dropped = Report()
    entries = () if config.train is not None else lexicon_pairs(config.pair)
    weights = {OWN: 1.0, **config.weights, **dict.fromkeys(LEXICONS, config.lexicon_weight)}
    return [*cleaned(config, dropped), *entries], weights, dropped


def work_folder(config: Any, runs: Path) -> Path:
    """Return the folder of a training run, which the config's `name` gives; its checkpoints and data are in it."""
    if wrong := folder_name(config.name):
        raise ConfigError(wrong)
    return runs / "smt" / config.name


def _need(config: CorpusConfig) -> None:
    modules = ["babel"] if config.train is None else []
    modules += ["eflomal"] if config.lexicon_width or config.clean.min_aligned else []
    for module in modules:
        need(module, "preparing training data")


def is_prepared(config: CorpusConfig, folder: Path) -> bool:
    """Return whether `folder` holds the training data of this config."""
    done = folder / "prepared.json"
    if not done.exists():
        return False
    written = json_document(done)
    same_config = parse_json(written["config"]) == json.loads(json.dumps(asdict(config)))
    return same_config and written["files"] == digests_of(config)


def digests_of(config: CorpusConfig) -> dict[str, str]:
    """Return the sha256 of each file of own pairs, and the cleaner's version; any change requires a new preparation."""
    files = {"train": config.train, "development": config.development}
    digests = {key: file_digest(Path(file)) for key, file in files.items() if file is not None}
    return digests | ({"cleaning": str(VERSION)} if digests else {})


def prepare(config: CorpusConfig, folder: Path, vocabulary: Vocabulary | None = None) -> None:
    """Write vocabulary.model (trained if not given), the lexicon's arrays, packed/ and clean.tsv into `folder`.

    Does nothing if `folder` already holds the data of this config.
    """
    if is_prepared(config, folder):
        return
    _need(config)
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(config.seed)
    pairs, weights, dropped = weighed(config)
    write_text(folder / "clean.tsv", dropped.table().to_tsv())
    pairs = [(normalise(s), normalise(t), c) if c in LEXICONS else (s, t, c) for s, t, c in pairs]
    mixed = weigh(pairs, lambda pair: weights.get(pair[2], config.default_weight), rng)
    lines = (line for s, t, _ in mixed for line in (s, t))
    vocabulary = vocabulary or Vocabulary.train(lines, config.vocabulary_size, kind=config.vocabulary_kind)
    (folder / "vocabulary.model").write_bytes(vocabulary.model)
    packed, ids, probabilities = _aligned(mixed, vocabulary, config)
    save_arrays(packed, folder / "packed")
    np.save(folder / "lexicon_ids.npy", ids)
    np.save(folder / "lexicon_probabilities.npy", probabilities)
    wanted = json.dumps(asdict(config), sort_keys=True)
    corpora = Counter(corpus for _, _, corpus in mixed)
    done = {"config": wanted, "corpora": corpora, "pairs": len(packed), "files": digests_of(config)}
    write_text(folder / "prepared.json", json.dumps(done, indent=1) + "\n")


def _aligned(mixed: list[Pair], vocabulary: Vocabulary, config: CorpusConfig) -> tuple[Packed, np.ndarray, np.ndarray]:
    """Return the shuffled pairs `mixed` in packed form, and the lexicon's ids and probabilities.

    The pieces of the first `aligned_sentences` pairs are aligned; without a lexicon (`lexicon_width` 0), none are.
    """
    packed = pack(mixed, vocabulary)
    if not config.lexicon_width:
        nothing = np.zeros((vocabulary.size, 0), dtype=np.int32)
        return packed, nothing, nothing.astype(np.float32)
    packed = with_links(packed, align(packed, config.aligned_sentences))
    return packed, *lexicon(packed, vocabulary.size, config.lexicon_width)
