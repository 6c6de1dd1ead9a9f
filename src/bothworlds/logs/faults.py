"""What is wrong with a log, in a sentence that names the row."""

from pathlib import Path


class LogError(ValueError):
    """A log lacks something, or says what cannot be: which file, which row, what is wrong and what to do.

    ``source`` is the file or the kind of list, ``row`` the number of the row, counted from 1; None where it is about
    the file as a whole.

    >>> print(LogError("clicks.csv", 17, "propensity 1.5 is no probability"))
    clicks.csv, row 17: propensity 1.5 is no probability
    """

    def __init__(self, source: str | Path, row: int | None, what: str) -> None:
        super().__init__(f"{source}: {what}" if row is None else f"{source}, row {row}: {what}")
        self.source, self.row = str(source), row


def shown(value: object) -> str:
    """Return a value for a sentence, not too long."""
    return f"{value!r:.80}"
