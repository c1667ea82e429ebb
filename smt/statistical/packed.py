"""Files of phrase-based models: the decoder's folder with its config.json, and packed models of a few MB.

A packed model consists of config.json, phrases.tsv.zst and language.tsv.zst.

`sqa train smt configs/pbmt_es_en.yaml` writes one in addition to the whole model; `translator: {name: pbmt, model:
pbmt-es-en}` reads a bundled one.  Three measures make a packed model small:

- Redundant phrases are dropped: rare ones, improbable ones, and those composed of two shorter ones
  (relative and compositional pruning, in the spirit of Johnson et al., EMNLP 2007).
- The word translations that smooth the phrases are the table's own one-to-one rows.
- Counts that follow from other counts (of histories, of the usual case of words) are not written.

The decoder (Thot) reads plain files, so a packed model is unpacked into the user's cache at its first use.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

from smt.statistical import tokens
from smt.statistical.phrase_table import LEXICON, history_counts, write_language_weights, write_rows
from sqa.core import BelowOne, ConfigError, Count, DataError, Whole, cache_dir, checked
from sqa.files import atomic_folder, file_digest, joined_digest, lines, locked, parse_json, write_text

FORMAT = 1
TABLE, LANGUAGE = "table", "language"  # prefixes of the decoder's file names
WEIGHTS = 8  # number of weights of the log-linear model


@dataclass(frozen=True, slots=True)
@checked
class Decoding:
    """Search settings of the decoder."""

    stack: Annotated[Count, "number of hypotheses for each set of translated words"] = 10
    options: Annotated[Count, "longest source phrase, in words"] = 10
    reorder: Annotated[Whole, "maximum jump in source words; 0 = monotone except inside phrases"] = 0


def write_model(
    folder: Path, weights: Sequence[float], decoding: Decoding, forms: Mapping[str, str], about: Mapping[str, Any]
) -> None:
    """Write the config.json of a model whose other files are in `folder`; `about` is documentation."""
    paths = sorted(path for name in (TABLE, LANGUAGE) for path in folder.glob(f"{name}*"))
    files = {path.name: file_digest(path) for path in paths}
    config = {"format": FORMAT, "weights": list(weights), "decoding": asdict(decoding), "files": files}
    text = json.dumps({**config, "about": about, "forms": forms}, indent=1, ensure_ascii=False)
    write_text(folder / "config.json", text + "\n")


def read_model(folder: Path) -> dict[str, Any]:
    """Return config.json of a model's folder after checking its keys and the digest of every file it names.

    The decoder crashes on damaged tables, so the files are verified first.
    """
    path = folder / "config.json"
    try:
        config = parse_json(path.read_bytes())
        if config["format"] != FORMAT or len(config["weights"]) != WEIGHTS:
            got = f"format {config['format']} with {len(config['weights'])}"
            raise DataError(f"{path}: expected format {FORMAT} with {WEIGHTS} weights, got {got}")
        Decoding(**config["decoding"])
        files, _ = dict(config["files"]), dict(config["forms"])
    except FileNotFoundError as error:
        raise ConfigError(f"model: {folder} has no config.json; bundled are pbmt-es-en and pbmt-pl-en") from error
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: not a phrase-based model's configuration ({error!r})") from error
    for name, digest_ in files.items():
        if Path(name).name != name or not (folder / name).is_file():
            raise DataError(f"{folder / name}: not found; copy or train the model again")
        if file_digest(folder / name) != digest_:
            raise DataError(f"{folder / name}: differs from the trained file; copy the model's folder again")
    return config


VERSION = 1  # increase when the unpacked decoder files change
CONFIG, PHRASES, NGRAMS = "config.json", "phrases.tsv.zst", "language.tsv.zst"
LONGEST, MOST = 9, (1 << 31) - 1  # maximum number of words of an n-gram; maximum count
_LEVEL = 19  # compression level of zstd
_SPECIAL = ("NULL", "UNKNOWN_WORD", "<UNUSED_WORD>")  # words 0, 1, 2 of the aligner's vocabularies
_DIRECTIONS = {"invswm": 0, "swm": 1}  # direction of word translations -> the conditioning side
_ALIGNER = "model: fastAlign\nvariationalBayes: true\nalpha: 0.01\nemitTrainingAlignments: false\nfastAlignP0: 0.08\n"


@dataclass(frozen=True, slots=True)
@checked
class PackingConfig:
    """Thresholds of the phrases and n-grams that a packed model keeps."""

    longest: Annotated[Count, "maximum number of tokens of a phrase's source"] = 4
    best: Annotated[Count, "maximum target phrases per source phrase"] = 4
    least: Annotated[BelowOne, "minimum probability of a target phrase given its source"] = 0.02
    composed: Annotated[Whole, "count below which a source is dropped if two parts give its best translation"] = 10
    ngrams: Annotated[Count, "minimum count of an n-gram of two or more words"] = 3


class Phrase(NamedTuple):
    """One row of a phrase table."""

    source: str
    target: str
    both: int  # count of this source with this target
    total: int  # count of the target


# ------------------------------------------------------------------------------------------------------- packing


def phrases_of(table: Path, config: PackingConfig) -> list[Phrase]:
    """Return the kept phrases of a decoder's table, sorted by source, most frequent target first."""
    with table.open(encoding="utf-8") as file:
        kept = [
            phrase
            for source, rows in groupby(map(_row, file), key=lambda row: row.source)
            if source.count(" ") < config.longest
            for phrase in _likely(list(rows), config)
        ]
    kept.sort(key=lambda row: (row.source, -row.both, row.target))
    best = {source: next(rows) for source, rows in groupby(kept, key=lambda row: row.source)}
    return [row for row in kept if best[row.source].both >= config.composed or not _composed(best, row.source)]


