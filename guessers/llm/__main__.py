"""`python -m guessers.llm CONFIG`: estimate the cost of a run with an LLM."""

import sys

from guessers.llm.guesser import main

if __name__ == "__main__":
    sys.exit(main())
