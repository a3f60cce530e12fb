"""The command line: one module a verb, none with logic of its own. `main` is the program."""

from spindle.cli.main import main

__all__ = ["main"]
