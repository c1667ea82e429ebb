"""Phrase-based SMT (the paper's Moses row) with Thot, the engine of sil-machine[thot].

    translator: {name: pbmt, model: runs/smt/pbmt-es-en/model}
    translator: {name: pbmt, model: runs/smt/pbmt-es-en/model, policy: local-agreement, n: 2}

`sqa train smt configs/pbmt_es_en.yaml` makes the model (smt/statistical/train.py).  It reads whole texts; without a
policy every word is written once the sentence is over.  A word it never saw is copied.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from smt.policies.chosen import PolicyConfig, policy_of
from smt.policies.prefixes import PolicyTranslator, Remembered
from smt.statistical import tokens
from sqa.core.errors import ConfigError, DataError, need
from sqa.data.languages import pair_of
from sqa.files.atomic import file_digest
from sqa.files.json_reader import parse_json
from sqa.files.store import digest, write_text

VERSION = 1  # raise when the words that come from the same model change
FORMAT = 1
TABLE, LANGUAGE = "table", "language"  # beginnings of the names of the decoder's files
WEIGHTS = 8  # of the log-linear model
LONGEST = 150  # tokens decoded at once; a longer text is translated in pieces of so many


@dataclass(frozen=True, slots=True)
class Decoding:
    """How the decoder searches."""

    stack: int = 10  # hypotheses kept for each set of translated words
    options: int = 10  # target phrases considered per source phrase
    reorder: int = 0  # source words that may be jumped over; 0 = monotone but for what is inside a phrase

    def __post_init__(self) -> None:
        wrong = [
            f"{key}: must be >= 1, got {getattr(self, key)}" for key in ("stack", "options") if getattr(self, key) < 1
        ]
        if self.reorder < 0:
            wrong.append(f"reorder: must be >= 0, got {self.reorder}")
        if wrong:
            raise ConfigError(wrong)


@dataclass(frozen=True, slots=True)
class StatisticalConfig:
    """Which model, and when its words are written."""

    model: str  # the folder of a trained model
    policy: PolicyConfig = "wait-k"  # when to write what: see smt/policies/prefixes.py
    k: int | str = "full"  # wait-k: source WORDS read before the first target word, or "full" = the whole sentence
    n: int | None = None  # local-agreement: translations that must agree (2); hold, retranslate: words held back

    def __post_init__(self) -> None:
        policy_of(self)


class Engine:
    """The decoder over the files of one folder."""

    def __init__(self, folder: Path, weights: Sequence[float], decoding: Decoding) -> None:
        need("thot", "phrase-based translation")
        from thot.alignment import AlignmentModelType
        from thot.translation import SmtDecoder, SmtModel

        self.model = SmtModel(AlignmentModelType.FAST_ALIGN)
        if not self.model.load_translation_model(str(folder / TABLE)):
            raise DataError(f"{folder}: the decoder cannot read the phrase table")
        if not self.model.load_language_model(str(folder / LANGUAGE)):
            raise DataError(f"{folder}: the decoder cannot read the language model")
        self.model.non_monotonicity = decoding.reorder
        self.model.w, self.model.a, self.model.e = 0.4, decoding.options, 2
        self.model.heuristic = 6  # the cost still to come: best phrases, language model, distance
        self.model.weights = list(weights)
        self.decoder = SmtDecoder(self.model)
        self.decoder.s, self.decoder.is_breadth_first = decoding.stack, True

    def translate(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Target tokens of each sentence of source tokens."""
        parts = [[s[i : i + LONGEST] for i in range(0, len(s), LONGEST)] for s in sentences]
        found = iter(self.decoder.translate_batch([" ".join(part) for some in parts for part in some]))
        return [[token for _ in some for token in next(found).target] for some in parts]

    def close(self) -> None:
        """Free the tables."""
        self.decoder.clear()
        self.model.clear()

    def candidates(self, sentences: Sequence[Sequence[str]], n: int) -> list[list[tuple[list[str], list[float]]]]:
        """At most `n` (target tokens, components of the score) of each sentence, the best first."""
        found = self.decoder.translate_n_batch([" ".join(sentence[:LONGEST]) for sentence in sentences], n)
        return [[(list(one.target), list(one.score_components)) for one in some] for some in found]


def finish(target: Sequence[str], source: str) -> tuple[str, ...]:
    """White-space words of target tokens; the first is capitalised where the source text begins so."""
    words = tokens.words(target)
    return tokens.capitalise(words) if tokens.begins_with_capital(source) else words


class Statistical:
    """A trained model as a full-input system."""

    def __init__(self, folder: Path) -> None:
        config = read_model(folder)
        self.languages = pair_of(config.get("about"))
        self.forms: Mapping[str, str] = config["forms"]
        self.engine = Engine(folder, config["weights"], Decoding(**config["decoding"]))
        self._fingerprint = digest(
            [VERSION, tokens.VERSION, config["files"], config["weights"], config["decoding"], config["forms"]]
        )

    def words(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Target words of each text; a blank text gives ()."""
        split = [tokens.truecase(tokens.tokenise(text), self.forms) for text in texts]
        return [finish(target, text) for target, text in zip(self.engine.translate(split), texts, strict=True)]

    def fingerprint(self) -> str:
        """Hash of the model's files, the weights and the search."""
        return self._fingerprint


def write_model(
    folder: Path, weights: Sequence[float], decoding: Decoding, forms: Mapping[str, str], about: Mapping[str, Any]
) -> None:
    """Write config.json, which makes the decoder's files in `folder` a model; `about` is for the reader."""
    files = {path.name: file_digest(path) for path in decoder_files(folder)}
    config = {"format": FORMAT, "weights": list(weights), "decoding": asdict(decoding), "files": files}
    text = json.dumps({**config, "about": about, "forms": forms}, indent=1, ensure_ascii=False)
    write_text(folder / "config.json", text + "\n")


def decoder_files(folder: Path) -> list[Path]:
    """The files that the decoder reads, sorted by name."""
    return sorted(path for name in (TABLE, LANGUAGE) for path in folder.glob(f"{name}*"))


def read_model(folder: Path) -> dict[str, Any]:
    """config.json of a model's folder, checked: its keys, and that every file it names is there as it was written.

    The decoder is not robust against damaged tables, so their bytes are compared first.
    """
    path = folder / "config.json"
    try:
        config = parse_json(path.read_bytes())
        if config["format"] != FORMAT or len(config["weights"]) != WEIGHTS:
            raise DataError(f"{path}: format {config['format']} with {len(config['weights'])} weights, not {FORMAT}")
        Decoding(**config["decoding"])
        files, _ = dict(config["files"]), dict(config["forms"])
    except FileNotFoundError as error:
        raise ConfigError(
            f"model: {folder} has no config.json; `sqa train smt configs/pbmt_es_en.yaml` makes one"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: not a phrase-based model's configuration ({error!r})") from error
    for name, digest_ in files.items():
        if Path(name).name != name or not (folder / name).is_file():
            raise DataError(f"{folder / name}: not found; copy the model's folder again, or train it again")
        if file_digest(folder / name) != digest_:
            raise DataError(f"{folder / name}: not the file that was trained; copy the model's folder again")
    return config


@lru_cache(maxsize=2)
def system(folder: Path) -> Remembered:
    """One decoder per model, so that runs with different policies share its tables."""
    return Remembered(Statistical(folder))


def build(config: StatisticalConfig) -> PolicyTranslator:
    """The translator of a config."""
    need("thot", "translator 'pbmt'")
    return PolicyTranslator(system(Path(config.model).expanduser().resolve()), policy_of(config))
