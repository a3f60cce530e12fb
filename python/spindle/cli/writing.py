"""Options that name a file to write, `--force`, and the verbs that have them. Each file is checked before the verb
begins (docs/explanation/safety.md, "Outputs").
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:  # parsing options must not import what writes the files
    from spindle.host.outputs import Output

FORCE = "force"


class OutputOption(click.Option):
    """An option with a checked `Output`; `kind` is a name in `library.kinds`. The verb must be a `WritingCommand`."""

    def __init__(self, *declared: Any, kind: str, **attributes: Any) -> None:
        super().__init__(*declared, **{"type": click.Path(path_type=Path), "metavar": "FILE", **attributes})
        self.kind = kind


class WritingCommand(click.Command):
    """A verb that writes files named by its user."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.params.append(
            click.Option(
                ["--force"], is_flag=True, expose_value=False, callback=_keep, is_eager=True,
                help="Replace output files that are not Spindle's own.",
            )
        )  # fmt: skip

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb with its outputs instead of their paths."""
        options = [option for option in self.params if isinstance(option, OutputOption)]
        outputs = {
            str(option.name): output_of(path, option.kind, option.opts[-1])
            for option in options
            if (path := ctx.params.get(str(option.name))) is not None
        }
        if outputs:
            from spindle.library.outputs import keep_apart

            keep_apart(list(outputs.values()), named_by(ctx))
        for output in outputs.values():
            output.check()
        ctx.params.update(outputs)
        return super().invoke(ctx)


def _keep(context: click.Context, _option: click.Parameter, value: bool) -> None:
    context.meta[FORCE] = value


def forced() -> bool:
    """True if `--force` was given."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(FORCE))


def output_of(path: Path, kind: str, option: str) -> Output:
    """Return the output; nothing is checked yet."""
    from spindle.library import outputs

    return outputs.output_of(path, kind, option, force=forced())


def named_by(context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the texts that may name a file, each with its option or argument."""
    for parameter in context.command.params:
        if isinstance(parameter, OutputOption) or parameter.name is None:
            continue
        shown = parameter.opts[-1] if isinstance(parameter, click.Option) else parameter.human_readable_name
        value = context.params.get(parameter.name)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, str | Path):
                yield os.fspath(each), shown