def _row(line: str) -> Phrase:
    target, source, counts = line.rstrip("\n").split(" ||| ")
    total, both = (int(float(count)) for count in counts.split())
    return Phrase(source, target, both, max(total, both))


def _likely(rows: Sequence[Phrase], config: PackingConfig) -> list[Phrase]:
    """Keep the likely rows of one source; a source of several tokens must occur at least twice with the target."""
    least = config.least * sum(row.both for row in rows)
    ranked = sorted(rows, key=lambda row: (-row.both, row.target))[: config.best]
    return [row for row in ranked if row.both >= least and (row.both > 1 or " " not in row.source)]


def _composed(best: Mapping[str, Phrase], source: str) -> bool:
    """Return whether the best targets of two parts of `source` together form the best target of `source`."""
    words = source.split(" ")
    for cut in range(1, len(words)):
        first, second = best.get(" ".join(words[:cut])), best.get(" ".join(words[cut:]))
        if first and second and f"{first.target} {second.target}" == best[source].target:
            return True
    return False


def pack(model: Path, folder: Path, config: PackingConfig) -> None:
    """Write the packed form of a decoder's folder, with its current weights."""
    folder.mkdir(parents=True, exist_ok=True)
    write_zst(folder / PHRASES, _phrase_lines(phrases_of(model / f"{TABLE}.ttable", config)))
    write_zst(folder / NGRAMS, _ngram_lines(model / LANGUAGE, config.ngrams))
    whole = parse_json((model / CONFIG).read_bytes())
    order, _, _, *weights = (model / f"{LANGUAGE}.weights").read_text(encoding="utf-8").split()
    settings = {
        "format": VERSION,
        "weights": whole["weights"],
        "decoding": whole["decoding"],
        "language": {"order": int(order), "weights": [float(weight) for weight in weights]},
        "aligner": {name: (model / f"{TABLE}_{name}.params").read_text(encoding="utf-8") for name in _DIRECTIONS},
        "about": {**whole["about"], "packing": asdict(config)},
    }
    write_text(folder / CONFIG, json.dumps(settings, indent=1, ensure_ascii=False) + "\n")


