"""The trained Transformer as a wait-k translator, which continues its own words, or as a full-input system.

    translator: {name: waitk, model: es-en, k: 6}
    translator: {name: prefix, model: es-en, policy: local-agreement, n: 2}

`waitk`: a model trained only on complete sentences uses test-time wait-k (Ma et al. 2019); a bidirectional encoder then
re-encodes the words read after every READ.

`prefix`: a policy of `smt.policies.prefixes` makes the model simultaneous.  It translates every prefix from the start,
and `policy: wait-k` appends word j of the newest translation to the words written before, even if that translation
begins with other words.
"""

from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

from smt.models.beam import VERSION as SEARCH
from smt.models.beam import beam_of
from smt.models.bundle import AnyVocabulary, folder_fingerprint, load_model, model_folder
from smt.models.decode import WaitKTranslator, WholeTexts
from smt.models.transformer import Transformer
from smt.models.transformer_stepper import TransformerWriter
from smt.policies.prefixes import PolicyConfig, PolicyK, PolicyN, PolicyTranslator, Remembered, policy_of
from smt.policies.waitk import Schedule, Unit
from sqa.core.languages import pair_of
from sqa.core.schema import File, parse_k
from sqa.files.devices import CPU, Arithmetic, Device, Dtype, Place, place
from sqa.files.store import digest

VERSION = 2  # increase when decoding changes its output
ARITHMETIC = Arithmetic(auto=("int8", "float32"))


@dataclass(frozen=True, slots=True)
class WaitKConfig:
    """The model and its wait-k schedule."""

    model: Annotated[File, "a bundled model (es-en, pl-en) or the folder of a trained one"]
    k: Annotated[int | str, 'source words (or pieces) read first, or "full"'] = "full"
    emission_rate: Annotated[float, "target words per source word, 0.5 to 2 (the paper: 0.97)"] = 1.0
    unit: Annotated[Unit, "unit of k and the rate; piece = as in fairseq, see smt/models/decode.py"] = "word"
    beam: Annotated[int, "number of hypotheses before a word is published, see smt/models/beam.py; 1 = greedy"] = 1
    look_ahead: Annotated[int, "with a beam: words per hypothesis while the source continues"] = 2
    device: Annotated[Device, "auto = a GPU if there is one"] = "cpu"
    dtype: Annotated[Dtype, "element type of products; int8 is faster with VNNI but may change words"] = "float32"
    ARITHMETIC: ClassVar = ARITHMETIC
    SEPARATE_K: ClassVar = True  # translators with different k share no work

    def __post_init__(self) -> None:
        self.schedule()
        beam_of(self.beam, self.look_ahead)

    def schedule(self) -> Schedule:
        """Return the schedule of READs."""
        return Schedule(parse_k(self.k), self.emission_rate, self.unit)


@lru_cache(maxsize=2)
def loaded(folder: Path, files: str, where: Place) -> tuple[Transformer, AnyVocabulary, dict[str, Any]]:
    """Load model, vocabulary and metadata of a folder, ready to decode on the device and in the dtype of `where`.

    Translators that differ only in k or in the search share the weights.  `files` is the digest of the folder.
    """
    model, vocabulary, about = load_model(folder)
    model.to(where.device).accelerate(where.dtype)
    return model, vocabulary, about


def build(config: WaitKConfig) -> WaitKTranslator:
    """Return the translator of a config."""
    folder, where = model_folder(config.model), place(config)
    files = folder_fingerprint(folder)
    model, vocabulary, about = loaded(folder, files, where)
    languages = pair_of(about)
    writer = TransformerWriter(model, vocabulary)
    schedule, beam = config.schedule(), beam_of(config.beam, config.look_ahead)
    search = [asdict(schedule), config.beam, config.look_ahead, where.dtype, *where.key]
    fingerprint = digest(["waitk", [VERSION, SEARCH], search, files])
    return WaitKTranslator(lambda: writer, schedule, beam, fingerprint, languages)


@dataclass(frozen=True, slots=True)
class PrefixConfig:
    """The model and the policy around it."""

    model: Annotated[File, "a bundled model (es-en, pl-en) or the folder of a trained one"]
    policy: Annotated[PolicyConfig, "policy, see smt/policies/prefixes.py"] = "wait-k"
    k: PolicyK = "full"
    n: PolicyN = None
    beam: Annotated[int, "number of hypotheses per prefix, see smt/models/beam.py; 1 = greedy"] = 1
    device: Annotated[Device, "auto = a GPU if there is one"] = "cpu"
    dtype: Annotated[Dtype, "element type of products; int8 is faster with VNNI but may change words"] = "float32"
    ARITHMETIC: ClassVar = ARITHMETIC

    def __post_init__(self) -> None:
        policy_of(self)
        beam_of(self.beam)


@lru_cache(maxsize=2)
def system(folder: Path, files: str, beam: int, where: Place = CPU) -> Remembered:
    """Return the full-input system that runs with different policies share; `files` is the digest of the model."""
    model, vocabulary, about = loaded(folder, files, where)
    writer = TransformerWriter(model, vocabulary)
    other = [] if where.dtype == "float32" else [where.dtype]
    fingerprint = digest(["prefix", VERSION, SEARCH, beam, files, *other, *where.key])
    return Remembered(WholeTexts(lambda: writer, beam_of(beam), fingerprint, pair_of(about)))


def build_prefix(config: PrefixConfig) -> PolicyTranslator:
    """Return the translator of a config."""
    folder = model_folder(config.model)
    shared = system(folder, folder_fingerprint(folder), config.beam, place(config))
    return PolicyTranslator(shared, policy_of(config))
