"""Help texts agree with the code: names of columns, and defaults written in words."""

import click
import pytest

from bothworlds.cli import main
from bothworlds.cli.log_source import FIELDS
from bothworlds.report.figure_style import PLAIN
from bothworlds.studies.comparison import REGIMES, SIZES


def help_of(command: str, option: str) -> str:
    """Return the help of an option."""
    named = main.get_command(click.Context(main), command)
    assert named is not None
    return next(str(each.help) for each in named.params if isinstance(each, click.Option) and option in each.opts)


def test_the_help_lists_every_field_of_columns() -> None:
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
def test_defaults_in_help_texts_are_those_of_the_code(command: str, option: str, default: str) -> None:
    assert default in help_of(command, option)
