"""Interrupted evaluations and other executors: the same figures, bit for bit, and no task run twice."""

import json
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import Executor, Future
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bothworlds as bw
from bothworlds.cli import main
from bothworlds.cli.log_source import Source
from bothworlds.evaluation import Evaluation, Logged, evaluate
from bothworlds.evaluation.logged import chunks
from bothworlds.evaluation.result_cache import plain, result_from
from bothworlds.evaluation.tasks import EvaluationJob, Task
from bothworlds.logs import Row
from bothworlds.report.evaluation_page import evaluation_data
from support.evaluation_by_row import small_log, some_table

POLICIES = ["uniform", "always 0", "always 1"]


def row_list(log: Logged) -> list[Row]:
    """The rows of a log in columns."""
    arms, contexts = log.problem.arms, log.problem.contexts
    assert log.probabilities is not None
    return [
        Row(
            id=f"visit {i}", context=contexts[log.context[i]], offered=arms, arm=arms[log.arm[i]],
            probabilities=tuple(log.probabilities[i].tolist()), propensity=float(log.propensity[i]),
            reward=float(log.reward[i]),
        )
        for i in range(log.rows)
    ]  # fmt: skip


def figures(found: Evaluation) -> str:
    """All figures of an evaluation, as text."""
    data = evaluation_data(found)
    bands = [(*one.band.low, *one.band.high, *one.band.estimate) for one in found.policies.values()]
    gaps = [(*one.band.low, *one.band.high) for one in found.differences.values()]
    return json.dumps([data, bands, gaps, found.sentences])


class Elsewhere(Executor):
    """Pickles tasks and results, as between processes."""

    def submit(self, function: Any, /, *arguments: Any, **options: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        work, given = pickle.loads(pickle.dumps((function, arguments)))
        future.set_result(pickle.loads(pickle.dumps(work(*given))))
        return future


def test_columns_in_files_equal_those_in_memory_and_are_pickled_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "__defaults__", (1000,))
    log = small_log(3, 2500)  # three chunks
    rows = row_list(log)
    memory, files = Logged.from_rows(log.problem, iter(rows)), Logged.from_rows(log.problem, rows, folder=tmp_path)
    for name in ("context", "arm", "propensity", "reward", "probabilities", "holdout", "version"):
        assert np.array_equal(getattr(memory, name), getattr(log, name)), name
        assert np.array_equal(getattr(files, name), getattr(log, name)), name
    assert len(pickle.dumps(files)) < 5000 < len(pickle.dumps(memory))
    plain_one = figures(evaluate(log, POLICIES, against="logging"))
    assert figures(evaluate(files, POLICIES, against="logging", executor=Elsewhere())) == plain_one
    assert figures(evaluate(memory, POLICIES, against="logging", executor=Elsewhere())) == plain_one


def test_columns_of_another_problem_and_incomplete_ones_are_refused(tmp_path: Path) -> None:
    log = small_log(3, 50)
    with pytest.raises(ValueError, match=r"columns\.json is missing"):
        Logged.from_folder(log.problem, tmp_path)
    silent = Row(id="x", arm=log.problem.arms[0], context=log.problem.contexts[0], propensity=1.0)
    with pytest.raises(ValueError, match="1 of 50 rows have no reward"):
        Logged.from_rows(log.problem, [*row_list(log)[:49], silent], folder=tmp_path)
    with pytest.raises(ValueError, match=r"columns\.json is missing"):
        Logged.from_folder(log.problem, tmp_path)
    Logged.from_rows(log.problem, row_list(log), folder=tmp_path)
    with pytest.raises(ValueError, match="another problem"):
        Logged.from_folder(small_log(4, 5).problem, tmp_path)


@pytest.mark.parametrize("rows", [0, 3])
def test_files_without_probabilities_and_without_rows(rows: int, tmp_path: Path) -> None:
    log = small_log(3, 5)
    bare = [Row(id=str(i), arm=log.problem.arms[0], context=log.problem.contexts[0], propensity=0.5, reward=1.0)
            for i in range(rows)]  # fmt: skip
    found = Logged.from_rows(log.problem, bare, folder=tmp_path)
    assert found.rows == rows
    assert (found.probabilities is None) == (rows > 0)
    assert found.reward.tolist() == [1.0] * rows


