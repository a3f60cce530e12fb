"""The root of the errors that a person can cause or meet. Each text is one line: what, where, what to do.

Texts name options as a caller of the library gives them: "`create=`: the null target needs no file". The command line
shows `create=` as --create.
"""

from __future__ import annotations


class SpindleError(Exception):
    """What was asked for could not be done."""

    exit_code = 1
    """Exit status of the program: 1 failed, 2 usage, 3 refused for safety."""

    @property
    def lines(self) -> list[str]:
        """A line for each reason, where there are several."""
        return []
