"""Evaluate policies on a log: values, intervals, and differences."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bothworlds.arrays import Ints
from bothworlds.evaluation.intervals import Interval, checkpoints_for
from bothworlds.evaluation.logged import Logged
from bothworlds.evaluation.regression import Regression, ridge
from bothworlds.evaluation.result_cache import ResultCache
from bothworlds.evaluation.results import Evaluation
from bothworlds.evaluation.targets import Target, target_of
from bothworlds.evaluation.tasks import EvaluationJob, Task, TaskResult
from bothworlds.problem.checks import is_number

MEANING = (
    "a value is what the policy would have earned per decision, averaged over the rows of the log: with the contexts "
    "and the world of that time. It is not a forecast: if the world changes, so does the value"
)


def evaluate(
    logged: Logged,
    policies: Mapping[str, Any] | Sequence[str] | str,
    *,
    against: str | None = None,
    interval: Interval = "betting",
    alpha: float = 0.05,
    regression: Regression | Literal["ridge"] | None = "ridge",
    checkpoints: int | Sequence[int] = 200,
    most_weight: float | None = None,
    threads: int = 2,
    executor: Executor | None = None,
    state: str | Path | None = None,
    on_done: Callable[[str], None] | None = None,
) -> Evaluation:
    """Estimate what policies would have earned on a log.

    Parameters
    ----------
    logged
        The log as columns.
    policies
        Policies by name: tables (contexts, arms), plans, policies in their present state, `learning` algorithms, or
        the words "uniform", "logging" (the policy that wrote the log) and "always ARM". If all are words, a word or a
        list of words is enough.
    against
        Name of the policy that all others are compared with, for example "logging".
    interval
        "betting" (default), "bernstein", either one "at the end", or "normal". docs/how-to/evaluate-a-log.md
        lists what each assumes. Policies that change from row to row get "bernstein" instead of "betting" and of
        either one "at the end".
    alpha
        The probability that an interval is wrong, for each policy and each difference; divide it by their number to
        cover all of them together.
    regression
        Predictions for the doubly robust sums: ridge regression on the past, one of your own, or None.
    checkpoints
        The number of checkpoints, or a list of them as numbers of rows.
    most_weight
        Threshold of "clipped" and "switch".
    threads, executor
        Number of tasks to run at the same time, where a task is a policy or a difference; or an executor to use
        instead of threads: a pool of processes, or a Dask client's `get_executor`. It receives the whole log, or only
        the name of its folder if the columns are in files.
    state
        A folder for finished tasks: an evaluation that was interrupted resumes from there when it is called again, and
        gives the same figures bit for bit. One folder may serve any number of logs.
    on_done
        Called with the name of each finished task: a policy's name, or "NAME over NAME".

    >>> from bothworlds import Problem
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["a", "b"], reward_range=(0, 1))
    >>> rng = np.random.default_rng(1)
    >>> arm = rng.integers(2, size=2000)
    >>> log = Logged.from_columns(
    ...     problem, context=np.zeros(2000, dtype=int), arm=arm, probabilities=np.full((2000, 2), 0.5),
    ...     reward=rng.random(2000) < np.where(arm == 1, 0.6, 0.3))
    >>> evaluation = evaluate(log, ["always b", "always a"], against="always a")
    >>> evaluation, evaluation.promotes("always b", over="always a", by=0.1).yes
    (Evaluation(2,000 rows; always b: 0.6253 in [0.5814, 0.67]; always a: 0.303 in [0.2613, 0.3404]), True)
    """
    job = EvaluationJob(
        logged=logged,
        policies=_checked_policies(logged, _by_name(policies, against)),
        against=against,
        regression=_regression(regression, logged),
        checkpoints=_checkpoints(checkpoints, logged.rows),
        interval=interval,
        alpha=alpha,
        most_weight=_most_weight(most_weight),
    )
    return _run(job, _pool(executor, threads), state, on_done or (lambda _: None))


def _run(
    job: EvaluationJob,
    pool: contextlib.AbstractContextManager[Executor],
    state: str | Path | None,
    on_done: Callable[[str], None],
) -> Evaluation:
    """Run all tasks and assemble their results."""
    cache = None if state is None else ResultCache(state, job)
    with pool as executor:
        results: dict[Task, Any] = dict(_results(job, cache, executor, on_done))
    return Evaluation(
        logged=job.logged,
        policies={name: results[name,] for name in job.policies},
        differences={task: results[task] for task in job.tasks if len(task) == 2},
        calibration=results[()],
        notes=_notes(job),
    )


def _results(
    job: EvaluationJob, cache: ResultCache | None, pool: Executor, on_done: Callable[[str], None]
) -> Iterator[tuple[Task, TaskResult]]:
    """Yield the tasks with their results, cached ones first, and cache the others; when closed, start no more."""
    cached = [task for task in job.tasks if cache is not None and cache.has(task)]
    futures = {pool.submit(job.run, task): task for task in job.tasks if task not in cached}
    try:
        for task in cached:
            assert cache is not None
            yield task, cache.read(task)
            _report(on_done, task)
        for future in as_completed(futures):
            task, result = futures[future], future.result()
            if cache is not None:
                cache.write(task, result)
            yield task, result
            _report(on_done, task)
    finally:
        for future in futures:
            future.cancel()


def _report(on_done: Callable[[str], None], task: Task) -> None:
    if task:
        on_done(" over ".join(task))


@contextlib.contextmanager
def _pool(executor: Executor | None, threads: int) -> Iterator[Executor]:
    """Yield the executor, or open a pool of threads if there is none."""
    if executor is not None:
        yield executor
        return
    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        yield pool


def _checked_policies(logged: Logged, policies: Mapping[str, Any]) -> dict[str, str | Target]:
    """Return policies, words unchanged and all others as targets; refuse those that do not fit the log."""
    if not logged.rows:
        raise ValueError("the log has no rows; there is nothing to evaluate")
    targets = {name: target_of(given, logged) for name, given in policies.items()}
    return {name: given if isinstance(given, str) else targets[name] for name, given in policies.items()}


def _by_name(policies: Any, against: str | None) -> dict[str, Any]:
    """Return policies by name, including ``against`` if it is a word."""
    listed = [policies] if isinstance(policies, str) else policies
    if not isinstance(listed, Mapping | list | tuple) or not all(isinstance(name, str) for name in listed):
        example = "{'new': plan, 'old': table}, or a list of words, ['uniform', 'always red']"
        raise ValueError(f"policies must be given by name, {example}; got {policies!r:.80}")
    by_name = dict(listed) if isinstance(listed, Mapping) else {name: name for name in listed}
    if against is not None and against not in by_name:
        by_name[against] = against
    if not by_name:
        raise ValueError("name at least one policy: evaluate(logged, {'new': plan})")
    return by_name


def _regression(given: Regression | str | None, logged: Logged) -> Regression | None:
    """Return the regression that was requested."""
    if given is None or isinstance(given, Regression):
        return given
    if given != "ridge":
        raise ValueError(f"regression must be 'ridge', a Regression of your own, or None; got {given!r}")
    return ridge(logged)


def _most_weight(given: Any) -> float | None:
    """Return the threshold for weights; refuse one that is not a positive number."""
    if given is None:
        return None
    if not is_number(given) or not given > 0.0:
        raise ValueError(f"most_weight must be a number above 0; got {given!r}")
    return float(given)


def _checkpoints(given: int | Sequence[int], rows: int) -> Ints:
    """Return the checkpoints, ending with the last row."""
    if isinstance(given, int | np.integer) and given >= 1 and not isinstance(given, bool):
        return checkpoints_for(rows, int(given))
    at = np.unique(np.asarray(given))
    if not np.issubdtype(at.dtype, np.integer) or not np.ndim(given) or not len(at) or at[0] < 1 or at[-1] > rows:
        raise ValueError(
            f"checkpoints must be a number of at least 1, or a list of row numbers from 1 to {rows}; got {given!r}"
        )
    at = at.astype(np.int64)
    return at if at[-1] == rows else np.append(at, rows)


def _notes(job: EvaluationJob) -> tuple[str, ...]:
    """Return the notes that apply to all policies."""
    bare = "the log has propensities only, not whole rows of probabilities: intervals are those of ips, support unknown"
    return (*((bare,) if job.logged.probabilities is None and job.regression is not None else ()), MEANING)
