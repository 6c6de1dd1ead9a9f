"""Long compilations print one notice on stderr; short and silenced ones print nothing."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bothworlds.kernels.jit.compile import compiled
from bothworlds.kernels.jit.compile_notice import compile_notice, seconds_compiling, silence_notices


def test_a_long_compilation_prints_a_notice(capsys: pytest.CaptureFixture[str]) -> None:
    with compile_notice("'step'", after=0.01):
        time.sleep(0.3)
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("bothworlds: compiling 'step', once for this machine")
    assert output.err.count("\n") == 1


def test_short_and_silenced_compilations_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with compile_notice("'step'", after=5.0):
        pass
    with silence_notices(), compile_notice("'step'", after=0.01):
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


PROGRAM = """
from bothworlds.kernels.jit.compile_notice import compile_notice
compile_notice.__wrapped__.__kwdefaults__["after"] = 0.0
from bothworlds.kernels.jit.compile import compiled

def double(x):
    return 2.0 * x

print(compiled(double)(1.5))
"""


def test_nothing_is_printed_if_the_code_is_on_disk(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "BOTHWORLDS_CACHE_DIR": str(tmp_path / "cache")}
    first, second = (
        subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
        for _ in range(2)
    )
    assert first.stdout == second.stdout == "3.0\n"
    assert "compiling 'double'" in first.stderr
    assert second.stderr == ""


def test_the_time_of_compilations_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bothworlds.kernels.jit.compile.cache_folder", lambda: None)  # else a cache may have the code
    before = seconds_compiling()
    assert compiled(lambda x: 3.0 * x)(1.5) == 4.5
    assert seconds_compiling() > before
