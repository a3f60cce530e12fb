"""The root of the errors that a person can cause or meet. Each text is one line: what, where, what to do.

Texts name options as a caller of the library gives them: "`create=`: the null target needs no file". The command line
shows the option (`cli.failure.spelled`).
"""

from __future__ import annotations


class SpindleError(Exception):
    """The request could not be carried out."""

    exit_code = 1
    """Exit status of the program: 1 failed, 2 usage, 3 refused for safety."""

    @property
    def lines(self) -> list[str]:
        """A line for each reason, where there are several."""
        return []


class ConfigError(SpindleError, ValueError):
    """A workload, a machine file or a quantity is wrong; the text is one line: place, what, what is allowed."""

    exit_code = 2


class NotModelled(ConfigError):
    """Something that a model lacks: of a machine (the lab may have it), or of a measured case."""


class RunError(SpindleError, OSError):
    """The load could not be started: one line."""
