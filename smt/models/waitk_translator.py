"""The trained Transformer as a wait-k translator, which continues its own words, or as a full-input system.

    translator: {name: waitk, model: es-en, k: 6}
    translator: {name: prefix, model: es-en, policy: local-agreement, n: 2}

`waitk`: a model trained only on complete sentences uses test-time wait-k (Ma et al. 2019); a bidirectional encoder then
re-encodes the words read after every READ.

`prefix`: a policy of `smt.policies.prefixes` makes the model simultaneous.  It translates every prefix from the start,
and `policy: wait-k` appends word j of the newest translation to the words written before, even if that translation
begins with other words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from smt.models.bundle import folder_fingerprint, languages_of, load_model, model_folder
from smt.policies.prefixes import PolicyConfig, PolicyK, PolicyN, PolicyTranslator, Remembered, policy_of
from smt.policies.waitk import FULL, Schedule, Unit
from sqa.core import Emission, File, Pair, Question, parse_k
from sqa.files import CPU, Arithmetic, Device, Dtype, Place, digest, place

if TYPE_CHECKING:
    from smt.models.stepper import Writer
    from smt.models.transformer_stepper import TransformerWriter

VERSION = 2  # increase when decoding changes its output
SEARCH, HYPOTHESES, LOOK_AHEAD = 1, 1, 2  # settings of a removed beam search, kept in the keys of stored results
ARITHMETIC = Arithmetic(auto=("int8", "float32"))


class WaitKTranslator:
    """Wait-k translator; streaming and batched decoding give the same words and the same g.

    `load` is not called before the first use, so a run whose results are stored needs no model.
    """

    def __init__(
        self, load: Callable[[], Writer], schedule: Schedule, fingerprint: str, languages: Pair | None
    ) -> None:
        self._load, self.schedule, self._fingerprint, self.languages = load, schedule, fingerprint, languages

    @property
    def writer(self) -> Writer:
        """Return the loaded model."""
        return self._load()

    def translate(self, source: Iterator[str]) -> Iterator[str]:
        """Yield the words of one sentence while reading `source`."""
        from smt.models.decode import decode_stream

        return decode_stream(self.writer, source, self.schedule)

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]:
        """Return the emissions of whole questions."""
        from smt.models.decode import decode_batch

        sentences = [sentence for question in questions for sentence in question.sentences]
        written = iter(decode_batch(self.writer, sentences, self.schedule))
        return [
            [Emission(i, word.token, word.g, word.ended) for i in range(len(q.sentences)) for word in next(written)]
            for q in questions
        ]

    def words(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the target words of each text, which are () for a blank text."""
        from smt.models.decode import decode_batch

        written = decode_batch(self.writer, [text.split() for text in texts], self.schedule)
        return [tuple(word.token for word in words) for words in written]

    def fingerprint(self) -> str:
        """Return a hash of everything that the output depends on."""
        return self._fingerprint


@dataclass(frozen=True, slots=True)
class WaitKConfig:
    """The model and its wait-k schedule."""

    model: Annotated[File, "a bundled model (es-en, pl-en) or the folder of a trained one"]
    k: Annotated[int | str, 'source words (or pieces) read first, or "full"'] = "full"
    emission_rate: Annotated[float, "target words per source word, 0.5 to 2 (the paper: 0.97)"] = 1.0
    unit: Annotated[Unit, "unit of k and the rate; piece = as in fairseq, see smt/models/decode.py"] = "word"
    device: Annotated[Device, "auto = a GPU if there is one"] = "cpu"
    dtype: Annotated[Dtype, "element type of products; int8 is faster with VNNI but may change words"] = "float32"
    ARITHMETIC: ClassVar = ARITHMETIC
    SEPARATE_K: ClassVar = True  # translators with different k share no work

    def __post_init__(self) -> None:
        self.schedule()

    def schedule(self) -> Schedule:
        """Return the schedule of READs."""
        return Schedule(parse_k(self.k), self.emission_rate, self.unit)


@lru_cache(maxsize=2)
def loaded(folder: Path, files: str, where: Place) -> TransformerWriter:
    """Load the model of a folder, ready to decode on the device and in the dtype of `where`.

    Translators that differ only in k or in the search share the weights.  `files` is the digest of the folder.
    """
    from smt.models.transformer_stepper import TransformerWriter

    model, vocabulary, _ = load_model(folder)
    model.to(where.device).accelerate(where.dtype)
    return TransformerWriter(model, vocabulary)


def build(config: WaitKConfig) -> WaitKTranslator:
    """Return the translator of a config."""
    folder, where = model_folder(config.model), place(config)
    languages, files = languages_of(folder), folder_fingerprint(folder)
    schedule = config.schedule()
    search = [asdict(schedule), HYPOTHESES, LOOK_AHEAD, where.dtype, *where.key]
    fingerprint = digest(["waitk", [VERSION, SEARCH], search, files])
    return WaitKTranslator(partial(loaded, folder, files, where), schedule, fingerprint, languages)


@dataclass(frozen=True, slots=True)
class PrefixConfig:
    """The model and the policy around it."""

    model: Annotated[File, "a bundled model (es-en, pl-en) or the folder of a trained one"]
    policy: Annotated[PolicyConfig, "policy, see smt/policies/prefixes.py"] = "wait-k"
    k: PolicyK = "full"
    n: PolicyN = None
    device: Annotated[Device, "auto = a GPU if there is one"] = "cpu"
    dtype: Annotated[Dtype, "element type of products; int8 is faster with VNNI but may change words"] = "float32"
    ARITHMETIC: ClassVar = ARITHMETIC

    def __post_init__(self) -> None:
        policy_of(self)


@lru_cache(maxsize=2)
def system(folder: Path, files: str, where: Place = CPU) -> Remembered:
    """Return the full-input system that runs with different policies share; `files` is the digest of the model."""
    other = [] if where.dtype == "float32" else [where.dtype]
    fingerprint = digest(["prefix", VERSION, SEARCH, HYPOTHESES, files, *other, *where.key])
    load = partial(loaded, folder, files, where)
    return Remembered(WaitKTranslator(load, Schedule(FULL), fingerprint, languages_of(folder)))


def build_prefix(config: PrefixConfig) -> PolicyTranslator:
    """Return the translator of a config."""
    folder = model_folder(config.model)
    shared = system(folder, folder_fingerprint(folder), place(config))
    return PolicyTranslator(shared, policy_of(config))
