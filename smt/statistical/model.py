"""The folder of a phrase-based model: the decoder's files, and config.json, which describes them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from sqa.core.errors import ConfigError, DataError
from sqa.core.schema import Count, Whole, checked
from sqa.files.atomic import file_digest, write_text
from sqa.files.records import parse_json

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
