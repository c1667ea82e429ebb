"""The `sqa` command: one module per group of commands, joined in `sqa.cli.app`."""

from sqa.cli.app import main

__all__ = ["main"]
