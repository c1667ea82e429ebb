"""`python -m smt.training.lexical_lines pl-en`: rough Polish for English lines, from stdin to stdout.

This is a full-input system for the translator `command` (configs/smt_pl_en.yaml) and for `python -m guessers.noise
--there "python -m smt.training.lexical_lines pl-en"`.  Equal lines give equal Polish.  A line becomes empty if the
lexicon lacks too many of its words.
"""

import argparse
import sys
from collections.abc import Sequence

from smt.training.lexical import back_translate_lexically
from smt.training.prepare import lexicon_pairs, names
from sqa.core.errors import returns_exit_code
from sqa.core.packages import need

SEED = 0


@returns_exit_code
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    program, description = "python -m smt.training.lexical_lines", (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("pair", choices=("pl-en",), help="languages of the lexicon")
    pair = parser.parse_args(arguments).pair
    need("morfeusz2", "rough Polish")
    entries = [*lexicon_pairs(pair), *names("pl")]
    lines = [line.rstrip("\n") for line in sys.stdin]
    print("\n".join(back_translate_lexically(lines, entries, SEED)))


if __name__ == "__main__":
    sys.exit(main())
