"""The command line. `main` is the program."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the bare module: `signal` takes time to import


def main() -> None:
    """The program. Until it is loaded, Ctrl-C ends the process silently: nothing has to be undone."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from spindle.cli.main import main as program

    program()
