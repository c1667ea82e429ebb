"""A causal language model with an adapter as a translator.

    translator: {name: causal-lm, model: lm-es-en, k: 6}                      continues its own translation, at any k
    translator: {name: causal-lm, model: lm-es-en, policy: local-agreement}   the same, prefixes retranslated

The adapter is bundled, or a folder written by `sqa train smt`.  A language model without an adapter is prompted
(smt/engines/llm.py).
"""

from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from smt.lm.base import base_folder, load_base, load_fingerprint
from smt.lm.tokenizer import Layout
from smt.models.waitk_translator import HYPOTHESES, SEARCH, WaitKTranslator
from smt.policies.prefixes import PolicyConfig, PolicyK, PolicyN, PolicyTranslator, Remembered, policy_of
from smt.policies.waitk import FULL, Schedule
from smt.statistical import lexicon as lexicons
from smt.statistical.lexicon import GLOSSES_VERSION, Lexicon, load_glosses
from sqa.core import DATA, ConfigError, File, certain_pair, did_you_mean, parse_k
from sqa.files import Arithmetic, Device, Dtype, Place, digest, place

if TYPE_CHECKING:
    from smt.lm.lm_stepper import LmWriter

VERSION = 2  # increase when decoding changes its output


@dataclass(frozen=True, slots=True)
class CausalLmConfig:
    """The model, its policy and its arithmetic."""

    model: Annotated[File, "an adapter: a bundled one, or the folder of a trained one"]
    base: Annotated[File | None, "its language model, if its name differs from the one used in training"] = None
    policy: Annotated[PolicyConfig, "policy, see smt/policies/prefixes.py"] = "wait-k"
    k: PolicyK = "full"
    emission_rate: Annotated[float, "wait-k: target words per source word, 0.5 to 2"] = 1.0
    n: PolicyN = None
    bidirectional: Annotated[bool, "whether the source attends in both directions, for full input only"] = False
    lexicon: Annotated[File | None, "phrase-based model used as lexicon, see smt/statistical/lexicon.py"] = None
    lexicon_bonus: Annotated[float, "nats"] = lexicons.BONUS
    device: Annotated[Device, "auto = a GPU if there is one"] = "cpu"
    dtype: Annotated[Dtype, "auto = bfloat16 if the device supports it, else float32"] = "auto"
    revision: Annotated[str | None, "branch, tag or commit of a hub model; required for a download"] = None
    download: Annotated[bool, "download a hub model that is not in the local cache"] = False
    ARITHMETIC: ClassVar = Arithmetic(auto=("bfloat16", "float32"))
    SEPARATE_K: ClassVar = True  # translators with different k share no work

    def __post_init__(self) -> None:
        policy_of(self)
        lexicons.check(self.lexicon_bonus)
        Schedule(FULL, self.emission_rate)
        if self.emission_rate != 1.0 and self.policy != "wait-k":
            raise ConfigError(f"emission_rate: only for policy wait-k, got {self.policy!r}")
        if self.bidirectional and self.policy == "wait-k" and parse_k(self.k) != FULL:
            raise ConfigError(f"bidirectional: needs the whole sentence first, so k must be full, got {self.k}")


@dataclass(frozen=True, slots=True)
class Model:
    """A language model with its adapter and its lexicon, for any policy."""

    folder: Path  # folder of the language model
    adapter: Path
    files: tuple[str, str]  # sha256 of the files of the language model and of the adapter
    languages: tuple[str, str]
    where: Place
    bidirectional: bool
    glosses: bool  # whether rare source words had glosses in training
    lexicon: Path | None
    bonus: float

    def key(self) -> list[Any]:
        """Return everything that the words depend on, except the policy."""
        kept = [self.files, self.languages, self.where.dtype, self.bidirectional, HYPOTHESES, *self.where.key]
        lexicon = [lexicons.fingerprint(self.lexicon, self.bonus)] if self.lexicon else []
        return [VERSION, SEARCH, GLOSSES_VERSION, *kept, *lexicon]

    def translator(self, schedule: Schedule, fingerprint: str) -> WaitKTranslator:
        """Return a translator of this model, which is loaded for the first text."""
        return WaitKTranslator(partial(writer, self), schedule, fingerprint, certain_pair(*self.languages))


def resolve(config: CausalLmConfig) -> Model:
    """Find the files of a config and select the arithmetic.

    Raises ConfigError or DataError if a file is missing or invalid.
    """
    from smt.lm.adapter import PEFT, adapter_digest, load_adapter

    bundled = DATA / "models" / config.model
    folder = bundled if (bundled / PEFT).is_file() else Path(config.model).expanduser()
    where = place(config)
    if not (folder / PEFT).is_file():
        prompted = f"to prompt a language model use {{name: llm, local: {{base: {config.model}}}}}"
        near = did_you_mean(config.model, [path.parent.name for path in (DATA / "models").glob(f"*/{PEFT}")])
        raise ConfigError(f"model: {config.model} is not an adapter{near}; {prompted}")
    about = load_adapter(folder).config
    base = base_folder(config.base or about["base"]["name"], config.download, config.revision)
    if config.bidirectional and not about.get("bidirectional", False):
        raise ConfigError(f"bidirectional: {config.model} was not trained for it (train.bidirectional_share)")
    files, languages = (load_fingerprint(base), adapter_digest(folder)), (about["source"], about["target"])
    lexicon = lexicons.packed_folder(config.lexicon, languages) if config.lexicon else None
    glosses = about.get("glosses", False)
    return Model(base, folder, files, languages, where, config.bidirectional, glosses, lexicon, config.lexicon_bonus)


@lru_cache(maxsize=1)  # a model takes a gigabyte; runs of one model follow each other
def writer(model: Model) -> "LmWriter":
    """Load a model once for all runs that differ only in the policy.

    A packed phrase-based model (`lexicon`) adds a bonus (nats) on its translations.  A model that was trained with
    glosses also reads them as glosses.
    """
    from smt.lm.adapter import load_adapter
    from smt.lm.lm_stepper import LmWriter

    for held in (writer, _system):  # frees the last model before the next one is loaded
        held.cache_clear()
    base = load_base(model.folder)
    adapter = load_adapter(model.adapter)
    adapter.put_into(base)
    base.network.place(model.where)
    plain = LmWriter.of(base, Layout.of(base.tokens, *model.languages), adapter.pieces, model.bidirectional)
    if model.lexicon is None:
        return plain
    language = model.languages[0]
    table = lexicons.load_table(model.lexicon, language)
    glosses = load_glosses(model.lexicon, language) if model.glosses else None
    return replace(plain, bonus=Lexicon(table, language, model.bonus, plain.rules, plain.places), glosses=glosses)


@lru_cache(maxsize=1)
def _system(model: Model, fingerprint: str) -> Remembered:
    return Remembered(model.translator(Schedule(FULL), fingerprint))


def build(config: CausalLmConfig) -> WaitKTranslator | PolicyTranslator:
    """Return the translator of a config."""
    model = resolve(config)
    if config.policy == "wait-k":
        schedule = Schedule(parse_k(config.k), config.emission_rate)
        return model.translator(schedule, digest(["causal-lm", model.key(), asdict(schedule)]))
    return PolicyTranslator(_system(model, digest(["causal-lm, whole texts", model.key()])), policy_of(config))
