"""Supervision of the threads of a service: which ones are dead or stuck."""

import contextlib
import contextvars
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

CHECK_INTERVAL = 0.2  # seconds
LONGEST_GAP = 1.0  # seconds counted between two checks: after a longer pause, the process itself was stopped


class ThreadError(Exception):
    """A thread of the service is dead or stuck; it is not known whether it has stored what it was asked to."""


@dataclass(frozen=True, eq=False, slots=True)
class Activity:
    """What a thread does, and for how many seconds it may; each one is a new object, even with the same values."""

    name: str
    limit: float = math.inf


IDLE = Activity("waits")


class SupervisedThread:
    """A daemon thread that says what it does.

    ``fault`` tells in a sentence why the thread is dead or stuck; the `Supervisor` keeps it up to date.
    """

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self.name, self.activity = name, IDLE
        self.error: BaseException | None = None
        self.fault: str | None = None
        self._work = work
        run = contextvars.copy_context().run  # notices of the compiler go where the caller wants them
        self._thread = threading.Thread(target=run, args=(self._run,), name=name, daemon=True)

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.error = error

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def dead(self) -> bool:
        """Whether the thread has ended by an error."""
        return self.error is not None

    @contextlib.contextmanager
    def doing(self, name: str, limit: float = math.inf) -> Iterator[None]:
        """Say what the thread does in a block, and for how many seconds it may.

        After the block, the time of the outer activity starts anew.
        """
        outer, self.activity = self.activity, Activity(name, limit)
        try:
            yield
        finally:
            self.activity = replace(outer)

    def wait(self) -> None:
        """Wait until the thread has ended, however long it is stuck."""
        self._thread.join()

    def join(self) -> bool:
        """Wait until the thread has ended or is stuck; return whether it has ended."""
        while self._thread.is_alive():
            self._thread.join(CHECK_INTERVAL)
            if self.fault is not None and self._thread.is_alive():
                return False
        return True


def fault_of(thread: SupervisedThread, activity: Activity, seconds: float) -> str | None:
    """Return why a thread is dead, or stuck after ``seconds`` of an activity; None if it is neither.

    >>> fault_of(SupervisedThread("writer", print), Activity("writes", limit=1.5), 2.0)
    'the writer thread is stuck: it writes for more than 1.5 seconds'
    """
    error = thread.error
    if error is not None:
        reason = f"{type(error).__name__}: {error.strerror}" if isinstance(error, OSError) else repr(error)
        return f"the {thread.name} thread is dead, restart the service: {reason}"
    if seconds >= activity.limit:
        return f"the {thread.name} thread is stuck: it {activity.name} for more than {activity.limit:.3g} seconds"
    return None


class Supervisor:
    """Checks threads in a thread of its own; calls the function of a thread after every check that finds it at fault.

    Only time that the supervisor has seen itself counts as time of an activity. A process that was paused as a whole
    therefore does not look stuck.
    """

    def __init__(self, threads: Mapping[SupervisedThread, Callable[[], None]]) -> None:
        self._threads = threads
        self._seen = dict.fromkeys(threads, (IDLE, 0.0))
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)

    @property
    def threads(self) -> tuple[SupervisedThread, ...]:
        """The threads under supervision."""
        return tuple(self._threads)

    @property
    def faults(self) -> list[str]:
        """Why threads are dead or stuck; empty if none is."""
        faults = [thread.fault for thread in self._threads if thread.fault is not None]
        if self._thread.ident is not None and not self._thread.is_alive() and not self._stopping.is_set():
            faults.append("the supervisor thread is dead, restart the service")
        return faults

    def start(self) -> None:
        """Start to check."""
        self._thread.start()

    def stop(self) -> None:
        """Stop to check."""
        self._stopping.set()
        self._thread.join()

    def _watch(self) -> None:
        last = time.monotonic()
        while not self._stopping.wait(CHECK_INTERVAL):
            now = time.monotonic()
            self.check(now - last)
            last = now

    def check(self, elapsed: float) -> None:
        """Check all threads, ``elapsed`` seconds after the last check."""
        for thread, at_fault in self._threads.items():
            activity, (before, seconds) = thread.activity, self._seen[thread]
            seconds = seconds + min(elapsed, LONGEST_GAP) if activity is before else 0.0
            self._seen[thread] = activity, seconds
            thread.fault = fault_of(thread, activity, seconds)
            if thread.fault is not None:
                with contextlib.suppress(Exception):  # the next check tries again
                    at_fault()
