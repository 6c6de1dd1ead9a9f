"""Verify a store: recompute every decision and every version, segment by segment, in several processes."""

import multiprocessing
import queue
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

from bothworlds.service.dsn import location_text
from bothworlds.service.locations import open_store
from bothworlds.service.records import MARKS, unpacked
from bothworlds.service.replay import LogSegment, SegmentReplay, VerifyReport
from bothworlds.service.store import Store, erased_version_key, number_in


def segments_of(store: Store, number: int, path: str) -> list[LogSegment]:
    """Return the segments of an experiment's log, in order."""
    positions, digests, erased = {0: 0}, {}, store.note(erased_version_key(number))
    for mark in store.marks(number):
        body = unpacked(MARKS[mark.kind], mark.body)
        positions[body.version], digests[body.version] = mark.seq, body.digest
    oldest_first = reversed(store.snapshots(number))
    snapshots = [part for part in oldest_first if part.version in positions and part.version >= erased]
    if erased and (not snapshots or (snapshots[0].version, snapshots[0].digest) != (erased, digests.get(erased))):
        raise ValueError(
            f"{location_text(path)}: the snapshot of version {erased}, with which the log begins, is missing or altered"
        )
    if not snapshots:
        raise ValueError(f"{location_text(path)}: there is no snapshot to begin with")
    ends = [*snapshots[1:], None]
    last = store.last()
    return [
        LogSegment(path, number, begin, end, positions[begin.version], last if end is None else positions[end.version])
        for begin, end in zip(snapshots, ends, strict=True)
    ]


def verify(
    path: str | Path,
    name: str | None = None,
    *,
    processes: int = 2,
    on_done: Callable[[int, int], None] = lambda *_: None,
) -> VerifyReport:
    """Recompute every decision and version of an experiment, and compare them with the log.

    ``on_done`` is called after every segment with the number of finished segments and of all segments.
    """
    store = open_store(path, writes=False)
    try:
        number = number_in(store, name, path)
        segments, erased = segments_of(store, number, str(path)), store.note(erased_version_key(number))
    finally:
        store.close()
    total = VerifyReport(erased_through=erased)
    for count, report in enumerate(_verify_all(segments, processes), 1):
        total.add(report)
        on_done(count, len(segments))
    return total


def _verify_all(segments: list[LogSegment], processes: int) -> Iterator[VerifyReport]:
    """Yield the report of each segment as it is finished; this process verifies, too."""
    remaining, finished = deque(segments), queue.SimpleQueue[Future[VerifyReport]]()
    context, count = multiprocessing.get_context("spawn"), len(segments)
    workers = min(processes, count) - 1
    with ProcessPoolExecutor(max(workers, 1), mp_context=context) as pool:  # starts a process only when needed

        def submit_next(future: Future[VerifyReport] | None = None) -> None:
            if future is not None:
                finished.put(future)
            if (segment := _next_of(remaining)) is not None:
                pool.submit(verify_segment, segment).add_done_callback(submit_next)

        for _ in range(workers):
            submit_next()
        while (segment := _next_of(remaining)) is not None:
            count -= 1
            yield verify_segment(segment)
        for _ in range(count):
            yield finished.get().result()


def _next_of(remaining: deque[LogSegment]) -> LogSegment | None:
    """Remove and return the next segment, or None if another thread has taken the last one."""
    try:
        return remaining.popleft()
    except IndexError:
        return None


def verify_segment(segment: LogSegment) -> VerifyReport:
    """Verify one segment."""
    store = open_store(segment.path, writes=False)
    try:
        return SegmentReplay(store, segment).run()
    finally:
        store.close()
