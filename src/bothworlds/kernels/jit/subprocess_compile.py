"""Compile in a subprocess, which imports from the same paths and leaves machine code in the disk cache."""

import contextlib
import os
import pickle
import subprocess
import sys
from typing import Any


def start_compile_process(module: str, task: Any, *, silent: bool) -> subprocess.Popen[bytes]:
    """Run a module as a program and pickle a task to its stdin; its stderr is shown unless ``silent``."""
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL if silent else None,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
        pickle.dump(task, pipe)
    return process


def read_task() -> Any:
    """Return the task of this program, in the subprocess."""
    return pickle.load(sys.stdin.buffer)
