"""Supervision of the threads of a service: which ones are dead or stuck."""

import contextlib
import contextvars
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from bothworlds.kernels.jit.background_compile import compilers

CHECK_INTERVAL = 0.2  # seconds
SILENT_LIMIT = 1.4  # seconds in which a thread that computes uses no processor
COMPILE_LIMIT = 600.0  # seconds
LONGEST_GAP = 1.0  # seconds counted between two checks: after a longer pause, the process itself was stopped


class ThreadError(Exception):
    """A thread of the service is dead or stuck; it is not known whether it has stored what it was asked to."""


@dataclass(frozen=True, eq=False, slots=True)
class Activity:
    """What a thread does, and for how many seconds it may; each one is a new object, even with the same values.

    With ``computes`` it also counts as stuck if it uses no processor for a while, and no compiler does.
    """

    name: str
    limit: float = math.inf
    computes: bool = False


IDLE = Activity("waits")


class SupervisedThread:
    """A daemon thread that says what it does.

    ``fault`` tells in a sentence why the thread is dead or stuck; the `Supervisor` keeps it up to date.
    """

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self.name, self.activity = name, IDLE
        self.native_id: int | None = None
        self.error: BaseException | None = None
        self.fault: str | None = None
        self._work = work
        run = contextvars.copy_context().run  # notices of the compiler go where the caller wants them
        self._thread = threading.Thread(target=run, args=(self._run,), name=name, daemon=True)

    def _run(self) -> None:
        self.native_id = threading.get_native_id()
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
    def doing(self, name: str, limit: float = math.inf, *, computes: bool = False) -> Iterator[None]:
        """Say what the thread does in a block, and for how many seconds it may; for ``computes`` see `Activity`.

        After the block, the time of the outer activity starts anew.
        """
        outer, self.activity = self.activity, Activity(name, limit, computes)
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


class Compilers:
    """The threads that compile in the background, supervised as one."""

    name = "compiler"
    error: BaseException | None = None
    native_id: int | None = None

    def __init__(self) -> None:
        self.fault: str | None = None
        self._activity = Activity("compiles", COMPILE_LIMIT, computes=True)

    @property
    def activity(self) -> Activity:
        """What they do."""
        if compilers():
            return self._activity
        self._activity = replace(self._activity)
        return IDLE


def fault_of(
    thread: SupervisedThread | Compilers, activity: Activity, seconds: float, silent: float = 0.0
) -> str | None:
    """Return why a thread is dead or stuck, None if it is neither.

    It has done the same for ``seconds``, and used no processor for the last ``silent`` seconds.

    >>> fault_of(SupervisedThread("writer", print), Activity("writes", limit=1.5), 2.0)
    'the writer thread is stuck: it writes for more than 1.5 seconds'
    """
    error = thread.error
    if error is not None:
        reason = f"{type(error).__name__}: {error.strerror}" if isinstance(error, OSError) else repr(error)
        return f"the {thread.name} thread is dead, restart the service: {reason}"
    if seconds >= activity.limit:
        return f"the {thread.name} thread is stuck: it {activity.name} for more than {activity.limit:.3g} seconds"
    if activity.computes and silent >= SILENT_LIMIT:
        return f"the {thread.name} thread is stuck: it {activity.name}, without a step for {SILENT_LIMIT:.3g} seconds"
    return None


class Seen(NamedTuple):
    """What a supervisor has seen: an activity, for how long, the processor time used, and since when no more."""

    activity: Activity = IDLE
    seconds: float = 0.0
    used: int | None = None
    silent: float = 0.0


def processor_time(native_ids: Iterable[int | None]) -> int | None:
    """Return the nanoseconds of processor time that threads of this process have used; None if it is not known."""
    used = 0
    for number in native_ids:
        if number is not None:
            try:
                used += int(Path(f"/proc/self/task/{number}/schedstat").read_text().split()[0])
            except (OSError, ValueError, IndexError):  # it has ended, or this system does not tell
                return None
    return used


class Supervisor:
    """Checks threads in a thread of its own; calls the function of a thread after every check that finds it at fault.

    Only time that the supervisor has seen itself counts as time of an activity. A process that was paused as a whole
    therefore does not look stuck. Threads that compile are checked, too.
    """

    def __init__(self, threads: Mapping[SupervisedThread, Callable[[], None]]) -> None:
        self._threads = dict[SupervisedThread | Compilers, Callable[[], None]](threads.items())
        self._threads[Compilers()] = _nothing
        self._seen = dict.fromkeys(self._threads, Seen())
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)

    @property
    def threads(self) -> tuple[SupervisedThread | Compilers, ...]:
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
        silence = elapsed if elapsed <= LONGEST_GAP else 0.0  # after a longer gap nobody may have had a processor
        elapsed = min(elapsed, LONGEST_GAP)
        for thread, at_fault in self._threads.items():
            seen = self._seen[thread] = self._look(thread, self._seen[thread], elapsed, silence)
            thread.fault = fault_of(thread, seen.activity, seen.seconds, seen.silent)
            if thread.fault is not None:
                with contextlib.suppress(Exception):  # the next check tries again
                    at_fault()

    def _look(self, thread: SupervisedThread | Compilers, before: Seen, elapsed: float, silence: float) -> Seen:
        """Return what is seen of a thread now."""
        activity = thread.activity
        ids = [thread.native_id, *(compiler.native_id for compiler in compilers())]
        used = processor_time(ids) if activity.computes else None
        if activity is not before.activity:
            return Seen(activity, 0.0, used)
        is_silent = used is not None and used == before.used
        return Seen(activity, before.seconds + elapsed, used, before.silent + silence if is_silent else 0.0)


def _nothing() -> None:
    """Do nothing: no request waits for the threads that compile."""
