"""Phrase-based SMT (the paper's Moses row) with Thot, the engine of sil-machine[thot].

    translator: {name: pbmt, model: pbmt-es-en, k: 6}
    translator: {name: pbmt, model: runs/smt/pbmt-es-en/model, policy: local-agreement, n: 2}

`sqa train smt configs/pbmt_es_en.yaml` trains a model (smt/statistical/stages.py).  The model translates whole texts.
Without a policy, all words are written at the end of the sentence.  Unknown words are copied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from smt.policies.prefixes import PolicyConfig, PolicyK, PolicyN, PolicyTranslator, policy_of, simultaneous
from smt.statistical import tokens
from smt.statistical.packed import LANGUAGE, TABLE, Decoding, is_packed, read_model, unpacked
from smt.statistical.phrase_table import longest_source
from sqa.core import DATA, DataError, File, need, pair_of
from sqa.files import digest

VERSION = 1  # increase when the output of a model changes
LONGEST = 150  # maximum number of tokens decoded at once; longer texts are split


@dataclass(frozen=True, slots=True)
class StatisticalConfig:
    """The model, and the policy that decides when its words are written."""

    model: Annotated[File, "a bundled model (pbmt-es-en, pbmt-pl-en) or the folder of a trained one, whole or packed"]
    policy: Annotated[PolicyConfig, "policy, see smt/policies/prefixes.py"] = "wait-k"
    k: PolicyK = "full"
    n: PolicyN = None

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
        longest = min(decoding.options, longest_source(folder / f"{TABLE}.ttable"))  # the table's longest phrase
        self.model.w, self.model.a, self.model.e = 0.4, longest, 2
        # Future-cost heuristic (6: best phrases, language model, distance).  Without reordering, it would be the same
        # for all compared hypotheses, so it is not computed.
        self.model.heuristic = 6 if decoding.reorder else 0
        self.model.weights = list(weights)
        self.decoder = SmtDecoder(self.model)
        self.decoder.s, self.decoder.is_breadth_first = decoding.stack, True

    def translate(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the target tokens of each sentence of source tokens."""
        parts = [[s[i : i + LONGEST] for i in range(0, len(s), LONGEST)] for s in sentences]
        results = iter(self.decoder.translate_batch([" ".join(part) for sentence in parts for part in sentence]))
        return [[token for _ in sentence for token in next(results).target] for sentence in parts]

    def close(self) -> None:
        """Free the tables."""
        self.decoder.clear()
        self.model.clear()

    def candidates(self, sentences: Sequence[Sequence[str]], n: int) -> list[list[tuple[list[str], list[float]]]]:
        """Return an n-best list for each sentence: at most `n` (target tokens, components of the score), best first."""
        n_best = self.decoder.translate_n_batch([" ".join(sentence[:LONGEST]) for sentence in sentences], n)
        return [[(list(row.target), list(row.score_components)) for row in rows] for rows in n_best]


def finish(target: Sequence[str], source: str) -> tuple[str, ...]:
    """Return the words that target tokens form, capitalised if the source text begins with a capital."""
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
        """Return the target words of each text, which are () for a blank text."""
        split = [tokens.truecase(tokens.tokenise(text), self.forms) for text in texts]
        return [finish(target, text) for target, text in zip(self.engine.translate(split), texts, strict=True)]

    def fingerprint(self) -> str:
        """Return a hash of the model's files, the weights and the search settings."""
        return self._fingerprint


def build(config: StatisticalConfig) -> PolicyTranslator:
    """Return the translator of a config."""
    need("thot", "translator 'pbmt'")
    return simultaneous(load, config)


def load(config: StatisticalConfig) -> Statistical:
    """Return the full-input system of a config."""
    bundled = DATA / "models" / config.model
    folder = bundled if is_packed(bundled) else Path(config.model).expanduser().resolve()
    return Statistical(unpacked(folder) if is_packed(folder) else folder)
