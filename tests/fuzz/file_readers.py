"""Every reader of users' files: a valid file, the ways to corrupt it, and the command that reads it."""

from __future__ import annotations

import atexit
import contextlib
import functools
import io
import json
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import zstandard
from fuzz import good_files as good
from fuzz import mutations as by
from small_runs import small_run

from buzzers.train import load_config as load_buzzer_training
from experiments.grid import AblationConfig
from guessers.open_qa.passages import read_passages
from guessers.training_texts import own_texts
from smt.engines.fairseq import read_dictionary
from smt.engines.pretrained import check_model
from smt.lm.adapter import load_adapter
from smt.lm.fine_tuning_config import LmConfig
from smt.models.bundle import load_model as load_bundle
from smt.models.vocab_bpe import BpeVocabulary
from smt.training.config import SmtConfig
from sqa.cli import main as command
from sqa.core import DATA, ROOT, SqaError
from sqa.data.download import read_manifest
from sqa.data.texts import load_own_pairs
from sqa.files import content
from sqa.metrics.curve_fit import FitConfig, fit
from sqa.metrics.qa import curve_in
from sqa.metrics.quality.score_file import read as read_scores
from sqa.metrics.quality.text_metric import Segment
from sqa.pipeline import load, load_run, save
from sqa.pipeline import read as read_folder
from sqa_services.protocols import vist
from sqa_services.protocols.iwslt.corpus import load as load_corpus

LONGEST = 6000  # maximum number of characters on stderr: one or two screens


@dataclass(frozen=True)
class Reader:
    """Valid files, one of which is corrupted, and the command or function that reads them."""

    name: str
    files: Mapping[str, bytes]
    corrupted: str  # name or pattern of the file to corrupt
    changes: Sequence[by.Change]
    read: Sequence[str] | Callable[[Path], object]  # arguments of `sqa` with {} for the folder, or a function
    folder: Callable[[], Path] | None = None  # folder whose files are copied first
    named: tuple[str, ...] = ()  # texts that a message may contain in place of the file name
    share: float = 1.0  # relative number of cases, lower for slow readers

    def corrupt(self, rng: random.Random, folder: Path) -> Path:
        """Write the files to a folder, corrupt one of them, and return its path."""
        if self.folder is not None:
            shutil.copytree(self.folder(), folder, dirs_exist_ok=True)
        for name, data in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data.replace(b"{}", bytes(folder)) if name.endswith(".yaml") else data)
        [path] = folder.glob(self.corrupted)
        path.write_bytes(rng.choice(self.changes)(rng, path.read_bytes()))
        return path


@dataclass(frozen=True)
class Outcome:
    """The outcome of reading a file."""

    code: int
    said: str  # text on stderr
    seconds: float  # processor time
    traceback: str = ""

    def problem(self, path: Path, reader: Reader) -> str:
        """Return a description of the defect in the reader's response, or "" if there is none."""
        if self.traceback:
            return self.traceback
        if self.seconds > 10:
            return f"took {self.seconds:.1f} s"
        if self.code not in (0, 1, 2, 3):
            return f"exit {self.code}: {self.said[-300:]}"
        names = (str(path), path.name, str(path.parent), *reader.named)
        if self.code and not any(name in self.said for name in names):
            return f"exit {self.code}, and the file is not named: {self.said[-500:]}"
        if len(self.said) > LONGEST:
            return f"{len(self.said)} characters on stderr: {self.said[:300]}"
        return ""


