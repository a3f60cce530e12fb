"""Files that a caller names for results. docs/explanation/safety.md, "Outputs", lists what is refused."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from spindle.host.errors import Refusal
from spindle.host.outputs import Output
from spindle.library.kinds import KINDS
from spindle.run.errors import Usage


def output_of(path: str | os.PathLike[str], kind: str, name: str, *, force: bool = False) -> Output:
    """An output of a `kind` of `library.kinds`, which the option or argument `name` gives. Nothing is opened yet."""
    if not isinstance(path, str | os.PathLike):
        raise Usage(f"{name} {path}: is neither a text nor a path")
    return Output(Path(path), KINDS[kind], name, force=force)


def keep_apart(outputs: Sequence[Output], others: Iterable[tuple[str, str]]) -> None:
    """Refuse an output that is named twice, or that is read or tested by the same call; `force` does not help.

    `others`: everything else that the caller named, each with its option or argument. Raises `Usage` or `Refusal`.
    """
    named = list(others)
    for at, output in enumerate(outputs):
        for other in outputs[:at]:
            if _is_same(output.path, os.fspath(other.path)):
                raise Usage(f"{other.option} and {output.option} name one file, {output.path}; give two")
        for text, option in named:
            if option != output.option and _is_same(output.path, text):
                raise Refusal(f"{output.option} {output.path}: is {option} of the same command; name another file")


def _is_same(path: Path, text: str) -> bool:
    """Compare by number, so through any link; a file that is not there yet by its folder and name."""
    try:
        return os.path.samefile(path, text)
    except FileNotFoundError:
        return os.path.realpath(path) == os.path.realpath(text)
    except (OSError, ValueError):
        return False
