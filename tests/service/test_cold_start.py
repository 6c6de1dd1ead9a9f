"""A service on a machine that has no machine code yet: another process compiles, and leaves its memory when it ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bothworlds import precompile

PROGRAM = """
import bothworlds as bw
from bothworlds import precompile
from bothworlds.kernels.jit.compile_notice import seconds_compiling

problem = bw.Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
precompile.warm_up_in_subprocess([{"kind": "uniform"}])
precompile.warm_up(problem, bw.FixedPolicy())
print(seconds_compiling())
"""


def in_a_new_place(program: str, folder: Path) -> str:
    environment = {**os.environ, "BOTHWORLDS_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_nothing_is_compiled_in_the_process_that_serves(tmp_path: Path) -> None:
    assert float(in_a_new_place(PROGRAM, tmp_path / "cache")) == 0.0
    alone = PROGRAM.replace("precompile.warm_up_in_subprocess", "str").replace(
        "precompile.warm_up(problem, bw.FixedPolicy())", "bw.FixedPolicy().start(problem).probabilities()"
    )  # the least that is compiled is seen
    assert float(in_a_new_place(alone, tmp_path / "another")) > 0.0


def test_no_process_is_begun_for_what_is_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[list[dict[str, str]]] = []

    class Ended:
        def wait(self) -> int:
            return 0

    def noted(module: str, told: list[dict[str, str]], *, silent: bool) -> Ended:
        begun.append(told)
        return Ended()

    monkeypatch.setattr(precompile, "start_compile_process", noted)
    monkeypatch.setattr(precompile, "is_cached", lambda entry: True)
    precompile.warm_up_in_subprocess([{"kind": "uniform"}])
    assert begun == []
    monkeypatch.setattr(precompile, "is_cached", lambda entry: entry.__name__ != "feed")
    precompile.warm_up_in_subprocess([{"kind": "uniform"}, {"kind": "LinUCB"}])
    assert begun == [[{"kind": "uniform"}, {"kind": "LinUCB"}]]
    monkeypatch.setattr(precompile, "cache_folder", lambda: None)
    precompile.warm_up_in_subprocess([{"kind": "uniform"}])
    assert len(begun) == 1, "nobody would find what another process has compiled"
