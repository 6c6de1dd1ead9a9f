"""A second process compiles for later cells: its code is used, and the process ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bothworlds.kernels.jit import compile_notice
from bothworlds.studies import precompile_cells
from bothworlds.studies.study import Study

CONTENT = """
name = "two players"
horizon = 20
replications = 2

[sizes]
contexts = 2
arms = 2
dimension = 2
gap = 0.2

[environments.calm]
kind = "stochastic"

[algorithms.even]
kind = "uniform"

[algorithms.apart]
kind = "PerContextTsallisINF"
"""
HEAD = """
import sys
from bothworlds.kernels.jit.compile_notice import on_compile
from bothworlds.studies import precompile_cells, run_study
from bothworlds.studies.study import Study

study, count = Study.from_toml("two.toml"), []
with on_compile(lambda: count.append(1)):
    {}
print(len(count))
"""
COMPILE = HEAD.format("precompile_cells.compile_for(list(study.cells()), 2)")
PLAY = HEAD.format('run_study(study, "out", threads=1, quiet=True)')


def printed(script: str, folder: Path) -> str:
    (folder / "two.toml").write_text(CONTENT)
    environment = {**os.environ, "BOTHWORLDS_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_what_was_compiled_ahead_is_not_compiled_again(tmp_path: Path) -> None:
    assert printed(COMPILE, tmp_path) == "2"
    assert printed(COMPILE, tmp_path) == "0"
    assert printed(PLAY, tmp_path) == "0"


def test_the_second_process_begins_with_the_first_compilation_and_ends_with_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "two.toml").write_text(CONTENT)
    cells = list(Study.from_toml(tmp_path / "two.toml").cells())
    monkeypatch.setenv(precompile_cells.SWITCH, "")
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    started: list[subprocess.Popen[bytes]] = []
    begun = precompile_cells._begun

    def noted(*given: object) -> subprocess.Popen[bytes]:
        started.append(begun(*given))  # type: ignore[arg-type]
        return started[-1]

    monkeypatch.setattr(precompile_cells, "_begun", noted)
    with precompile_cells.compiled_ahead(cells, None):
        assert not started
        for _ in range(2):
            notice = compile_notice._ON_COMPILE.get()
            assert notice is not None
            notice()
        assert len(started) == 1
    assert started[0].returncode is not None


@pytest.mark.parametrize(("count", "threads", "switch"), [(1, None, ""), (2, 1, ""), (2, None, "no")])
def test_no_second_process_where_it_is_of_no_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, threads: int | None, switch: str
) -> None:
    (tmp_path / "two.toml").write_text(CONTENT)
    cells = list(Study.from_toml(tmp_path / "two.toml").cells())[:count]
    monkeypatch.setenv(precompile_cells.SWITCH, switch)
    with precompile_cells.compiled_ahead(cells, threads):
        assert compile_notice._ON_COMPILE.get() is None
