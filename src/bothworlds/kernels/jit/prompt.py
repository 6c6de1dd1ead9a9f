"""The first calls on a new machine do not wait for the compiler: it works beside them, and they are interpreted.

Kernel text is the same, and so is every bit. Interpreted calls take thousands of times longer, so that they are made
for a short while only; whoever has more to do than that waits for the machine code, as everyone did. A process that
forks, or ends, waits as well: machine code that is half made serves nobody. ``BOTHWORLDS_PROMPT=no`` always waits.
"""

import contextlib
import contextvars
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bothworlds.kernels.jit.fma import fma_of_arrays, fma_of_floats
from bothworlds.kernels.jit.meanwhile import meanwhile

SWITCH = "BOTHWORLDS_PROMPT"
MEANWHILE = 2.0  # seconds of interpreted calls
_PATIENT: contextvars.ContextVar[bool] = contextvars.ContextVar("patient", default=False)
_working: set[threading.Thread] = set()


def patient() -> contextlib.AbstractContextManager[None]:
    """Wait for machine code meanwhile."""
    return meanwhile(_PATIENT, True)


class Prompt:
    """A call that is interpreted while a thread compiles it; ``made`` compiles it, or has the machine code."""

    def __init__(self, plain: Callable[..., int], made: Any) -> None:
        self.made, self.ready = made, False
        self._plain, self._left = plain, MEANWHILE
        self._lock = threading.Lock()
        self._compiler: threading.Thread | None = None

    def __call__(self, *arguments: Any) -> int:
        """Run machine code if there is some by now, else the text."""
        if self.ready or self._is_ready(arguments):
            return int(self.made(*arguments))
        began = time.perf_counter()
        arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
        before = [array.copy() for array in arrays]
        try:
            with np.errstate(all="ignore"):
                return self._plain(*arguments)
        except (ArithmeticError, ValueError):  # where the interpreter stops, a processor goes on: from the beginning
            for array, kept in zip(arrays, before, strict=True):
                array[...] = kept
            return int(self.made(*arguments))
        finally:
            self._left -= time.perf_counter() - began

    def _is_ready(self, arguments: tuple[Any, ...]) -> bool:
        """Tell whether machine code is to be run, made or loaded by whoever calls if no thread makes it."""
        waits = _PATIENT.get() or self._left <= 0.0 or os.environ.get(SWITCH) == "no"
        with self._lock:
            if self._compiler is None and not waits and not lies_on_disk(self.made):
                self._compiler = self._begun(arguments)
        if self._compiler is not None:
            self._compiler.join(None if waits else 0.0)
        self.ready = self._compiler is None or not self._compiler.is_alive()
        return self.ready

    def _begun(self, arguments: tuple[Any, ...]) -> threading.Thread:
        """Start to compile for the types of a call. What cannot be compiled is said when it is called."""
        for ready in (fma_of_floats, fma_of_arrays):
            ready()  # which the interpreter needs, and which is compiled as well
        kinds = tuple(self.made.typeof_pyval(argument) for argument in arguments)
        context = contextvars.copy_context()

        def compile_() -> None:
            with contextlib.suppress(Exception):
                context.run(self.made.compile, kinds)
            _working.discard(threading.current_thread())

        compiler = threading.Thread(target=compile_, name="bothworlds-compiler")
        _working.add(compiler)
        compiler.start()
        return compiler


def lies_on_disk(dispatcher: Any) -> bool:
    """Tell whether numba has kept machine code of a function, as far as its cache says where."""
    index = getattr(getattr(dispatcher._cache, "_cache_file", None), "_index_path", None)
    return index is not None and Path(index).exists()


def settled(call: Callable[..., int]) -> Callable[..., int]:
    """Return the machine code of a prompt call once there is some: it needs no detour any more."""
    made: Callable[..., int] = call.made if isinstance(call, Prompt) and call.ready else call
    return made


def finish() -> None:
    """Let compilers finish: a child that inherits their locks could never compile."""
    for thread in list(_working):
        thread.join()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=finish)
