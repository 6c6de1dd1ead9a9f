"""`bothworlds completion`: what a shell needs to complete our commands."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    r"""Print the completion script of a shell.

    \b
    Examples:
      bothworlds completion bash >> ~/.bashrc
      bothworlds completion zsh >> ~/.zshrc
      bothworlds completion fish > ~/.config/fish/completions/bothworlds.fish
    """
    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"this version of click does not know {shell}")
    root = ctx.find_root()
    click.echo(made(root.command, {}, "bothworlds", "_BOTHWORLDS_COMPLETE").source())