def set_weights(folder: Path, weights: Sequence[float], rounds: Sequence[Mapping[str, Any]]) -> None:
    """Replace the log-linear weights of a packed model; `rounds` documents the tuning."""
    config = parse_json((folder / CONFIG).read_bytes())
    config["weights"], config["about"]["tuning"] = list(weights), list(rounds)
    write_text(folder / CONFIG, json.dumps(config, indent=1, ensure_ascii=False) + "\n")


def _phrase_lines(phrases: Sequence[Phrase]) -> Iterator[str]:
    """Yield lines of source, target, both, total; the source is empty if it equals that of the previous line."""
    previous = None
    for row in phrases:
        yield f"{'' if row.source == previous else row.source}\t{row.target}\t{row.both}\t{row.total}"
        previous = row.source


def _ngram_lines(path: Path, least: int) -> Iterator[str]:
    """Yield lines of n-gram and count; the counts of histories are those of shorter n-grams."""
    for gram, _, count in (line.rsplit(" ", 2) for line in lines(path)):
        if " " not in gram or int(count) >= least:
            yield f"{gram}\t{count}"


def write_zst(path: Path, rows: Iterator[str]) -> None:
    """Write lines of text, compressed with zstd."""
    import zstandard

    data = "".join(f"{row}\n" for row in rows).encode()
    path.write_bytes(zstandard.ZstdCompressor(level=_LEVEL, threads=0).compress(data))


# ----------------------------------------------------------------------------------------------------- unpacking


def is_packed(folder: Path) -> bool:
    """Return whether a folder holds a packed model."""
    return (folder / PHRASES).is_file()


def unpacked(folder: Path) -> Path:
    """Return the decoder's folder of a packed model in the user's cache, unpacked at the first use."""
    digest = joined_digest(folder / name for name in (CONFIG, PHRASES, NGRAMS))
    whole = cache_dir() / "pbmt" / f"{digest[:32]}-{VERSION}"
    with locked(whole.parent):  # a second process waits for the first to unpack
        if not (whole / CONFIG).is_file():
            with atomic_folder(whole) as partial:
                unpack(folder, partial)
    return whole


