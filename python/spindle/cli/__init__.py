"""The command line: one module a verb, none with logic of its own. `main` is the program."""

from __future__ import annotations

import sys


def main() -> None:
    """The program. What it needs is imported here, so that Ctrl-C meanwhile ends it with a line as well."""
    try:
        from spindle.cli.main import main as program
    except KeyboardInterrupt:
        print("spindle: stopped before anything was done", file=sys.stderr)
        sys.exit(1)
    program()
