"""Functions that corrupt valid files; a seed gives the same files on every machine."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

Change = Callable[[random.Random, bytes], bytes]
_RAW = "\ue000"  # marks text that goes into JSON verbatim
ODD_BYTES = (*b"\0 \xff\xfe \xed\xa0\x80 \xef\xbb\xbf \xc2\x85".split(b" "), b"\r", b"\n", b"\t", b"x" * 70_000)
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 1e308, 5e-324, 2**31, 2**63, 10**23, "", " ", "\0", "a\tb", "a\nb", "a\rb", "\u2028",
    "\ud800", "\udfffx", "nan", "1e5", "٣", "</s>", "../../etc/passwd", "é" * 40, "x" * 100_000, "w " * 33_000, [], {},
    [[]], {"": {}}, [None], "\u202eabc", "=1+1", "%s%n{}",
)  # fmt: skip
ODD_RAW = (
    "NaN", "Infinity", "-Infinity", "1e999", "9" * 24, "9" * 5000, "-" + "9" * 24, "[" * 100_000, "[" * 300 + "]" * 300,
    '{"a":' * 400 + "1" + "}" * 400, "0x10", "01", "+1", "'a'", '"\\ud83d"', '"\\u12"', "1.", "tru", "",
)  # fmt: skip
ODD_YAML = (
    b"a0: &a0 [x]\n" + b"".join(b"a%d: &a%d [%s*a0]\n" % (i, i, b"*a%d," % (i - 1) * 10) for i in range(1, 12)),
    b"a: &a [1, *a]\n", b"? [1, 2]\n: x\n", b"a: 2024-02-30\n", b"a: !!python/object/apply:os.getcwd []\n",
    b"a: " + b"[" * 5000 + b"\n", b"a: !!binary aGk=\n", b"<<: 5\n", b"---\n---\n", b"\t- x\n", b"a: *nowhere\n",
    b"%YAML 9.9\n---\n", b"? : ?\n",
    b"name: 0o777\n", b"k: .inf\n", b"k: 1e3\n", b"- " * 3000 + b"\n",
)  # fmt: skip


# --- bytes


def flip(rng: random.Random, data: bytes) -> bytes:
    """Flip one to eight bits."""
    changed = bytearray(data or b"\0")
    for _ in range(rng.randint(1, 8)):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def splice(rng: random.Random, data: bytes) -> bytes:
    """Cut the end of the file, or remove or repeat a part."""
    start = rng.randrange(len(data) + 1)
    end = start + rng.choice((1, 2, 8, 64, 1000))
    return rng.choice((data[:start], data[:start] + data[end:], data[:end] + data[start:]))


def insert(rng: random.Random, data: bytes) -> bytes:
    """Insert invalid bytes."""
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice((*ODD_BYTES, rng.randbytes(9))) + data[at:]


def lines(rng: random.Random, data: bytes) -> bytes:
    """Remove, repeat or reorder lines, insert an empty line, replace or add a tab, or change the line endings."""
    rows = data.split(b"\n")
    at = rng.randrange(len(rows))
    before, row, after = rows[:at], rows[at], rows[at + 1 :]
    tab = row.replace(b"\t", b" ") if b"\t" in row else row + b"\t"
    ways = [before + after, [*before, row, row, *after], rng.sample(rows, len(rows)), [*before, b"", row, *after]]
    kinds = [b"\n".join(way) for way in [*ways, [*before, tab, *after]]]
    kinds += [data.replace(b"\n", b"\r\n"), data.replace(b"\n", b"\r"), data.rstrip(b"\n")]
    return rng.choice(kinds)


def recode(rng: random.Random, data: bytes) -> bytes:
    """Change the encoding, after inserting letters whose bytes depend on it."""
    text = data.decode("utf-8", "replace")
    for old, new in (("e", "é"), ("a", "ł")):
        if rng.random() < 0.5:
            text = text.replace(old, new, 3)
    codes = ("utf-16", "utf-16-le", "utf-8-sig", "cp1252", "latin-1", "cp1250", "utf-32")
    return text.encode(rng.choice(codes), "replace")


def nothing(rng: random.Random, data: bytes) -> bytes:
    """Make the file empty, or replace it with bytes that are not text."""
    odd = (b"", b"\n", b"\0" * 512, b"\xff" * 64, b" \n \n", rng.randbytes(300), b"{}\n", b"[]\n", b"null\n")
    return rng.choice(odd)


BYTES: tuple[Change, ...] = (flip, splice, splice, splice, insert, lines, recode, nothing)


# --- JSON


def _holders(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield, for every value nested in a list or dict, its container and its index or key."""
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            yield holder, key
            if isinstance(holder[key], (dict, list)):
                waiting.append(holder[key])


