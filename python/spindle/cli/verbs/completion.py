"""`spindle completion`: what a shell needs to complete verbs, options and values."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from spindle.cli.exits import Exit

SHELLS = ("bash", "zsh", "fish")


def script(shell: str) -> str:
    """The shell's script; it asks the program for what fits, so that it stays true when options change."""
    from spindle.cli.main import COMPLETE, spindle

    made = get_completion_class(shell)
    assert made is not None
    # Not `made.source`: for bash it looks for a version of bash here, where the script may only be made.
    return ShellComplete.source(made(spindle, {}, "spindle", COMPLETE))


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> Exit:
    """Print the completion script of SHELL.

    A shell looks for it here, below ~/.local/share or /usr/share: bash-completion/completions/spindle (bash),
    zsh/site-functions/_spindle (zsh), fish/vendor_completions.d/spindle.fish (fish).
    """
    print(script(shell))
    return Exit.FINE
