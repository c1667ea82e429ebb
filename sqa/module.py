"""`python -m sqa.module NAME ARGUMENTS`: a module of the project as a program, from any folder.

In a checkout's own folder it is `python -m NAME ARGUMENTS`; an installed package has no `smt` or `guessers` at the top.
"""

import runpy
import sys

if __name__ == "__main__":
    del sys.argv[0]
    if not sys.argv:
        sys.exit("python -m sqa.module: the name of a module is needed, as guessers.evaluate")
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
