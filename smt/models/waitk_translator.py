"""A trained Transformer of ours as a translator that continues its own words, or one that reads whole texts.

    translator: {name: waitk, model: es-en, k: 6}
    translator: {name: prefix, model: es-en, policy: local-agreement, n: 2}

`waitk`: a model trained on complete sentences only is run by test-time wait-k (Ma et al. 2019); a bidirectional
encoder then encodes the words read anew after every READ.

`prefix`: a policy of `smt.policies.prefixes` makes it simultaneous.  The model translates every prefix from the start,
and `policy: wait-k` takes word j of the newest translation behind the words written before, which that translation need
not begin with.
"""

from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from smt.models import copying
from smt.models.beam import VERSION as SEARCH
from smt.models.beam import beam_of
from smt.models.bundle import folder_fingerprint, load_model, model_folder
from smt.models.int8 import Precision
from smt.models.transformer_stepper import TransformerWriter
from smt.models.writing import WaitKTranslator, WholeTexts
from smt.policies.chosen import PolicyConfig, policy_of
from smt.policies.prefixes import PolicyTranslator, Remembered
from smt.policies.waitk import Schedule, Unit
from sqa.core.k import parse_k
from sqa.core.paths import File
from sqa.data.languages import pair_of
from sqa.files.store import digest

VERSION = 2  # raise when decoding changes its output


@dataclass(frozen=True, slots=True)
class WaitKConfig:
    """Which model and how far behind the reader it writes."""

    model: File  # a bundled model (es-en, pl-en) or the folder of a trained one
    k: int | str = "full"  # source words (or pieces) read before the first target word, or "full" = the whole sentence
    emission_rate: float = 1.0  # target words written per source word read, 0.5 to 2 (the paper: 0.97)
    unit: Unit = "word"  # what k and the rate count; piece = as fairseq counts, see smt/models/decode.py
    beam: int = 1  # hypotheses searched before a word is published, see smt/models/beam.py; 1 = greedy
    look_ahead: int = 2  # with a beam: words of a hypothesis while the source continues; the first is published
    precision: Precision = "float32"  # of the arithmetic; int8 is faster and may write other words
    copy_bonus: float = 0.0  # nats for pieces that spell a name of the source, see smt/models/copying.py

    def __post_init__(self) -> None:
        self.schedule()
        beam_of(self.beam, self.look_ahead)
        copying.check(self.copy_bonus, self.beam)

    def schedule(self) -> Schedule:
        """When to READ."""
        return Schedule(parse_k(self.k), self.emission_rate, self.unit)


def build(config: WaitKConfig) -> WaitKTranslator:
    """The translator of a config."""
    folder = model_folder(config.model)
    model, vocabulary, about = load_model(folder)
    model.accelerate(config.precision)
    languages = pair_of(about)
    writer = TransformerWriter(model, vocabulary, config.copy_bonus, (languages and languages[0]) or "")
    schedule, beam = config.schedule(), beam_of(config.beam, config.look_ahead)
    versions = [VERSION, SEARCH, copying.VERSION]
    search = [asdict(schedule), config.beam, config.look_ahead, config.precision, config.copy_bonus]
    fingerprint = digest(["waitk", versions, search, folder_fingerprint(folder)])
    return WaitKTranslator(lambda: writer, schedule, beam, fingerprint, languages)


@dataclass(frozen=True, slots=True)
class PrefixConfig:
    """Which model and the policy around it."""

    model: File  # a bundled model (es-en, pl-en) or the folder of a trained one
    policy: PolicyConfig = "wait-k"  # when to write what: see smt/policies/prefixes.py
    k: int | str = "full"  # wait-k: source WORDS read before the first target word, or "full"
    n: int | None = None  # local-agreement: translations that must agree (2); hold, retranslate: words held back
    beam: int = 1  # hypotheses kept while a prefix is translated, see smt/models/beam.py; 1 = greedy

    def __post_init__(self) -> None:
        policy_of(self)
        beam_of(self.beam)


@lru_cache(maxsize=2)
def system(folder: Path, files: str, beam: int) -> Remembered:
    """Return the system of a model (`files`: their digest) and a beam: runs with other policies share its memory."""
    model, vocabulary, about = load_model(folder)
    model.accelerate("float32")
    writer = TransformerWriter(model, vocabulary)
    fingerprint = digest(["prefix", VERSION, SEARCH, beam, files])
    return Remembered(WholeTexts(lambda: writer, beam_of(beam), fingerprint, pair_of(about)))


def build_prefix(config: PrefixConfig) -> PolicyTranslator:
    """The translator of a config."""
    folder = model_folder(config.model)
    shared = system(folder, folder_fingerprint(folder), config.beam)
    return PolicyTranslator(shared, policy_of(config))