def _odd(rng: random.Random, value: Any) -> Any:
    """Return another value, often a variation of the given value."""
    if rng.random() < 0.3:
        return f"{_RAW}{rng.randrange(len(ODD_RAW))}{_RAW}"
    if isinstance(value, (int, float)) and not isinstance(value, bool) and rng.random() < 0.5:
        return rng.choice((-value, value + 1, value * 1000, value - 1, float(value), str(value), value + 0.5, 0))
    if isinstance(value, list) and value and rng.random() < 0.5:
        mixed = rng.sample(value, len(value))
        return rng.choice((value + value, value[::-1], value[:-1], [value], value[:1] * 3, mixed))
    if isinstance(value, str) and rng.random() < 0.3:
        apart = value.replace(" ", "  ")
        return rng.choice((value * 2, value.upper(), value[::-1], value + "\ud800", apart, value[:1]))
    return rng.choice(ODD_VALUES)


def _changed(rng: random.Random, value: Any) -> str:
    """Return the JSON text of a value after one to three changes."""
    box = [value]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        holder, key = rng.choice(list(_holders(box)))
        kind = rng.random()
        if isinstance(holder, dict) and kind < 0.15:
            del holder[key]
        elif isinstance(holder, dict) and kind < 0.25:
            holder[rng.choice((f"{key}x", key.upper(), "", "\ud800", "a\nb"))] = holder.pop(key)
        elif kind < 0.3 and holder is not box:
            holder.clear()
        else:
            holder[key] = _odd(rng, holder[key])
        if not box:
            box = [None]
    text = json.dumps(box[0], ensure_ascii=rng.random() < 0.5)
    if rng.random() < 0.05 and text.startswith("{") and ":" in text:  # a duplicate key
        text = text[:1] + text[1:].split(",")[0].rstrip("}") + "," + text[1:]
    for number, raw in enumerate(ODD_RAW):
        text = text.replace(json.dumps(f"{_RAW}{number}{_RAW}"), raw).replace(f'"{_RAW}{number}{_RAW}"', raw)
    return text


def json_document(rng: random.Random, data: bytes) -> bytes:
    """Replace a value in a JSON document."""
    return _changed(rng, json.loads(data)).encode("utf-8", "surrogatepass")


def json_line(rng: random.Random, data: bytes) -> bytes:
    """Replace a value in one of the first lines of a JSON Lines file."""
    rows = data.split(b"\n")
    at = rng.randrange(max(1, min(len(rows) - 1, 12)))
    rows[at] = _changed(rng, json.loads(rows[at])).encode("utf-8", "surrogatepass")
    return b"\n".join(rows)


# --- tables, YAML and tensors


def table_cell(rng: random.Random, data: bytes) -> bytes:
    """Replace a cell of a table."""
    rows = [row.split(b"\t") for row in data.split(b"\n")]
    row = rng.choice(rows)
    odd = [value for value in ODD_VALUES if isinstance(value, str) and len(value) < 100]
    odd += ["-1", "1e999", "9" * 24, "nan"]
    row[rng.randrange(len(row))] = rng.choice(odd).encode("utf-8", "surrogatepass")
    return b"\n".join(b"\t".join(row) for row in rows)


def yaml_value(rng: random.Random, data: bytes) -> bytes:
    """Replace a value of a YAML file, add an invalid line, or replace the whole file."""
    kind = rng.random()
    if kind < 0.1:
        return rng.choice(ODD_YAML)
    rows = data.split(b"\n")
    keyed = [number for number, row in enumerate(rows) if b":" in row and not row.lstrip().startswith(b"#")]
    if kind < 0.2 or not keyed:
        rows.insert(rng.randrange(len(rows)), rng.choice(ODD_YAML))
        return b"\n".join(rows)
    at = rng.choice(keyed)
    key, _, value = rows[at].partition(b":")
    odd = json.dumps(_odd(rng, value.decode())).replace(_RAW, "").encode("utf-8", "surrogatepass")
    changed = [
        key + rng.choice((b"x", b"\t", b" ", b"")) + b":" + value,
        rng.choice((b" ", b"  ", b"- ")) + rows[at],
        rows[at] + b" " + key.lstrip() + b":",
        key + b": " + odd,
    ]
    [rows[at]] = rng.choices(changed, weights=(2, 2, 1, 11))
    return b"\n".join(rows)


def tensor_header(rng: random.Random, data: bytes) -> bytes:
    """Replace a value in the JSON header of a safetensors file, with or without a correct length."""
    size = int.from_bytes(data[:8], "little")
    header = _changed(rng, json.loads(data[8 : 8 + size])).encode("utf-8", "surrogatepass")
    length = len(header) if rng.random() < 0.8 else rng.choice((0, 7, size, 1 << 40, (1 << 64) - 1))
    return length.to_bytes(8, "little") + header + data[8 + size :]


def zipped(change: Change) -> Change:
    """Return a function that applies `change` to the content of a .zst file, or corrupts the bytes of the file."""
    import zstandard

    def of(rng: random.Random, data: bytes) -> bytes:
        if rng.random() < 0.5:
            return rng.choice(BYTES)(rng, data)
        inside = zstandard.ZstdDecompressor().decompressobj().decompress(data)
        return zstandard.compress(change(rng, inside))

    return of
