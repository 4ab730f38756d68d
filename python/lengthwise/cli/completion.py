"""`lengthwise completion`: the script that makes a shell complete commands and options."""

from __future__ import annotations

import click


@click.command(short_help="The script that completes commands in your shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands and options in your shell.

    \b
    bash:  lengthwise completion bash >> ~/.bashrc
    zsh:   lengthwise completion zsh  >> ~/.zshrc
    fish:  lengthwise completion fish > ~/.config/fish/completions/lengthwise.fish
    """  # noqa: D301 (\b is click's mark for lines to keep)
    from click.shell_completion import get_completion_class

    from lengthwise.cli.app import lengthwise

    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"this version of click has no completion for {shell}")
    click.echo(kind(lengthwise, {}, "lengthwise", "_LENGTHWISE_COMPLETE").source())