def attempt(reader: Reader, folder: Path) -> Outcome:
    """Run the reader on a folder with a corrupted file, as the `sqa` command would."""
    err, out = io.StringIO(), io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # a terminal refuses lone surrogates
    code, trace, began = 0, "", time.process_time()
    try:
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(out):
            if callable(reader.read):
                reader.read(folder)
            else:
                words = [word.replace("{}", str(folder)) for word in reader.read]
                with mock.patch.object(sys, "argv", ["sqa", *words]):
                    command()
    except SqaError as error:
        code = error.exit_code
        err.write(str(error))
    except OSError as error:  # as in the command's `main`
        code = 3
        err.write(f"{error.filename}: {error.strerror}")
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except Exception:
        trace = traceback.format_exc()
    out.flush()
    # The VIST evaluator reports problems on stdout, as the original does.
    message = err.getvalue() + out.buffer.getvalue().decode() * (reader.name.startswith("vist"))
    return Outcome(code, message, time.process_time() - began, trace)


JSON_LINES = (by.json_line, by.json_line, by.json_line, *by.BYTES)
JSON = (by.json_document, by.json_document, by.json_document, *by.BYTES)
YAML = (by.yaml_value, by.yaml_value, by.yaml_value, *by.BYTES)
TABLE = (by.table_cell, by.table_cell, *by.BYTES)
TENSORS = (by.tensor_header, by.tensor_header, *by.BYTES)


TRANSLATE = ("run", "{}/c.yaml", "--until", "translate", "--runs", "{}/runs")
EMPTY = (2).to_bytes(8, "little") + b"{}"  # a safetensors file without tensors
SEGMENTS = [Segment(id, "a", "b", "c") for id in ("one", "two")]
CONFIGS: dict[str, Callable[[Path], object]] = {  # a bundled config of each kind -> the function that reads it
    "mini_es_wait6_bm25.yaml": load_run,
    "train_buzzers.yaml": lambda path: load_buzzer_training(Path(f"{path}:mlp-bm25")),
    "smt_es_en.yaml": lambda path: load(Path(f"{path}:third"), SmtConfig),
    "ablation.yaml": lambda path: load(path, AblationConfig),
    "lm_es_en.yaml": lambda path: load(path, LmConfig),
}