def unpack(folder: Path, whole: Path) -> None:
    """Write the decoder's files.  Raises DataError if the packed model is damaged."""
    try:
        config = parse_json((folder / CONFIG).read_bytes())
        if config["format"] != VERSION:
            raise DataError(f"{folder / CONFIG}: format {config['format']}, not {VERSION}")
        order, weights = int(config["language"]["order"]), [float(w) for w in config["language"]["weights"]]
        aligner = {name: str(config["aligner"][name]) for name in _DIRECTIONS}
        decoding = Decoding(**config["decoding"])
        log_linear, about = [float(weight) for weight in config["weights"]], dict(config["about"])
        if not 1 <= order <= LONGEST or (len(weights), len(log_linear)) != (3 * order, WEIGHTS):
            raise ValueError(
                f"order {order} with {len(weights)} weights, and {len(log_linear)} of the log-linear model"
            )
        if any(len([float(number) for number in text.split()]) != 2 for text in aligner.values()):
            raise ValueError("aligner: expected two numbers for each direction")
    except (ConfigError, OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise DataError(f"{folder / CONFIG}: not a packed model's configuration ({error!r})") from error
    phrases = list(read_phrases(folder / PHRASES))
    write_rows(((row.target, row.source, row.total, row.both) for row in phrases), whole / f"{TABLE}.ttable")
    write_small_files(whole)
    _write_words(phrases, aligner, whole)
    _write_ngrams(folder / NGRAMS, whole / LANGUAGE)
    (whole / f"{LANGUAGE}.wp").write_text("")
    write_language_weights(whole / LANGUAGE, order, weights)
    write_model(whole, log_linear, decoding, usual_forms(phrases), about)


def read_phrases(path: Path) -> Iterator[Phrase]:
    """Yield the rows of a packed table.  Raises DataError if the table is damaged."""
    source = ""
    for number, line in enumerate(lines(path), 1):
        try:
            written, target, both, total = line.split("\t")
            source = written or source
            phrase = Phrase(source, target, int(both), int(total))
            if not (_spelt(source) and _spelt(target) and 1 <= phrase.both <= phrase.total <= MOST):
                raise ValueError
        except ValueError as error:
            expected = f"source, target and two counts of 1 to {MOST}, the second not smaller, with tabs between"
            raise DataError(f"{path}:{number}: expected {expected}") from error
        yield phrase


def _spelt(text: str) -> bool:
    """Return whether a text consists of tokens separated by single spaces, as the decoder's files require."""
    return text.split(" ") == text.split() and "|||" not in text and "\0" not in text


def usual_forms(phrases: Sequence[Phrase]) -> dict[str, str]:
    """Return the usual case of each source word, by its counts as a single-word phrase in the table."""
    counts: Counter[str] = Counter()
    for row in phrases:
        if tokens.has_letter(row.source) and " " not in row.source:
            counts[row.source] += row.both
    return tokens.usual_forms(counts)


def write_small_files(folder: Path) -> None:
    """Write the settings files that the decoder requires in addition to a phrase table."""
    texts = {"lambda": "0.7 0.7", "srcsegmlentable": "Uniform", "trgcutstable": "0.999", "trgsegmlentable": "Geometric"}
    for name, text in texts.items():
        write_text(folder / f"{TABLE}.{name}", text)


def _write_words(phrases: Sequence[Phrase], aligner: Mapping[str, str], folder: Path) -> None:
    """Write vocabularies and word translations in both directions, from the one-to-one rows."""
    sides = ([row.source for row in phrases], [row.target for row in phrases])
    words = (sorted({word for text in side for word in text.split(" ")}) for side in sides)
    numbers = [{word: i for i, word in enumerate((*_SPECIAL, *vocabulary))} for vocabulary in words]
    single = [((row.source, row.target), row.both) for row in phrases if " " not in row.source + row.target]
    for name, given in _DIRECTIONS.items():
        rows = [(pair[given], pair[1 - given], both) for pair, both in single]
        totals: Counter[str] = Counter()
        for word, _, both in rows:
            totals[word] += both
        table = [(numbers[given][a], numbers[1 - given][b], np.log(both), np.log(totals[a])) for a, b, both in rows]
        np.array(sorted(table), dtype=LEXICON).tofile(folder / f"{TABLE}_{name}.fa_lexnd")
        files = dict.fromkeys(("anji", "size_counts", "src", "trg", "srctrgc", "src_classes", "trg_classes"), "")
        files |= dict.fromkeys(("src_class_names", "trg_class_names"), "NULL\t0")
        files |= {"params": aligner[name], "yml": _ALIGNER}
        for ending, side in (("svcb", given), ("tvcb", 1 - given)):
            files[ending] = "".join(f"{number} {word}\n" for word, number in numbers[side].items())
        for ending, text in files.items():
            (folder / f"{TABLE}_{name}.{ending}").write_text(text, encoding="utf-8")


def _write_ngrams(path: Path, out: Path) -> None:
    """Write the decoder's language model: one line per n-gram with the count of its history and its own count."""
    counts: dict[str, int] = {}
    for number, line in enumerate(lines(path), 1):
        try:
            gram, count = line.split("\t")
            counts[gram] = int(count)
            if not _spelt(gram) or not 1 <= counts[gram] <= MOST:
                raise ValueError
        except ValueError as error:
            expected = f"an n-gram and its count of 1 to {MOST} with a tab between"
            raise DataError(f"{path}:{number}: expected {expected}") from error
    try:
        with out.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{gram} {history} {counts[gram]}\n" for gram, history in history_counts(counts))
    except KeyError as error:
        raise DataError(f"{path}: has no count of {error}, which begins another n-gram") from error
