"""COMET (Rei et al. 2020, 2022) of each sentence's source, translation and reference, by the package unbabel-comet.

The package also has the models XCOMET and COMETKiwi; COMETKiwi reads no reference, as its hparams.yaml states.

A model consists of `hparams.yaml` and `checkpoints/*.ckpt`, as saved by the package and offered on the hub.  It does
not include the tokenizer: hparams.yaml, or the config, names the encoder's folder or hub name.  Checkpoints are read
only as tensors and plain values; a checkpoint that holds code is refused.
"""

import logging
import pickle
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

from sqa.core import DataError, File, checked
from sqa.files import file_digest, files_digest, find_model, parse_yaml
from sqa.metrics.quality.text_metric import MeanOfSegments, Segment, refused_with
from sqa.metrics.quality.text_model import SENTENCES, ModelConfig, TextModel

ENCODER_WANTED = ("*.json", "*.model", "*.txt")  # tokenizer and sizes; the checkpoint holds the weights
VERSION = 2  # increase when the scores of a model change


@dataclass(frozen=True, slots=True)
@checked
class CometConfig(ModelConfig):
    """The model and its settings."""

    model: Annotated[File, "folder with hparams.yaml and checkpoints/, or a hub name: Unbabel/wmt22-comet-da"]
    name: Annotated[str, "in the report"] = "comet"
    LABEL: ClassVar = "COMET"
    encoder: Annotated[File | None, "folder or hub name of the tokenizer; null = the one named in hparams.yaml"] = None
    encoder_revision: Annotated[str | None, "branch, tag or commit of the encoder"] = None


@dataclass(frozen=True)
class Comet(TextModel):
    """COMET with the checkpoint and the hyperparameters in a folder."""

    package, distribution = "comet", "unbabel-comet"
    wanted = ("hparams.yaml", "checkpoints/*.ckpt")

    @cached_property
    def files(self) -> tuple[Path, dict[str, Any]]:
        """Return the checkpoint and the hyperparameters; raises DataError if the folder has no COMET model."""
        return _files(self.folder)

    @cached_property
    def encoder(self) -> Path:
        """Return the folder with the encoder's tokenizer."""
        config = self.config
        name = config.encoder or str(self.files[1]["pretrained_model"])
        return find_model(name, config.encoder_revision, config.download, ENCODER_WANTED, "encoder_revision")

    @cached_property
    def weights(self) -> str:
        return file_digest(self.files[0])

    def score(self, batch: Sequence[Segment]) -> list[float]:
        """Return the score of each segment: mostly 0 to 1 for newer models, any real number for older models."""
        model = self.loaded
        rows = [{"src": s.source, "mt": s.hypothesis, "ref": s.reference} for s in batch]
        inputs = model.transfer_batch_to_device(model.prepare_for_inference(rows), model.device, 0)
        with self.where.autocast():
            scores: list[float] = model.predict_step(inputs)["scores"].float().tolist()
        return scores

    def load(self) -> Any:
        """Return the model in eval mode without gradients; raises DataError for other classes or weights."""
        (checkpoint, hparams), classes = self.files, _classes()
        kind = hparams["class_identifier"]
        if kind not in classes:
            raise DataError(f"model {self.folder}: COMET has no {kind!r}; it has {', '.join(sorted(classes))}")
        patched = hparams.get("layer_transformation") == "sparsemax_patch"
        changed = {"layer_transformation": "softmax"} if patched else {}  # as in comet's own loader since 2.2.4
        refusal = f"model {checkpoint}: COMET cannot load it as {kind} on {self.where.device}"
        with warnings.catch_warnings(record=True) as warned, refused_with(refusal):
            warnings.simplefilter("always")
            try:
                model = self.where.take(
                    classes[kind].load_from_checkpoint(
                        checkpoint,
                        map_location="cpu",
                        strict=False,  # old checkpoints contain position numbers that the encoders no longer store
                        weights_only=True,
                        load_pretrained_weights=False,
                        local_files_only=True,
                        pretrained_model=str(self.encoder),
                        **changed,
                    )
                )
            except pickle.UnpicklingError as error:
                code = "it contains more than tensors and plain values, which is refused"
                raise DataError(f"model {checkpoint}: {code}") from error
        missing = [
            str(w.message) for w in warned if "in the model state dict but not in the checkpoint" in str(w.message)
        ]
        if missing:
            raise DataError(f"model {checkpoint}: weights are missing, so it is not a {kind}: {missing[0][:200]}")
        return model.eval().requires_grad_(False)


def build(config: CometConfig) -> MeanOfSegments:
    """Return the metric of a config; its fingerprint contains a hash of the model's files.

    Raises ConfigError or DataError if the files are missing or invalid.
    """
    model = Comet.found(config)
    pieces, hparams_file = files_digest(model.encoder, ENCODER_WANTED), file_digest(model.folder / "hparams.yaml")
    kind = f"class:{model.files[1]['class_identifier']}{model.where.signature}"
    signature = f"comet|{SENTENCES}|{model.described}|{kind}|version:{model.version}"
    return model.metric(signature, "comet", VERSION, model.version, model.weights, hparams_file, pieces)


def _files(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Return the checkpoint and the hyperparameters in a folder; raises DataError if it has no COMET model."""
    try:
        hparams = parse_yaml((folder / "hparams.yaml").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        hint = "; it has a config.json like other kinds of models" if (folder / "config.json").is_file() else ""
        raise DataError(f"model {folder} is not a COMET model: it has no hparams.yaml{hint}") from error
    except ValueError as error:
        raise DataError(f"model {folder}: its hparams.yaml cannot be read") from error
    keys = hparams if isinstance(hparams, dict) else {}
    missing = [key for key in ("class_identifier", "pretrained_model") if key not in keys]
    if missing:
        raise DataError(f"model {folder} is not a COMET model: its hparams.yaml names no {' and no '.join(missing)}")
    checkpoints = sorted(folder.glob("checkpoints/*.ckpt"))
    named = [path for path in checkpoints if path.name == "model.ckpt"] or checkpoints
    if len(named) != 1:
        raise DataError(f"model {folder}: expected one checkpoints/*.ckpt, got {len(checkpoints)}")
    return named[0], hparams


def _classes() -> dict[str, Any]:
    with warnings.catch_warnings():
        # torchmetrics, which comet pins to an old version, imports pkg_resources; torch's own notices are caused by it
        for category, message in ((DeprecationWarning, ""), (UserWarning, "pkg_resources is dep"), (FutureWarning, "")):
            warnings.filterwarnings("ignore", message, category)
        from comet.models import str2model

    logging.getLogger("comet").setLevel(logging.WARNING)  # suppresses "Encoder model frozen." at each load
    return dict(str2model)
