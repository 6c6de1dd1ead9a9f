"""Compile in a process of its own: it sees the modules that this one sees, and leaves machine code on disk."""

import contextlib
import os
import pickle
import subprocess
import sys
from typing import Any


def begun(module: str, told: Any, *, silent: bool) -> subprocess.Popen[bytes]:
    """Start a module as a program that is told something; its words go to stderr unless ``silent``."""
    helper = subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL if silent else None,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert helper.stdin is not None
    with contextlib.suppress(BrokenPipeError), helper.stdin as line:
        pickle.dump(told, line)
    return helper


def told() -> Any:
    """Return what the program has been told, in the process that was begun."""
    return pickle.load(sys.stdin.buffer)
