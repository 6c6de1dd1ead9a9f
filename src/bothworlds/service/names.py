"""Which names tokens, experiments and arms may have."""

import unicodedata

LINE_BREAKING = ("Cc", "Zl", "Zp")  # Unicode categories: control characters, line and paragraph separators


def check_name(what: str, name: str) -> None:
    r"""Raise a ValueError if a name is blank, or would break a line of a log or header.

    >>> check_name("an arm", "summer sale")
    >>> check_name("an arm", "summer" + chr(10) + "sale")
    Traceback (most recent call last):
        ...
    ValueError: the name of an arm must not contain line breaks or control characters; got 'summer\nsale'
    """
    if not name.strip():
        raise ValueError(f"the name of {what} must not be empty; got {name!r}")
    if any(unicodedata.category(character) in LINE_BREAKING for character in name):
        raise ValueError(f"the name of {what} must not contain line breaks or control characters; got {name[:60]!r}")
