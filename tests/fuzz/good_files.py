"""Valid files for tests/fuzz/file_readers.py to corrupt."""

import io
import json
import wave

import yaml
from tables import tables_of

from sqa.core import ROOT

TABLES = tables_of(__file__)

QUESTIONS = (ROOT / "docs/example/questions.jsonl").read_bytes()
HEARD = (ROOT / "docs/example/heard.jsonl").read_bytes()
RECORDS = [json.loads(line) for line in QUESTIONS.splitlines()]


def config(**parts: object) -> bytes:
    """Return a run's config, in which {} stands for the folder of the files."""
    return yaml.safe_dump({"dataset": {"name": "{}/questions.jsonl"}, **parts}, sort_keys=False).encode()


FIXED = {"name": "fixed", "text": "reference"}


def log(speech: bool = False) -> bytes:
    """Return a SimulEval log of the example questions, with text or recordings as the source."""
    rows = []
    for record in RECORDS:
        for source, text in zip(record["source"], record["reference"], strict=False):
            size, words = len(source.split()), text.split()
            delays = [min(size, index + 3) for index in range(len(words))]
            row = {"index": len(rows), "prediction": text, "delays": delays, "elapsed": [d + 0.5 for d in delays]}
            row |= {"prediction_length": len(words), "reference": text, "source": source, "source_length": size}
            row |= {"reference_length": len(words), "metric": {}}
            rows.append({**row, "source": [f"{len(rows)}.wav"]} if speech else row)
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def buzzes() -> bytes:
    """Return a file of 120 human buzzes."""
    rows = [
        {"qid": f"q{i}", "correct": i % 3 > 0, "rel_pos": (i * 37 % 100) / 100, "word_index": i % 50, "n_words": 60}
        | {"tournament": "t", "game": i // 9, "player": f"p{i % 3}"}
        for i in range(120)
    ]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def submission() -> bytes:
    """Return a board submission for the example questions."""
    rows = []
    for record in RECORDS:
        words = " ".join(record["source"]).split()
        rows += [
            {"question": record["id"], "step": i, "token": f"w{i}", "g": i + 1, "guess": record["page"], "buzz": i > 5}
            for i in range(len(words))
        ]
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def stories() -> tuple[bytes, bytes]:
    """Return a VIST submission and its annotations."""
    message = [{"album_id": "1", "photo_sequence": ["a", "b"], "story_text_normalized": "a man went out ."}]
    rows = [
        {"story_id": "s1", "photo_flickr_id": p, "worker_arranged_photo_order": i, "text": "a man went"}
        for i, p in enumerate("ab")
    ]
    return json.dumps({"output_stories": message}).encode(), json.dumps({"annotations": [[r] for r in rows]}).encode()


def wav() -> bytes:
    """Return a WAV file of 100 ms of silence."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(bytes(3200))
    return out.getvalue()


CURVE = TABLES["curve"]
UTTS = {"utts": {"u": {"input": {"path": "a.wav", "length_ms": 100}, "output": {"text": "hello"}}}}
PAIRS = "".join(f"uno dos {i}\tone two {i}\n" for i in range(20)).encode()
