"""What holds while a block runs, for whoever runs it."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TypeVar

Value = TypeVar("Value")


@contextlib.contextmanager
def meanwhile(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Give a variable another value while a block runs.

    >>> loud = ContextVar("loud", default=True)
    >>> with meanwhile(loud, False):
    ...     loud.get()
    False
    >>> loud.get()
    True
    """
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)
