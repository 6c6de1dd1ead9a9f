"""What policies would have earned on a log, with intervals, differences, and a gate."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bothworlds.evaluation.bands import Interval, checkpoints_for
from bothworlds.evaluation.keeping import Kept
from bothworlds.evaluation.logged import Logged
from bothworlds.evaluation.regression import Regression, ridge
from bothworlds.evaluation.results import Evaluation
from bothworlds.evaluation.targets import Target, target_of
from bothworlds.evaluation.work import Done, Piece, Work
from bothworlds.kernels.arrays import Ints
from bothworlds.problem.checks import is_number

MEANING = (
    "a value is what the policy would have earned per decision, on average over the rows of the log: with the "
    "contexts, and the world, of that time. It is no forecast: where the world changes, tomorrow's value is another one"
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
    told: Callable[[str], None] | None = None,
) -> Evaluation:
    """Estimate what policies would have earned on a log.

    Parameters
    ----------
    logged
        The log as columns.
    policies
        Policies by name: tables (contexts, arms), plans, policies as they are now, `learning` algorithms, or the words
        "uniform", "logging" (who wrote the log) and "always ARM". A word, or a list of words, is enough where all are.
    against
        Name of the policy that all others are compared with, say "logging".
    interval
        "betting" (default), "bernstein", both "at the end", or "normal"; what each assumes is in docs/evaluation.md.
        Policies that change from row to row get "bernstein" in place of "betting" and of both "at the end".
    alpha
        The probability that an interval is wrong, for each policy and each difference; divide it by their number for
        all of them together.
    regression
        Predictions for the doubly robust sums: ridge regression on the past, one of your own, or None.
    checkpoints
        At how many moments to look, or at which.
    most_weight
        Where "clipped" and "switch" cut.
    threads, executor
        How many pieces of work to do at once, a policy or a difference each; or who does them in place of threads: a
        pool of processes, or a Dask client's `get_executor`. What it takes to them is the whole log, or the name of its
        folder where the columns are in files.
    state
        A folder in which finished pieces are kept: an evaluation that was stopped and is called again goes on from
        there, and gives the same figures bit for bit. It may serve for any number of logs.
    told
        Called with each piece of work that is done: a name, or "NAME over NAME".

    >>> from bothworlds import Problem
    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["a", "b"], reward_range=(0, 1))
    >>> rng = np.random.default_rng(1)
    >>> arm = rng.integers(2, size=2000)
    >>> log = Logged.from_columns(
    ...     problem, context=np.zeros(2000, dtype=int), arm=arm, probabilities=np.full((2000, 2), 0.5),
    ...     reward=rng.random(2000) < np.where(arm == 1, 0.6, 0.3))
    >>> found = evaluate(log, ["always b", "always a"], against="always a")
    >>> found, found.promotes("always b", over="always a", by=0.1).yes
    (Evaluation(2,000 rows; always b: 0.6253 in [0.5814, 0.67]; always a: 0.303 in [0.2613, 0.3404]), True)
    """
    work = Work(
        logged=logged,
        policies=_fitting(logged, _named(policies, against)),
        against=against,
        regression=_regression(regression, logged),
        checkpoints=_checkpoints(checkpoints, logged.rows),
        interval=interval,
        alpha=alpha,
        most_weight=_most_weight(most_weight),
    )
    return _evaluated(work, _pool(executor, threads), state, told or (lambda _: None))


def _evaluated(
    work: Work,
    pool: contextlib.AbstractContextManager[Executor],
    state: str | Path | None,
    told: Callable[[str], None],
) -> Evaluation:
    """Do all pieces of work, and put them together."""
    kept = None if state is None else Kept(state, work)
    with pool as opened:
        done: dict[Piece, Any] = dict(_finished(work, kept, opened, told))
    return Evaluation(
        logged=work.logged,
        policies={name: done[name,] for name in work.policies},
        differences={piece: done[piece] for piece in work.pieces if len(piece) == 2},
        calibration=done[()],
        notes=_notes(work),
    )


def _finished(
    work: Work, kept: Kept | None, pool: Executor, told: Callable[[str], None]
) -> Iterator[tuple[Piece, Done]]:
    """Yield the pieces of an evaluation, those that are kept first, and keep the others; stopped, begin no more."""
    known = [piece for piece in work.pieces if kept is not None and kept.has(piece)]
    futures = {pool.submit(work.done, piece): piece for piece in work.pieces if piece not in known}
    try:
        for piece in known:
            assert kept is not None
            yield piece, kept.read(piece)
            _tell(told, piece)
        for future in as_completed(futures):
            piece, done = futures[future], future.result()
            if kept is not None:
                kept.write(piece, done)
            yield piece, done
            _tell(told, piece)
    finally:
        for future in futures:
            future.cancel()


def _tell(told: Callable[[str], None], piece: Piece) -> None:
    if piece:
        told(" over ".join(piece))


@contextlib.contextmanager
def _pool(executor: Executor | None, threads: int) -> Iterator[Executor]:
    """Open threads where there is no executor."""
    if executor is not None:
        yield executor
        return
    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        yield pool


def _fitting(logged: Logged, policies: Mapping[str, Any]) -> dict[str, str | Target]:
    """Return policies as words where they are words, else as targets; refuse what does not fit the log."""
    if not logged.rows:
        raise ValueError("the log has no rows; there is nothing to evaluate")
    targets = {name: target_of(given, logged) for name, given in policies.items()}
    return {name: given if isinstance(given, str) else targets[name] for name, given in policies.items()}


def _named(policies: Any, against: str | None) -> dict[str, Any]:
    """Return policies by name; the one compared with is added if it is a word."""
    listed = [policies] if isinstance(policies, str) else policies
    if not isinstance(listed, Mapping | list | tuple) or not all(isinstance(name, str) for name in listed):
        example = "{'new': plan, 'old': table}, or are words, ['uniform', 'always red']"
        raise ValueError(f"policies go by name, {example}; got {policies!r:.80}")
    found = dict(listed) if isinstance(listed, Mapping) else {name: name for name in listed}
    if against is not None and against not in found:
        found[against] = against
    if not found:
        raise ValueError("name a policy at least: evaluate(logged, {'new': plan})")
    return found


def _regression(given: Regression | str | None, logged: Logged) -> Regression | None:
    """Return the predictions that were asked for."""
    if given is None or isinstance(given, Regression):
        return given
    if given != "ridge":
        raise ValueError(f"regression is 'ridge', a Regression of your own, or None; got {given!r}")
    return ridge(logged)


def _most_weight(given: Any) -> float | None:
    """Return where weights are cut; refuse what is no weight."""
    if given is None:
        return None
    if not is_number(given) or not given > 0.0:
        raise ValueError(f"most_weight must be a number above 0; got {given!r}")
    return float(given)


def _checkpoints(given: int | Sequence[int], rows: int) -> Ints:
    """Return the moments to look at, ending with all rows."""
    if isinstance(given, int | np.integer) and given >= 1 and not isinstance(given, bool):
        return checkpoints_for(rows, int(given))
    at = np.unique(np.asarray(given))
    if not np.issubdtype(at.dtype, np.integer) or not np.ndim(given) or not len(at) or at[0] < 1 or at[-1] > rows:
        raise ValueError(
            f"checkpoints are how many, at least 1, or a list of numbers of rows from 1 to {rows}; got {given!r}"
        )
    at = at.astype(np.int64)
    return at if at[-1] == rows else np.append(at, rows)


def _notes(work: Work) -> tuple[str, ...]:
    """Return what holds for all policies."""
    bare = "the log has propensities only, not whole rows of probabilities: intervals are those of ips, support unknown"
    return (*((bare,) if work.logged.probabilities is None and work.regression is not None else ()), MEANING)
