"""Help texts name what there is: columns that can be named, and defaults that stand in words."""

import click
import pytest

from bothworlds.cli import main
from bothworlds.cli.evaluated_log import FIELDS
from bothworlds.report.look import PLAIN
from bothworlds.simulation.comparison import REGIMES, SIZES


def help_of(command: str, option: str) -> str:
    """Return the help of an option."""
    found = main.get_command(click.Context(main), command)
    assert found is not None
    return next(str(one.help) for one in found.params if isinstance(one, click.Option) and option in one.opts)


def test_every_column_that_can_be_named_is_in_the_help() -> None:
    assert [field for field in FIELDS if field not in help_of("evaluate", "--column")] == []


@pytest.mark.parametrize(
    ("command", "option", "default"),
    [
        ("report", "--width", f"[{PLAIN.width}]"),
        ("report", "--font-size", f"[{PLAIN.font_size:g}]"),
        ("bounds", "--gap", f"[{SIZES['gap']} without PROBLEM"),
        ("compare", "--regimes", f"[{', '.join(REGIMES)}]"),
    ],
)
def test_defaults_in_words_are_those_of_the_code(command: str, option: str, default: str) -> None:
    assert default in help_of(command, option)
