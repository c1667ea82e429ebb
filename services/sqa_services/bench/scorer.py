"""Claim: `sqa scorer bleu` answers SCORE lines several times faster than METEOR's jar, and does not grow with them.

    python -m sqa_services.bench.scorer [--lines 100000] [--jar-lines 2000]

One line is sent when the last is answered, as tuners do.  Prints TSV: lines, lines/s of wall and of processor time,
memory (MiB resident) after a tenth of the lines and after all.  Linux only: it reads /proc.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path

from sqa.core.errors import ConfigError
from sqa.data.datasets import available, load_questions
from sqa_services.bench.servers import memory
from sqa_services.protocols import meteor


def requests() -> Iterator[bytes]:
    """SCORE lines without end: human sentences, and the same with every third word taken from the next one."""
    questions = load_questions("xqb-es" if available("xqb-es") else "mini-es")
    sentences = [sentence.split() for question in questions for sentence in question.reference if sentence.split()]
    pairs = zip(sentences, [*sentences[1:], sentences[0]], strict=True)
    for number, (own, other) in enumerate(cycle(pairs)):
        words = [other[i % len(other)] if i % 3 == 2 else word for i, word in enumerate(own)]
        yield f"SCORE ||| {' '.join(own)} {number} ||| {' '.join(words)} {number}\n".encode()  # no line comes twice


def processor(pid: int) -> float:
    """Seconds of processor time."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(command: Sequence[str], n: int) -> tuple[int, float, float, float, float]:
    """(lines, lines/s of wall time, of processor time, MiB after a tenth, MiB after all), without the start."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None and program.stdout is not None
        early = 0.0
        for number, line in enumerate(islice(requests(), n + 1)):
            program.stdin.write(line)
            program.stdin.flush()
            reply = program.stdout.readline()
            if not reply or reply.startswith(b"Error"):
                raise ConfigError(f"{command[0]} answered {reply!r} to line {number + 1}")
            if number == 0:  # the program has started
                begun, used = time.perf_counter(), processor(program.pid)
            if number == n // 10:
                early = memory(program.pid)
        wall, spent, late = time.perf_counter() - begun, processor(program.pid) - used, memory(program.pid)
        program.stdin.close()
    return n, n / wall, n / spent, early, late


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m sqa_services.bench.scorer", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--lines", type=int, default=100_000, help="for our scorer (default: %(default)s)")
    parser.add_argument("--jar-lines", type=int, default=2_000, help="for the jar (default: %(default)s)")
    options = parser.parse_args(arguments)
    print("program", "lines", "lines/s", "lines/s of processor time", "MiB at a tenth", "MiB at the end", sep="\t")
    rates = []
    for name, command, n in (
        ("METEOR 1.5 jar", meteor.command(), options.jar_lines),
        ("sqa scorer bleu", (sys.executable, "-m", "sqa", "scorer", "bleu"), options.lines),
    ):
        row = measure(command, n)
        rates.append(row[1:3])
        print(name, row[0], *(f"{value:.1f}" for value in row[1:]), sep="\t", flush=True)
    print("ratio", "", *(f"{ours / theirs:.1f}" for theirs, ours in zip(*rates, strict=True)), "", "", sep="\t")


if __name__ == "__main__":
    main()
