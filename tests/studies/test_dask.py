"""Studies on executors: the same bytes as in one process, failures reported, killed workers without effect."""

import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import bothworlds as bw
from bothworlds.cli import main
from bothworlds.simulation import engine
from bothworlds.studies import executors
from bothworlds.studies.study import Cell
from support.soak import size

STUDY: dict[str, Any] = {
    "horizon": 300,
    "replications": 5,
    "sizes": {"contexts": 2, "arms": 2, "dimension": 2},
    "environments": {"calm": {"kind": "stochastic"}, "hit": {"kind": "corrupted", "budget": 5}},
    "algorithms": {"uniform": {"kind": "uniform"}, "LinUCB": {"kind": "LinUCB"}},
}
TOML = """
horizon = 300
replications = 2
[sizes]
contexts = 2
arms = 2
dimension = 2
[environments.calm]
kind = "stochastic"
[algorithms.uniform]
kind = "uniform"
"""


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "cells").glob("*.npz")}


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("serial")
    bw.run_study(bw.Study.from_dict(STUDY), folder)
    return files(folder)


@pytest.fixture
def thin_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "TASK_ROUNDS", 700)  # two replications of 300 rounds a task


def test_slices_cover_all_replications_once() -> None:
    cell = next(bw.Study.from_dict({**STUDY, "horizon": 3_000_000, "replications": 8}).cells())
    assert [list(part) for part in executors.slices(cell)] == [[0, 1, 2], [3, 4, 5], [6, 7]]
    longer = next(bw.Study.from_dict({**STUDY, "horizon": 10**9, "replications": 2}).cells())
    assert [list(part) for part in executors.slices(longer)] == [[0], [1]]


