"""Target names on the command line: the same rule in every verb."""

from __future__ import annotations

import click


class TargetName(click.ParamType[str]):
    """A path. A bare name of a block device means /dev/NAME if no file here has it (`host.paths.target_path`)."""

    name = "target"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Convert as click expects."""
        from spindle.host.paths import target_path

        return target_path(value)


TARGET = TargetName()
