"""howdah completion: print the script for completion with TAB."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands and options in a shell.

    \b
        bash   howdah completion bash > ~/.local/share/bash-completion/completions/howdah
        zsh    howdah completion zsh > ~/.zfunc/_howdah      (with ~/.zfunc in fpath)
        fish   howdah completion fish > ~/.config/fish/completions/howdah.fish
    """  # noqa: D301 - \b keeps click from rewrapping
    completion_class = get_completion_class(shell)
    assert completion_class is not None
    click.echo(completion_class(ctx.find_root().command, {}, "howdah", "_HOWDAH_COMPLETE").source())