def test_every_result_survives_as_text() -> None:
    log = small_log(1, 300)
    policies = {"new": some_table(log), "logging": "logging"}
    for interval in ("betting", "bernstein"):
        found = evaluate(log, policies, against="logging", interval=interval)
        for result in (*found.policies.values(), *found.differences.values(), found.calibration, None):
            text = json.dumps(plain(result))
            assert json.dumps(plain(result_from(json.loads(text)))) == text


def test_finished_tasks_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, finished = small_log(2, 500), []

    def stop(name: str) -> None:
        finished.append(name)
        if len(finished) == 3:
            raise KeyboardInterrupt

    whole = figures(evaluate(log, POLICIES, against="logging"))
    with pytest.raises(KeyboardInterrupt):
        evaluate(log, POLICIES, against="logging", state=tmp_path, on_done=stop, threads=1)
    before, run = len(list(tmp_path.glob("*.json"))), EvaluationJob.run
    again: list[Task] = []

    def watched(job: EvaluationJob, task: Task) -> Any:
        again.append(task)
        return run(job, task)

    monkeypatch.setattr(EvaluationJob, "run", watched)
    assert figures(evaluate(log, POLICIES, against="logging", state=tmp_path)) == whole
    assert len(again) == 8 - before
    assert 3 <= before < 8
    again.clear()
    evaluate(log, POLICIES, against="logging", state=tmp_path, alpha=0.1)
    evaluate(small_log(9, 500), POLICIES, against="logging", state=tmp_path)
    assert len(again) == 16  # another level, another log: nothing that is kept fits


def written_files(folder: Path, rows: int) -> list[str]:
    """Write a log and its problem; return the options that all calls share."""
    log = small_log(6, rows)
    bw.logs.write(row_list(log), folder / "log.jsonl")
    log.problem.save(folder / "problem.json")
    named = [option for name in POLICIES for option in ("--policy", name)]
    return ["evaluate", "log.jsonl", "--problem", "problem.json", *named, "--against", "logging", "--json"]


def without_page(text: str) -> dict[str, Any]:
    return {name: value for name, value in json.loads(text).items() if name != "page"}


def test_a_killed_command_resumes_with_the_same_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = written_files(tmp_path, 12_000)
    monkeypatch.chdir(tmp_path)
    whole = CliRunner().invoke(main, [*options, "--output", "whole.html"])
    assert whole.exit_code == 0, whole.output
    assert not Path("whole.html.state").exists()
    command = [sys.executable, "-m", "bothworlds", *options, "--threads", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ}) as process:
        deadline = time.monotonic() + 120
        while len(list(Path("evaluation.html.state").glob("*.json"))) < 2 and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert not Path("evaluation.html").exists()
    again = CliRunner().invoke(main, options)
    assert again.exit_code == 0, again.output
    assert "resuming from" in again.stderr
    assert without_page(again.stdout) == without_page(whole.stdout)
    assert not Path("evaluation.html.state").exists()


def test_a_log_that_has_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = written_files(tmp_path, 300)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "bothworlds.cli.evaluate.write_evaluation", lambda *_, **__: (_ for _ in ()).throw(OSError("full"))
    )
    first = CliRunner().invoke(main, options)
    assert first.exit_code == 1
    assert Path("evaluation.html.state").exists()
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    written_files(tmp_path, 200)
    second = CliRunner().invoke(main, options)
    assert second.exit_code == 0, second.output
    assert "resuming from" not in second.stderr
    assert json.loads(second.stdout)["rows"] == 200


def test_a_store_whose_wal_changed_is_another_log(tmp_path: Path) -> None:
    path = tmp_path / "ads.sqlite"
    source = Source(path=path, columns=(), missing=None, holdout="all")
    with closing(sqlite3.connect(path, isolation_level=None)) as store:
        for command in ("PRAGMA journal_mode=WAL", "CREATE TABLE t (x)", "PRAGMA wal_checkpoint(TRUNCATE)"):
            store.execute(command)
        file, before = path.stat(), source._identity()
        assert json.loads(json.dumps(before)) == source._identity()
        store.execute("INSERT INTO t VALUES (1)")
        assert (path.stat().st_size, path.stat().st_mtime_ns) == (file.st_size, file.st_mtime_ns)
        assert source._identity() != before


def test_a_dask_cluster_gives_the_same_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install '.[cluster]'")
    options = written_files(tmp_path, 400)
    monkeypatch.chdir(tmp_path)
    here, there = (CliRunner().invoke(main, [*options, *more]) for more in ([], ["--engine", "dask"]))
    assert there.exit_code == 0, there.output
    assert without_page(there.stdout) == without_page(here.stdout)
