"""The command line as tests call it: in this process, with what it says and how it ends."""

from click.testing import CliRunner, Result

from bothworlds.cli import main


def called(*arguments: str, env: dict[str, str] | None = None) -> Result:
    """Call the program with some arguments."""
    return CliRunner().invoke(main, list(arguments), env=env)
