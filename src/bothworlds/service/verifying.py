"""Every decision and every version of a store computed again from its log.

A log falls into pieces between snapshots. Each piece begins with the policy in its snapshot, draws every decision again
and learns every batch again, and must end with the policy in the next snapshot, bit for bit; so pieces can be checked
at the same time, and all of them together check the whole.
"""

import multiprocessing
import queue
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

from bothworlds.service.pieces import Found, Piece, pieces_of
from bothworlds.service.sqlite import SQLiteStore
from bothworlds.service.store import number_in, sealed_in


def verify(
    path: str | Path,
    name: str | None = None,
    *,
    processes: int = 2,
    told: Callable[[int, int], None] = lambda *_: None,
) -> Found:
    """Compute every decision and version of an experiment again; ``told`` hears of every piece that is done."""
    store = SQLiteStore(path, writes=False)
    try:
        number = number_in(store, name, Path(path))
        pieces, sealed = pieces_of(store, number, str(path)), store.noted(sealed_in(number))
    finally:
        store.close()
    whole = Found(sealed=sealed)
    for count, found in enumerate(_checked_all(pieces, processes), 1):
        whole.add(found)
        told(count, len(pieces))
    return whole


def _checked_all(pieces: list[Piece], processes: int) -> Iterator[Found]:
    """Yield what is found in each piece, as they are done: here, and in further processes at the same time."""
    left, done = deque(pieces), queue.SimpleQueue[Future[Found]]()
    context, count = multiprocessing.get_context("spawn"), len(pieces)
    further = min(processes, count) - 1
    with ProcessPoolExecutor(max(further, 1), mp_context=context) as pool:  # which starts none before it is needed

        def go_on(ended: Future[Found] | None = None) -> None:
            if ended is not None:
                done.put(ended)
            if (piece := _next_of(left)) is not None:
                pool.submit(checked, piece).add_done_callback(go_on)

        for _ in range(further):
            go_on()
        while (piece := _next_of(left)) is not None:
            count -= 1
            yield checked(piece)
        for _ in range(count):
            yield done.get().result()


def _next_of(left: deque[Piece]) -> Piece | None:
    """Take the next piece, or None where another thread has taken the last one."""
    try:
        return left.popleft()
    except IndexError:
        return None


def checked(piece: Piece) -> Found:
    """Compute one piece again."""
    from bothworlds.service.walking import Walk  # here, so that processes import the compiler at the same time

    store = SQLiteStore(piece.path, writes=False)
    try:
        return Walk(store, piece).done()
    finally:
        store.close()
