"""`python -m smt.training.lexical_lines pl-en`: rough Polish for English lines, from stdin to stdout.

This is a full-input system for programs that accept a command: `python -m guessers.noise --there "python -m
smt.training.lexical_lines pl-en"`.  Equal lines give equal Polish.  A line becomes empty if the lexicon lacks too many
of its words.
"""

import argparse
import sys
from collections.abc import Sequence

from smt.training.lexical import back_translate_lexically
from smt.training.prepare import lexicon_pairs, names
from sqa.core.errors import returns_exit_code

SEED = 0


@returns_exit_code
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    program, description = "python -m smt.training.lexical_lines", (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("pair", choices=("pl-en",), help="languages of the lexicon")
    pair = parser.parse_args(arguments).pair
    entries = [*lexicon_pairs(pair), *names("pl")]
    lines = [line.rstrip("\n") for line in sys.stdin]
    print("\n".join(back_translate_lexically(lines, entries, SEED)))


if __name__ == "__main__":
    sys.exit(main())
