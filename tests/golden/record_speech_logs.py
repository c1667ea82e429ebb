"""Record logs of simulstream, SimulStreaming and OmniSTEval for tests/golden/test_speech_logs.py.

    python -m venv env && env/bin/pip install simulstream==1.0.0 OmniSTEval==0.1.10 mweralign
    git clone https://github.com/ufal/SimulStreaming
    env/bin/python tests/golden/record_speech_logs.py tests/golden/vectors/speech SimulStreaming

The recorded commit of SimulStreaming is 077ea37. Without its folder, the script records only the other programs. The
environment is separate and does not contain `sqa`. Move the questions (heard.jsonl) and the log with deletions
(simulstream.jsonl) to docs/example.

The programs process silent recordings and write the logs. A simulated model knows the reference translation and the
time of each source word. In some logs the last word of its output is wrong, so that it retracts words. The output of
simulstream's own log reader is stored with the logs.
"""

import contextlib
import io
import json
import subprocess
import sys
import tempfile
import types
import wave
from pathlib import Path
from types import SimpleNamespace

EXAMPLE = Path(__file__).parents[2] / "docs" / "example" / "questions.jsonl"
OUT = Path(sys.argv[1]).resolve()
CHUNK = 1.0  # seconds
RATE = 16000


def spoken() -> list[dict]:
    """Return the example's questions as speech: 60 ms per letter, 200 ms per word and 800 ms after a sentence."""
    rows = []
    for line in EXAMPLE.read_text(encoding="utf-8").splitlines():
        record, times, starts, now = json.loads(line), [], [], 0.0
        for sentence in record["source"]:
            starts.append(round(now, 2))
            for word in sentence.split():
                now += 0.2 + 0.06 * len(word)
                times.append(round(now, 2))
            now += 0.8
        rows.append({**record, "source": " ".join(record["source"]), "word_times": times, "_starts": starts})
    return rows


