"""Names in CSV cells, written so that no spreadsheet takes a name for a formula, and read back unchanged."""

import re

FORMULA = re.compile(r"'*[=+\-@\t\r]")  # what a spreadsheet would compute, also after our own apostrophes


def as_text(name: str) -> str:
    """Return a name that a spreadsheet takes for text: an apostrophe precedes a name that starts like a formula.

    >>> as_text("=1+1"), as_text("LinUCB")
    ("'=1+1", 'LinUCB')
    """
    return f"'{name}" if FORMULA.match(name) else name


def from_text(cell: str) -> str:
    """Return the name that `as_text` wrote.

    >>> from_text("'=1+1"), from_text("'twas")
    ('=1+1', "'twas")
    """
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell
