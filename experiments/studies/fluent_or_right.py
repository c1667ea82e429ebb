"""Two systems, one fluent and one right?   python -m experiments.studies.fluent_or_right RUN_A RUN_B

How far their scores differ says `sqa compare`; here are the questions that only one of two runs answers at their end:
which names of the human translation the wrong one lost that the right one has, which it invented, and what the guesser
said instead.  The example behind it: a language model with the higher BLEU and the fewer right answers.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sqa.core.errors import ConfigError, returns_exit_code
from sqa.core.trace import QuestionTrace
from sqa.metrics.quality.names import lost_and_invented
from sqa.metrics.quality.segment import lines
from sqa.report.markdown import head, row
from sqa.run import folder as folders


@returns_exit_code
def main(arguments: Sequence[str] | None = None) -> None:
    """Print the four counts and the two lists as Markdown."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.studies.fluent_or_right", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("a", type=Path, help="folder of a finished run")
    parser.add_argument("b", type=Path, help="folder of a run on the same questions with the same guesser")
    options = parser.parse_args(arguments)
    a, b = folders.read(options.a), folders.read(options.b)
    if (a.dataset, a.questions) != (b.dataset, b.questions):
        raise ConfigError(f"{options.a} and {options.b}: not on the same questions")
    if a.config.guesser is None or a.config.guesser != b.config.guesser:
        raise ConfigError(f"{options.a} and {options.b}: need the same guesser, or the answers cannot be compared")
    pairs = list(zip(a.open().traces, b.open().traces, strict=True))
    print(table(["right at the end", "questions"], [[name, str(n)] for name, n in counts(pairs).items()]))
    for name, ordered in (("A", [(y, x) for x, y in pairs]), ("B", pairs)):
        print(f"Only {name} is right; of the other:\n")
        print(table(["question", "answer", "names lost", "names invented", "its answer"], list(failures(ordered))))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table and a blank line."""
    return "\n".join([*head(columns), *map(row, rows), ""])


def is_right(trace: QuestionTrace) -> bool:
    """Whether the first guess after the last word is the answer."""
    return bool(len(trace.rank)) and int(trace.rank[-1]) == 1


def counts(pairs: Sequence[tuple[QuestionTrace, QuestionTrace]]) -> Counter[str]:
    """Questions by who is right."""
    names = {(True, True): "both", (True, False): "A only", (False, True): "B only", (False, False): "neither"}
    found = Counter(dict.fromkeys(names.values(), 0))
    found.update(names[is_right(a), is_right(b)] for a, b in pairs)
    return found


def failures(pairs: Sequence[tuple[QuestionTrace, QuestionTrace]]) -> Iterator[list[str]]:
    """A row for each (wrong, right): names that the wrong one lost and the right one has, and those it invented."""
    for wrong, right in pairs:
        if is_right(right) and not is_right(wrong):
            source = wrong.question.text
            lost, invented = lost_and_invented(source, *lines(wrong))
            kept, _ = lost_and_invented(source, *lines(right))
            guess = wrong.guesses[-1][0].page if wrong.guesses and wrong.guesses[-1] else "-"
            yield [wrong.question.id, wrong.question.page, ", ".join(lost - kept), ", ".join(invented), guess]


if __name__ == "__main__":
    sys.exit(main())