def heard(row: dict, seconds: float, guesses: bool) -> list[str]:
    """Return the words of the translation after `seconds` seconds; with `guesses`, the last word is wrong."""
    words = " ".join(row["reference"]).split()
    text = sum(time <= seconds for time in row["word_times"])
    known = words[: text * len(words) // len(row["word_times"])]
    return [*known[:-1], "perhaps"] if guesses and known and len(known) < len(words) else known


def pieces(words: list[str]) -> list[str]:
    return [piece for word in words for piece in ("▁" + word[:3], word[3:]) if piece]


def record_simulstream(folder: Path, rows: list[dict], guesses: bool, name: str) -> None:
    from simulstream.inference import run_inference
    from simulstream.metrics.logger import METRICS_LOGGER, setup_metrics_logger
    from simulstream.metrics.readers import LogReader
    from simulstream.server.speech_processors.incremental_output import IncrementalOutput
    from simulstream.server.speech_processors.sliding_window_retranslation import SlidingWindowRetranslator

    class Toy(SlidingWindowRetranslator):
        def __init__(self) -> None:
            super().__init__(SimpleNamespace(speech_chunk_size=CHUNK, window_len=1000, override_on_failed_match=True))
            self.row, self.left, self.seconds, self.audio_history = -1, [], 0.0, []

        @classmethod
        def load_model(cls, config) -> None: ...
        def set_source_language(self, language) -> None: ...
        def set_target_language(self, language) -> None: ...

        def tokens_to_string(self, tokens):
            return "".join(tokens).replace("▁", " ").strip()

        def _preprocess(self, waveform):
            self.seconds += len(waveform) / RATE
            return waveform

        def _generate(self, speech):
            return pieces(heard(rows[self.row], self.seconds, guesses))

        def _build_incremental_outputs(self, generated_tokens):
            if guesses:
                return super()._build_incremental_outputs(generated_tokens)
            before = self.text_history or []  # three pieces per chunk, so that some words are split
            self.text_history = generated_tokens[: len(before) + 3]
            new = self.text_history[len(before) :]
            return IncrementalOutput(new, self.tokens_to_string(new), [], "")

        def end_of_stream(self):
            whole = pieces(heard(rows[self.row], 1000, False))
            new = [] if guesses else whole[len(self.text_history or []) :]
            return IncrementalOutput(new, self.tokens_to_string(new), [], "")

        def clear(self):
            super().clear()
            self.seconds, self.audio_history = 0.0, []

    class Rows(Toy):
        def set_target_language(self, language) -> None:
            self.row += 1

    log = OUT / f"{name}.jsonl"
    log.unlink(missing_ok=True)
    setup_metrics_logger(SimpleNamespace(enabled=True, filename=str(log)))
    METRICS_LOGGER.setLevel("INFO")
    METRICS_LOGGER.info(json.dumps({"model_loading_time": 0.5}))
    run_inference(Rows(), [str(folder / f"{row['id']}.wav") for row in rows], "en", "es")
    METRICS_LOGGER.handlers.clear()
    lines = log.read_text(encoding="utf-8").replace(f"{folder}/", "wavs/").splitlines()
    timed = [json.loads(line) for line in lines]
    for row in timed:
        if "computation_time" in row:
            row["computation_time"] = 0.25  # a constant, so that repeated recordings are equal
    log.write_text("".join(json.dumps(row) + "\n" for row in timed), encoding="utf-8")
    config = SimpleNamespace(detokenizer_type="simuleval", latency_unit="spm")
    read = LogReader(config, str(log)).final_outputs_and_latencies()
    expected = {key: {"text": out.final_text, "delays": out.ideal_delays} for key, out in read.items()}
    (OUT / f"{name}.expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


def record_omnisteval(folder: Path, rows: list[dict]) -> None:
    segments, references = [], []
    for row in rows:
        ends = [*row["_starts"][1:], row["word_times"][-1]]
        for start, end, reference in zip(row["_starts"], ends, row["reference"], strict=True):
            segments.append({"wav": f"{row['id']}.wav", "offset": start, "duration": round(end - start, 2)})
            references.append(reference)
    (folder / "segments.json").write_text(json.dumps(segments))
    (folder / "references.txt").write_text("".join(f"{line}\n" for line in references))
    (folder / "eval.yaml").write_text("detokenizer_type: simuleval\nlatency_unit: spm\n")
    words = ["longform", "--speech_segmentation", "segments.json", "--ref_sentences_file", "references.txt"]
    words += ["--hypothesis_file", str(OUT / "simulstream.append.jsonl"), "--hypothesis_format", "simulstream"]
    words += ["--simulstream_config_file", "eval.yaml", "--output_folder", ".", "--word_level", "--no_quality"]
    command = [sys.executable, "-c", "from omnisteval.cli import main; main()", *words]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (OUT / "omnisteval.jsonl").write_text((folder / "instances.resegmented.jsonl").read_text(encoding="utf-8"))


def record_simulstreaming(folder: Path, rows: list[dict], checkout: Path) -> None:
    sys.path.insert(0, str(checkout))
    for name in ("ctranslate2", "transformers"):
        sys.modules.setdefault(name, types.ModuleType(name))
    import simulstreaming_translate as translate
    from simulstreaming.whisper.whisper_streaming.whisper_online_main import main_simulation_from_file

    class Toy:
        def __init__(self, row: dict, source: bool) -> None:
            self.row, self.source, self.seconds, self.shown = row, source, 0.0, 0

        def warmup(self, audio) -> None: ...

        def insert_audio_chunk(self, audio) -> None:
            self.seconds += len(audio) / RATE

        def process_iter(self):
            times = self.row["word_times"]
            printed = sum(time <= self.seconds for time in times)
            words = self.row["source"].split()[:printed] if self.source else heard(self.row, self.seconds, False)
            text = "".join(f" {word}" for word in words)
            new = text[self.shown : len(text) - (3 if printed < len(times) else 0)]  # cut within words
            self.shown += len(new)
            return {"start": 0.0, "end": self.seconds, "text": new, "is_final": False} if new else {}

        def finish(self):
            return {**self.process_iter(), "is_final": True}

    def whisper(row: dict, source: bool) -> str:
        toy, out = Toy(row, source), io.StringIO()
        sys.argv = ["simulstreaming_whisper.py", str(folder / f"{row['id']}.wav"), "--comp_unaware", "-l", "ERROR"]
        with contextlib.redirect_stdout(out):
            main_simulation_from_file(lambda args: (toy, toy))
        return out.getvalue()

    class Translator:
        max_tokens_to_trim = 1000
        tokenizer = SimpleNamespace(encode=str.split)

        def __init__(self, row: dict) -> None:
            self.row = row

        def translate(self, src: str, forced: str) -> str:
            words, size = " ".join(self.row["reference"]).split(), len(self.row["source"].split())
            known = words[: len(src.split()) * len(words) // size]
            new = known[len(forced.split()) :]
            return " ".join(new if len(known) == len(words) else [*new[:-1], "perhaps"])

    for kind in ("whisper", "translated"):
        (OUT / f"simulstreaming.{kind}").mkdir(exist_ok=True)
    for row in rows:
        name = f"{row['id']}.jsonl"
        (OUT / "simulstreaming.whisper" / name).write_text(whisper(row, source=False), encoding="utf-8")
        simul = translate.SimulLLM(Translator(row), language="en", trimming="segments", init_src=[], init_tgt="")
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            for line in whisper(row, source=True).splitlines():
                translate.simulation_update(simul, [json.loads(line)], translate.SimulationTimer(comp_aware=False))
        (OUT / "simulstreaming.translated" / name).write_text(out.getvalue(), encoding="utf-8")


def main(checkouts: list[str]) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    rows = spoken()
    text = "".join(
        json.dumps({key: value for key, value in row.items() if key != "_starts"}, ensure_ascii=False) + "\n"
        for row in rows
    )
    (OUT / "heard.jsonl").write_text(text, encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for row in rows:
            with wave.open(str(folder / f"{row['id']}.wav"), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(RATE)
                file.writeframes(bytes(2 * round(RATE * (row["word_times"][-1] + 0.5))))
        record_simulstream(folder, rows, True, "simulstream")
        record_simulstream(folder, rows, False, "simulstream.append")
        record_omnisteval(folder, rows)
        for checkout in checkouts:
            record_simulstreaming(folder, rows, Path(checkout).resolve())


if __name__ == "__main__":
    main(sys.argv[2:])
