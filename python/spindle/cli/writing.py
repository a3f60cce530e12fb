"""Options that name a file to be written, `--force`, and the verbs that have them: each file is looked at before the
verb begins (docs/safety.md, "Outputs").
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:  # a verb's options are made without what writes its files
    from spindle.host.outputs import Output

FORCE = "force"


class OutputOption(click.Option):
    """Its value is a checked `Output`; `kind` is a name in `cli.kinds`. The verb must be a `Writing`."""

    def __init__(self, *declared: Any, kind: str, **attributes: Any) -> None:
        super().__init__(*declared, **{"type": click.Path(path_type=Path), "metavar": "FILE", **attributes})
        self.kind = kind


class Writing(click.Command):
    """A verb that writes files which its user names."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.params.append(
            click.Option(
                ["--force"], is_flag=True, expose_value=False, callback=_keep, is_eager=True,
                help="Replace files that are named as outputs and are not Spindle's own.",
            )
        )  # fmt: skip

    def invoke(self, ctx: click.Context) -> Any:
        """The verb, with its outputs instead of their paths."""
        options = [option for option in self.params if isinstance(option, OutputOption)]
        outputs = {
            str(option.name): output_of(path, option.kind, option.opts[-1])
            for option in options
            if (path := ctx.params.get(str(option.name))) is not None
        }
        keep_apart(list(outputs.values()), named_by(ctx))
        for output in outputs.values():
            output.check()
        ctx.params.update(outputs)
        return super().invoke(ctx)


def _keep(context: click.Context, _option: click.Parameter, value: bool) -> None:
    context.meta[FORCE] = value


def forced() -> bool:
    """Whether `--force` was given."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(FORCE))


def output_of(path: Path, kind: str, option: str) -> Output:
    """Nothing is looked at yet."""
    from spindle.cli.kinds import KINDS
    from spindle.host.outputs import Output

    return Output(path, KINDS[kind], option, force=forced())


def keep_apart(outputs: list[Output], others: Iterable[tuple[str, str]]) -> None:
    """No file is written twice by one command, or written although the command reads or tests it. `--force` does not
    help. `others`: what else the command names, each with its option or argument. Raises click.UsageError, Refused.
    """
    from spindle.host.errors import Refused

    named = list(others)
    for at, output in enumerate(outputs):
        for other in outputs[:at]:
            if _is_same(output.path, os.fspath(other.path)):
                raise click.UsageError(f"{other.option} and {output.option} name one file, {output.path}; give two")
        for text, option in named:
            if option != output.option and _is_same(output.path, text):
                raise Refused(f"{output.option} {output.path}: is {option} of the same command; name another file")


def named_by(context: click.Context) -> Iterator[tuple[str, str]]:
    """Texts of options and arguments, any of which may be the name of a file, each with its option or argument."""
    for parameter in context.command.params:
        if isinstance(parameter, OutputOption) or parameter.name is None:
            continue
        shown = parameter.opts[-1] if isinstance(parameter, click.Option) else parameter.human_readable_name
        value = context.params.get(parameter.name)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, str | Path):
                yield os.fspath(each), shown


def _is_same(path: Path, text: str) -> bool:
    """By its number, so by whatever link; of a file that is not there yet by its folder and name."""
    try:
        return os.path.samefile(path, text)
    except FileNotFoundError:
        return os.path.realpath(path) == os.path.realpath(text)
    except (OSError, ValueError):
        return False
