"""`python -m guessers.llm CONFIG`: what a run with an llm would cost."""

import sys

from guessers.llm.guesser import main

if __name__ == "__main__":
    sys.exit(main())