class Backwards(Executor):
    """Finishes the task given last first; tasks and what they return travel as bytes, as between processes."""

    def __init__(self) -> None:
        self.tasks: list[tuple[Future[Any], Any, Any]] = []

    def submit(self, function: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.tasks.append((future, *pickle.loads(pickle.dumps((function, arguments)))))
        if len(self.tasks) == 12:  # 4 cells, slices of 2, 2 and 1 replications
            for made, work, given in reversed(self.tasks):
                made.set_result(pickle.loads(pickle.dumps(work(*given))))
        return future


@pytest.mark.usefixtures("thin_slices")
@pytest.mark.parametrize("make", [Backwards, lambda: ThreadPoolExecutor(2)], ids=["backwards", "threads"])
def test_an_executor_changes_no_byte(make: Any, serial: dict[str, bytes], tmp_path: Path) -> None:
    with make() as executor:
        done = bw.run_study(bw.Study.from_dict(STUDY), tmp_path, executor=executor)
    assert files(tmp_path) == serial
    assert [cell.algorithm for cell, _ in done] == ["uniform", "LinUCB"] * 2


def break_cells(monkeypatch: pytest.MonkeyPatch, environment: str) -> None:
    """Let LinUCB fail in one environment."""
    make = Cell.make_algorithm

    def make_algorithm(cell: Cell) -> Any:
        if cell.environment == environment and cell.algorithm == "LinUCB":
            raise ArithmeticError("broken on purpose")
        return make(cell)

    monkeypatch.setattr(Cell, "make_algorithm", make_algorithm)


@pytest.mark.usefixtures("thin_slices")
@pytest.mark.parametrize("with_executor", [False, True])
def test_a_failing_cell_is_named_and_stops_no_other(
    with_executor: bool, serial: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = bw.Study.from_dict({**STUDY, "seed": 0})
    with monkeypatch.context() as broken:
        break_cells(broken, "calm")
        with ThreadPoolExecutor(2) as pool, pytest.raises(bw.StudyError) as caught:
            bw.run_study(study, tmp_path, executor=pool if with_executor else None)
    message = str(caught.value)
    assert message.startswith("1 of 4 cells failed; the others are finished and saved")
    assert "LinUCB in calm (contexts 2" in message
    assert "seed 0: ArithmeticError: broken on purpose" in message
    assert '"environment": {"kind": "stochastic"}' in message
    assert [cell.name for cell, _ in caught.value.failures] == [cell.name for cell in study.cells()][1:2]
    assert len(files(tmp_path)) == 3
    assert files(tmp_path).items() <= serial.items()
    bw.run_study(study, tmp_path)  # the same command runs what is left
    assert files(tmp_path) == serial


def test_workers_with_other_code_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = next(bw.Study.from_dict(STUDY).cells())
    with pytest.raises(ValueError, match="install the same versions everywhere"):
        executors.play_slice(cell, 0, 1, 1, ("other", "0", "0"))


def test_a_task_has_one_thread_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    play = engine.play

    def watched(*arguments: Any, threads: int, **options: Any) -> Any:
        seen.append(threads)
        return play(*arguments, threads=threads, **options)

    monkeypatch.setattr(executors, "play", watched)
    study = bw.Study.from_dict({**STUDY, "environments": {"calm": {"kind": "stochastic"}}})
    with ThreadPoolExecutor(1) as pool:
        bw.run_study(study, tmp_path / "a", executor=pool)
        bw.run_study(study, tmp_path / "b", executor=pool, threads=3)
    assert seen == [1, 1, 3, 3]


def test_an_interrupted_run_cancels_what_has_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bw.Results, "save", lambda results, path: (_ for _ in ()).throw(KeyboardInterrupt))
    futures = []
    with ThreadPoolExecutor(1) as pool:
        submit = pool.submit

        def watched(*arguments: Any) -> Any:
            futures.append(submit(*arguments))
            return futures[-1]

        monkeypatch.setattr(pool, "submit", watched)
        monkeypatch.setattr(executors, "play_slice", slow_slice)
        with pytest.raises(KeyboardInterrupt):
            bw.run_study(bw.Study.from_dict(STUDY), tmp_path, executor=pool)
    assert len(futures) == 4
    assert sum(future.cancelled() for future in futures) >= 2


def slow_slice(*arguments: Any) -> Any:
    time.sleep(0.1)
    return PLAY_SLICE(*arguments)


PLAY_SLICE = executors.play_slice


@pytest.mark.parametrize("address", ["spark", "dask:", "dask://", "dask://host", "dask://host:port"])
def test_unknown_engines_are_refused(address: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(TOML)
    done = CliRunner().invoke(main, ["run", str(tmp_path / "s.toml"), "--engine", address])
    assert done.exit_code == 3
    assert "use dask or dask://HOST:PORT" in done.output


def test_a_missing_dask_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"pip install '\.\[cluster\]'"), executors.engine("dask"):
        pass


@pytest.fixture(scope="module")
def two_workers() -> Iterator[Any]:
    """A local cluster of two worker processes, and a client."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install '.[cluster]'")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options, silence_logs=50) as local, distributed.Client(local) as client:
        yield client


@pytest.mark.usefixtures("thin_slices")
def test_a_dask_cluster_changes_no_byte(two_workers: Any, serial: dict[str, bytes], tmp_path: Path) -> None:
    address = two_workers.scheduler.address.replace("tcp://", "dask://")
    with executors.engine(address) as executor:
        bw.run_study(bw.Study.from_dict(STUDY), tmp_path, executor=executor)
    assert files(tmp_path) == serial


@pytest.mark.soak
@pytest.mark.parametrize("attempt", range(size(1, 8)))
def test_a_killed_worker_changes_no_byte(
    attempt: int, two_workers: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kill -9 one of two workers in the middle: its tasks run again elsewhere, with the same numbers."""
    monkeypatch.setattr(executors, "TASK_ROUNDS", 1)  # one replication a task
    study = bw.Study.from_dict(
        {**STUDY, "horizon": 800_000, "replications": 8, "algorithms": {"uniform": {"kind": "uniform"}}}
    )
    bw.run_study(study, tmp_path / "whole")
    before = set(two_workers.run(os.getpid).values())
    killed: list[int] = []
    left: list[int] = []

    def kill() -> None:
        while not files(tmp_path / "broken"):  # until a first cell is finished
            time.sleep(0.002)
        killed.append(min(before))
        left.append(len(files(tmp_path / "broken")))
        os.kill(killed[0], signal.SIGKILL)

    (tmp_path / "broken" / "cells").mkdir(parents=True)
    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    bw.run_study(study, tmp_path / "broken", executor=two_workers.get_executor())
    killer.join(timeout=10)
    assert left == [1]  # of two cells: the other one was being run
    assert killed[0] not in set(two_workers.run(os.getpid).values())
    assert files(tmp_path / "broken") == files(tmp_path / "whole")
