"""`tidemill completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from tidemill.cli.output import say

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands and options in SHELL.

    \b
    eval "$(tidemill completion bash)"     # in ~/.bashrc
    eval "$(tidemill completion zsh)"      # in ~/.zshrc
    tidemill completion fish > ~/.config/fish/completions/tidemill.fish
    """
    found = get_completion_class(shell)
    assert found is not None, "click knows these shells"
    root = ctx.find_root().command
    say(found(root, {}, "tidemill", "_TIDEMILL_COMPLETE").source())
