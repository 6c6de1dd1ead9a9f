"""When the service was started and stopped, as notes in its store, in milliseconds."""

import contextlib
from typing import NamedTuple

from bothworlds.service.store import Store, StoreError

MOST_STARTS = 50  # kept
COUNT = "starts"


class Start(NamedTuple):
    """A start of a host, and its stop in seconds since 1970; None if it runs, was killed, or could not note it."""

    time: float
    stopped: float | None


def note_start(store: Store, now: float) -> int:
    """Note a start, and return its number; a store that cannot be written now is no reason not to start."""
    number = store.note(COUNT)
    _append(store, {COUNT: number + 1, _key("start", number): int(1e3 * now), _key("stop", number): 0})
    return number


def note_stop(store: Store, number: int, now: float) -> None:
    """Note the stop after a start."""
    _append(store, {_key("stop", number): int(1e3 * now)})


def read_starts(store: Store) -> list[Start]:
    """Return the newest starts, oldest first."""
    count = store.note(COUNT)
    numbers = range(max(0, count - MOST_STARTS), count)
    return [Start(store.note(_key("start", n)) / 1e3, store.note(_key("stop", n)) / 1e3 or None) for n in numbers]


def restart_text(before: Start | None, start: Start) -> tuple[str, str]:
    """Return a word and a sentence about a start, where ``before`` is the one before it.

    >>> restart_text(Start(10.0, 50.0), Start(52.0, None))
    ('restart', '2.0 s after the service was stopped')
    """
    if before is None:
        return "start", "of the service"
    if before.stopped is None:
        return "restart", "after an end that was not noted: the service was killed, or its disk was full"
    return "restart", f"{start.time - before.stopped:,.1f} s after the service was stopped"


def _key(word: str, number: int) -> str:
    return f"{word} {number % MOST_STARTS}"


def _append(store: Store, notes: dict[str, int]) -> None:
    with contextlib.suppress(StoreError):
        store.append([], notes=notes)
