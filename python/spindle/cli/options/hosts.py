"""The option for the agent of other hosts."""

from __future__ import annotations

import click

agent_option = click.option(
    "--agent",
    type=click.Path(),
    metavar="FILE",
    help="spindle-agent, copied to hosts without one.  [default: `make agent`'s]",
)
