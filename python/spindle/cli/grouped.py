"""Help of a verb with many options: in groups, and short unless all of it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

_ALL = "help-all"


class GroupedCommand(click.Command):
    """`groups`: the first option of a group -> its title; the options after it belong to it, up to the next such
    option. A title may come again. `common`: the options that `--help` shows; `--help-all` shows all of them."""

    def __init__(
        self, *arguments: Any, groups: Mapping[str, str], common: frozenset[str] = frozenset(), **attributes: Any
    ) -> None:
        super().__init__(*arguments, **attributes)
        self.groups = groups
        self.common = common
        self.params.append(
            click.Option(
                ["--help-all"], is_flag=True, expose_value=False, is_eager=True, callback=_show_all,
                help="Show all options and exit.",
            )
        )  # fmt: skip

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups that have an option to show."""
        everything = bool(ctx.meta.get(_ALL))
        for title, options in self.grouped(ctx).items():
            rows = [row for option in options if everything or self._is_common(option) for row in _row(option, ctx)]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def grouped(self, ctx: click.Context) -> dict[str, list[click.Parameter]]:
        """Title -> options, in the order in which the titles first come."""
        found: dict[str, list[click.Parameter]] = {title: [] for title in self.groups.values()}
        title = next(iter(found))
        for option in self.get_params(ctx):
            if isinstance(option, click.Option):
                title = self.groups.get(option.opts[-1], title)
                found[title].append(option)
        return found

    def _is_common(self, option: click.Parameter) -> bool:
        return option.opts[-1] in self.common


def _row(option: click.Parameter, ctx: click.Context) -> Iterator[tuple[str, str]]:
    record = option.get_help_record(ctx)
    if record is not None:
        yield record


def _show_all(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        context.meta[_ALL] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()