@functools.cache
def finished_run() -> Path:
    """Return a folder of runs that contains the finished run `run` and its store."""
    folder = Path(tempfile.mkdtemp(prefix="sqa-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "questions.jsonl").write_bytes(good.QUESTIONS)
    dataset = {"name": str(folder / "questions.jsonl")}
    save(small_run(folder, name="run", dataset=dataset, translator=good.FIXED, metrics=["ew", "al"]), folder / "runs")
    return folder / "runs"


def _fit(path: Path) -> None:
    """Read a file of buzzes as `sqa train curve` does, without drawing."""
    fit(str(path), FitConfig("monotone", "clip", 10, 0))


class Words:
    """A fast replacement for METEOR, whose Java program takes a second to start: share of words in a reference."""

    def __enter__(self) -> Words:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def stats(self, references: Sequence[str], hypothesis: str) -> list[float]:
        words = hypothesis.split()
        return [max(sum(word in text.split() for word in words) / max(len(words), 1) for text in references)]

    def scores(self, groups: Sequence[Sequence[float]]) -> list[float]:
        return [groups[0][0], groups[0][0]]


def _evaluate(folder: Path) -> None:
    words = ["-testFile", f"{folder}/test.json", "-gsFile", f"{folder}/gold.json"]
    sys.exit(vist.main(words, Words))


def readers() -> list[Reader]:
    """Return all readers of this module."""
    return [*_of_data(), *_of_results(), *_of_configs(), *_of_models(), *_of_servers()]


def _file(name: str, file: str, data: bytes, changes: Sequence[by.Change], read: Callable[[Path], object]) -> Reader:
    """Return a reader that calls the function `read` with the path of the file."""
    return Reader(name, {file: data}, file, changes, lambda folder: read(folder / file))


def _questions(name: str, file: str, data: bytes, changes: Sequence[by.Change]) -> Reader:
    """Return a reader of a file of questions, by `sqa run --until translate`."""
    config = good.config(dataset={"name": f"{{}}/{file}"}, translator=good.FIXED)
    return Reader(name, {"c.yaml": config, file: data}, file, changes, TRANSLATE)


def _recorded(
    name: str, file: str, data: bytes, changes: Sequence[by.Change], questions: bytes = good.QUESTIONS, **keys: str
) -> Reader:
    """Return a reader of the recorded output of a translator, by `sqa run --until translate`."""
    config = good.config(translator={"name": "recorded", "file": f"{{}}/{file}", **keys})
    return Reader(name, {"c.yaml": config, "questions.jsonl": questions, file: data}, file, changes, TRANSLATE)


def _of_data() -> list[Reader]:
    log, example = good.log(), ROOT / "docs/example"
    document = json.dumps({"questions": good.RECORDS}, ensure_ascii=False).encode()
    zipped, of_zipped = zstandard.compress(good.QUESTIONS), [by.zipped(change) for change in JSON_LINES]
    heard, spoken = (DATA / "listening/questions.jsonl").read_bytes(), (example / "simulstream.jsonl").read_bytes()
    passage = b'{"id": "a", "title": "Peru", "text": "Lima is its capital."}\n'
    pages, manifest = (example / "pages.jsonl").read_bytes(), (DATA / "manifest.yaml").read_bytes()
    entries = [
        _questions("questions", "questions.jsonl", good.QUESTIONS, JSON_LINES),
        _questions("questions.json", "questions.json", document, JSON),
        _questions("questions.zst", "questions.jsonl.zst", zipped, of_zipped),
        _questions("listener's questions", "questions.jsonl", heard, JSON_LINES),
        _recorded("recorded log", "instances.log", log, JSON_LINES),
        _recorded("simulstream log", "instances.log", spoken, JSON_LINES, good.HEARD, pieces="sentencepiece"),
        _file("pairs", "p.tsv", good.PAIRS, TABLE, lambda path: list(load_own_pairs(path, "es-en"))),
        _file("buzzes", "b.jsonl", good.buzzes(), JSON_LINES, _fit),
        _file("pages", "pages.jsonl", pages, JSON_LINES, lambda path: list(own_texts([path]))),
        _file("passages", "passages.jsonl", passage, JSON_LINES, read_passages),
        _file("manifest", "m.yaml", manifest, YAML, read_manifest),
    ]
    for convention in ("simuleval-1.1", "iwslt-2020-final"):
        words = ("latency", "{}/instances.log", "--convention", convention)
        entries.append(Reader(f"latency {convention}", {"instances.log": log}, "instances.log", JSON_LINES, words))
    references = b"\n".join(json.loads(line)["reference"].encode() for line in log.splitlines()) + b"\n"
    both = {"instances.log": log, "refs.txt": references}
    words = ("latency", "{}/instances.log", "--references", "{}/refs.txt", "--json")
    entries.append(Reader("latency references", both, "refs.txt", by.BYTES, words))
    words, heard_log = ("latency", "{}/instances.log", "--computation-aware"), good.log(speech=True)
    entries.append(Reader("latency elapsed", {"instances.log": heard_log}, "instances.log", JSON_LINES, words))
    return entries


def _of_results() -> list[Reader]:
    files = {"questions.jsonl": good.QUESTIONS, "s.jsonl": good.submission()}
    validate = ("validate", "sqa", "{}/s.jsonl", "--questions", "{}/questions.jsonl")
    stories = dict(zip(("test.json", "gold.json"), good.stories(), strict=True))
    names = ("Story", "story", "stories", "JSON")
    export = ("export", "{}/run", "--to", "jsonl", "--output", "{}/out")
    whole = ("run", "run the config again")
    scores = b"0.5\n0.25\n"
    entries = [
        Reader("submission", files, "s.jsonl", JSON_LINES, validate),
        Reader("vist", stories, "test.json", JSON, _evaluate, named=names),
        Reader("vist gold", stories, "gold.json", JSON, _evaluate, named=names),
        _file("curve", "c.json", json.dumps(good.CURVE).encode(), JSON, curve_in),
        _file("scores", "s.tsv", scores, TABLE, lambda path: read_scores(path, SEGMENTS)),
    ]
    for name, changes in {"run.json": JSON, "config.yaml": YAML, "stats.npz": by.BYTES}.items():
        read = ("compare", "{}/run", "{}/run", "--resamples", "10") if name == "stats.npz" else export
        # these messages quote a corrupted name instead of the file name
        named = ("dataset.name", "file of questions", "File name too long") if name == "config.yaml" else ()
        entries.append(Reader(f"run {name}", {}, f"run/{name}", changes, read, finished_run, (*whole, *named)))
    entries.append(
        Reader("run report.tsv", {}, "run/report.tsv", TABLE, lambda f: read_folder(f / "run").report, finished_run)
    )
    entries.append(Reader("store manifest.json", {}, "store/guess/*/manifest.json", JSON, export, finished_run, whole))
    for stage in ("translate", "guess", "buzz"):
        path = f"store/{stage}/*/block-0000.npz"
        entries.append(Reader(f"store {stage} block", {}, path, by.BYTES, export, finished_run, whole))
    return entries


def _of_configs() -> list[Reader]:
    files = {"c.yaml": good.config(translator=good.FIXED, metrics=["al"]), "questions.jsonl": good.QUESTIONS}
    named = ("--", "dataset", "file of questions", "file of translations", "translator.", "File name too long")
    configs = {name: (ROOT / "configs" / name).read_bytes() for name in CONFIGS}
    return [
        Reader("config", files, "c.yaml", YAML, TRANSLATE, named=named),
        *(_file(f"config {name}", name, data, YAML, CONFIGS[name]) for name, data in configs.items()),
    ]


def _of_models() -> list[Reader]:
    adapter, bundled = (functools.partial(Path, DATA / "models", name) for name in ("lm-es-en", "es-en"))
    weights, vocabulary = "adapter_model.safetensors", "vocabulary.model.zst"
    symbols = ["<pad>", "<unk>", "<s>", "</s>", "a"]
    bpe = {"format": 1, "bpe": "none", "codes": "", "moses": "", "source": symbols, "target": symbols}
    hub = {"config.json": b'{"model_type": "marian"}', "model.safetensors": EMPTY, "tokenizer.json": b"{}"}
    return [
        Reader("lm-es-en config.json", {}, "config.json", JSON, load_adapter, adapter),
        Reader(f"lm-es-en {weights}", {weights: content(adapter() / weights)}, weights, TENSORS, load_adapter, adapter),
        Reader(f"es-en {vocabulary}", {}, vocabulary, by.BYTES, load_bundle, bundled, share=0.2),
        _file("fairseq dictionary", "dict.txt", b"the 9\nof 8\nand 7\n", by.BYTES, read_dictionary),
        _file("bpe", "v.json", json.dumps(bpe).encode(), JSON, BpeVocabulary.load),
        Reader("hub model", hub, "config.json", JSON, check_model),
    ]


def _of_servers() -> list[Reader]:
    text = {"src.txt": b"uno dos tres\ncuatro cinco\n", "tgt.txt": b"one two three\nfour five\n"}
    speech = {"s.json": json.dumps(good.UTTS).encode(), "a.wav": good.wav()}
    size = ("segment_size",)
    return [
        Reader("iwslt source", text, "src.txt", by.BYTES, _read_text, named=("tgt.txt",)),
        Reader("iwslt target", text, "tgt.txt", by.BYTES, _read_text),
        Reader("iwslt speech", speech, "s.json", JSON, _read_speech, named=size),
        Reader("iwslt wav", speech, "a.wav", by.BYTES, _read_speech, named=size),
    ]


def _read_text(folder: Path) -> None:
    load_corpus(folder / "src.txt", folder / "tgt.txt", "text")


def _read_speech(folder: Path) -> None:
    corpus = load_corpus(None, folder / "s.json", "speech")
    for sentence in range(len(corpus)):
        corpus.read(sentence, 0, 20)
        corpus.length(sentence)
