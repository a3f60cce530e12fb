"""Targets on the command line: one rule for what a name means, in every verb."""

from __future__ import annotations

import click


class TargetName(click.ParamType[str]):
    """A path; a bare name that is a block device and no file here means /dev/NAME (`host.paths.target_path`)."""

    name = "target"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """As click calls it."""
        from spindle.host.paths import target_path

        return target_path(value)


TARGET = TargetName()
