"""Compilation that takes long says so, once, on stderr; nothing is said where it does not, or where others speak."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bothworlds.kernels.jit.compile import compiled
from bothworlds.kernels.jit.telling import seconds_compiling, told, untold


def test_it_speaks_when_it_takes_long(capsys: pytest.CaptureFixture[str]) -> None:
    with told("'step'", after=0.01):
        time.sleep(0.3)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("bothworlds: compiling 'step', once for this machine")
    assert said.err.count("\n") == 1


def test_it_is_silent_when_quick_or_untold(capsys: pytest.CaptureFixture[str]) -> None:
    with told("'step'", after=5.0):
        pass
    with untold(), told("'step'", after=0.01):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


PROGRAM = """
import bothworlds.kernels.jit.telling as telling
telling.told.__wrapped__.__kwdefaults__["after"] = 0.0
from bothworlds.kernels.jit.compile import compiled

def double(x):
    return 2.0 * x

print(compiled(double)(1.5))
"""


def test_nothing_is_said_where_the_code_is_on_disk(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "BOTHWORLDS_CACHE_DIR": str(tmp_path / "cache")}
    first, second = (
        subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
        for _ in range(2)
    )
    assert first.stdout == second.stdout == "3.0\n"
    assert "compiling 'double'" in first.stderr
    assert second.stderr == ""


def test_the_time_it_takes_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bothworlds.kernels.jit.compile.cache_folder", lambda: None)  # or an earlier run has it there
    before = seconds_compiling()
    assert compiled(lambda x: 3.0 * x)(1.5) == 4.5
    assert seconds_compiling() > before
