"""`python -m sqa` is the `sqa` command."""

from sqa.cli import main

if __name__ == "__main__":
    main()
