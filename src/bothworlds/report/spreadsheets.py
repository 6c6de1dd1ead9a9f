"""Names in tables that spreadsheets open: a name is never a formula there, and is read back as it was."""

import re

FORMULA = re.compile(r"'*[=+\-@\t\r]")  # what a spreadsheet would compute, also behind our own mark


def as_text(name: str) -> str:
    """Return a name that a spreadsheet takes for text: one that begins as a formula has an apostrophe before it.

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
