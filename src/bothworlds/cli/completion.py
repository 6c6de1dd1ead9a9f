"""`bothworlds completion`: completion scripts for shells."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    r"""Print a completion script for your shell.

    \b
    Examples:
      bothworlds completion bash >> ~/.bashrc
      bothworlds completion zsh >> ~/.zshrc
      bothworlds completion fish > ~/.config/fish/completions/bothworlds.fish
    """
    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"this version of click has no completion for {shell}")
    root = ctx.find_root()
    click.echo(script(root.command, {}, "bothworlds", "_BOTHWORLDS_COMPLETE").source())
