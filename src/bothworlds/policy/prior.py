"""Prior: what is believed of the losses before the first round, in the features of a problem."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.kernels.contract import even_play
from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number
from bothworlds.problem.feedback import checked_loss, checked_losses
from bothworlds.problem.labelled import table_of
from bothworlds.problem.pairs import pair_of

Method = Literal["regression", "propensities"]
BLOCKS = 10  # predictions of the doubly robust estimate are computed anew so many times


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Prior:
    """A belief about theta, the losses being <phi, theta>: ``algorithm.start(problem, prior=...)`` begins with it.

    It comes from rows of another policy (`from_rows`), from expected rewards (`from_rewards`), from a policy that has
    learnt (``policy.prior()``), or is written down. An algorithm takes of it what it has a place for: a regression
    takes ``information`` and ``moment``, as if the plays behind them were its own; FTRL begins as if it had seen
    ``rounds`` rounds in which the mean of its estimates was ``theta``, with a sum of rounds theta. So
    ``start(problem, prior=policy.prior())`` begins with the sums that the policy has.

    Attributes
    ----------
    theta
        The losses, in [-1, 1], are <phi, theta>: one number for each column of the features.
    information
        Sum of phi phi^T over plays, (columns, columns): the inverse of the covariance of theta, in units of the noise.
    rounds
        How many rounds FTRL takes it for. A belief that is wrong about the best arm costs at most that many times its
        error (docs/theory.md), one that is right saves what learning it anew would cost.
    moment
        Sum of phi times loss over the same plays; information times theta if left out.
    notes
        Sentences on what was left out.
    problem
        The one that it was made for, if it was made for one: one that is told apart by other columns refuses it.

    >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["red", "blue"])
    >>> Prior(theta=[0.1, -0.1], information=100 * np.eye(2), rounds=200)
    Prior(2 features, 200 rounds)
    """

    theta: Floats
    information: Floats
    rounds: float
    moment: Floats
    notes: tuple[str, ...] = ()
    problem: Problem | None = None

    def __init__(
        self,
        *,
        theta: Any,
        information: Any,
        rounds: float,
        moment: Any = None,
        notes: tuple[str, ...] = (),
        problem: Problem | None = None,
    ) -> None:
        worth = _checked_rounds(rounds)
        mean, weight = np.array(theta, dtype=np.float64), np.array(information, dtype=np.float64)
        d = len(mean) if mean.ndim == 1 else 0
        if not d or weight.shape != (d, d):
            raise ValueError(
                "theta needs a number for each feature and information a square matrix of as many rows; got shapes "
                f"{mean.shape} and {weight.shape}"
            )
        sums = weight @ mean if moment is None else np.array(moment, dtype=np.float64)
        if sums.shape != (d,) or not all(np.isfinite(part).all() for part in (mean, weight, sums)):
            raise ValueError("theta, information and moment of a prior must be finite, and moment as long as theta")
        if np.abs(weight - weight.T).max() > 1e-9 * (1.0 + np.abs(weight).max()):
            raise ValueError("information is a sum of phi phi^T, and must be symmetric")
        if np.linalg.eigvalsh(weight).min() < -1e-9 * (1.0 + np.abs(weight).max()):
            raise ValueError("information is a sum of phi phi^T, and must not have a negative eigenvalue")
        parts = {"theta": mean, "information": weight, "moment": sums}
        for part in parts.values():
            part.setflags(write=False)
        for name, value in {**parts, "rounds": worth, "notes": tuple(notes), "problem": problem}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_rows(
        cls, problem: Problem, rows: Iterable[Any], *, method: Method = "regression", rounds: float | None = None
    ) -> Self:
        """Estimate from rows of a log, whoever wrote it: context, arm and reward, and propensities if they are known.

        Parameters
        ----------
        problem
            The problem that the prior is for. Rows with a context or an arm that it has not, or does not offer there,
            and rows without a reward, are left out; ``notes`` says how many.
        rows
            `bothworlds.logs.Row`, or anything with ``context``, ``arm``, ``reward`` and perhaps ``propensity``.
        method
            "regression" is least squares. It needs no propensities, and is right if losses are linear in the features,
            whatever chose the arms. "propensities" weighs each row by 1/propensity, on top of predictions from earlier
            rows (doubly robust): unbiased for the best linear fit under even play, also where losses are not linear or
            the arms were chosen by something that knew more; it is noisier, and only propensities as they were, not
            estimates of them, make it so.
        rounds
            How many rounds FTRL is to take it for: as many as there are rows, or as many as the weighted ones are worth
            (their effective number), if left out.

        >>> from types import SimpleNamespace as Row
        >>> problem = Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["red", "blue"], contexts=["x"])
        >>> rows = [Row(context="x", arm="red", reward=0.5), Row(context="x", arm="blue", reward=-0.5)]
        >>> prior = Prior.from_rows(problem, rows)
        >>> prior.information.tolist(), prior.moment.tolist(), prior.rounds
        ([[1.0, 0.0], [0.0, 1.0]], [-0.5, 0.5], 2.0)
        """
        if method not in ("regression", "propensities"):
            raise ValueError(f"method must be 'regression' or 'propensities'; got {method!r}")
        plays, notes = plays_of(problem, rows, weighted=method == "propensities")
        estimate = regression if method == "regression" else doubly_robust
        theta, information, moment, worth = estimate(problem, plays)
        return cls(
            theta=theta,
            information=information,
            moment=moment,
            rounds=worth if rounds is None else rounds,
            notes=notes,
            problem=problem,
        )

    @classmethod
    def from_rewards(cls, problem: Problem, rewards: Any, *, rounds: float) -> Self:
        """Turn expected rewards into a prior that is worth a number of rounds of even play.

        ``rewards`` is a table (contexts, arms) in the problem's units, a DataFrame going by its names, or a dictionary
        or a Series of arms, those left out having the mean of the others. Where they are not linear in the features,
        the best linear fit is taken.

        >>> problem = Problem.from_sample(["day", "night"], arms=["red", "blue"], reward_range=(0, 1))
        >>> prior = Prior.from_rewards(problem, {"red": 0.2, "blue": 0.1}, rounds=100)
        >>> (problem.features @ prior.theta).round(9).tolist()
        [[0.6, 0.8], [0.6, 0.8]]
        """
        losses, rounds = _losses_of(problem, rewards), _checked_rounds(rounds)
        weights = problem.probabilities[:, None] * even_play(problem.available)
        z = problem.span.coordinates
        fitted = np.linalg.solve(_gram(z, weights), np.einsum("xa,xad,xa->d", weights, z, losses))
        information = rounds * _gram(problem.features, weights)
        return cls(theta=_theta(problem, fitted), information=information, rounds=rounds, problem=problem)

    def __repr__(self) -> str:
        return f"Prior({len(self.theta)} features, {self.rounds:g} rounds)"


def _checked_rounds(rounds: Any) -> float:
    """Return for how many rounds a prior is taken; refuse what is no number of rounds."""
    if not is_number(rounds) or not 0.0 <= rounds < 1e15:
        raise ValueError(f"rounds must be a number of rounds, not negative and below 1e15; got {rounds!r}")
    return float(rounds)


class Plays(NamedTuple):
    """Rows as columns: places of contexts and arms, losses, and propensities (1 where they are not used)."""

    xs: Ints
    arms: Ints
    losses: Floats
    propensities: Floats


def plays_of(problem: Problem, rows: Iterable[Any], *, weighted: bool) -> tuple[Plays, tuple[str, ...]]:
    """Return rows as columns, and sentences on those left out."""
    places = {name: i for i, name in enumerate(problem.arms)}
    found, strange, silent = [], 0, 0
    for row in _rows_in(rows):
        if row.reward is None:
            silent += 1
        elif (pair := pair_of(row, problem, places)) is None:
            strange += 1
        else:
            propensity = _propensity_of(row) if weighted else 1.0
            loss = checked_loss(row.reward, is_reward=True, reward_range=problem.reward_range)
            found.append((*pair, loss, propensity))
    notes = []
    if strange:
        what = "a context or an arm that the problem has not, or does not offer there"
        notes.append(f"{strange} rows have {what}, and were left out")
    if silent:
        notes.append(f"{silent} rows have no reward yet, and were left out")
    if not found:
        raise ValueError(f"no row can be used: {'; '.join(notes) or 'there are none'}")
    xs, arms, losses, propensities = zip(*found, strict=True)
    return Plays(np.array(xs), np.array(arms), np.array(losses), np.array(propensities)), tuple(notes)


def _rows_in(rows: Any) -> Iterator[Any]:
    """Yield rows; refuse what has none, or what is none."""
    if not isinstance(rows, Iterable):
        raise ValueError(f"rows are a list or an iterator of rows of a log; got {rows!r:.80}")
    for row in rows:
        if not all(hasattr(row, part) for part in ("context", "arm", "reward")):
            raise ValueError(f"a row has context, arm and reward, as bothworlds.logs.Row has them; got {row!r:.80}")
        yield row


def _propensity_of(row: Any) -> float:
    """Return the propensity of a row; refuse one that is no probability above 0."""
    propensity = float(getattr(row, "propensity", None) or 0.0)
    if not 0.0 < propensity <= 1.0 + 1e-9:
        raise ValueError(
            f"method='propensities' needs the propensity of every row, above 0 and at most 1; {row!r:.120} has "
            "none. Without them take method='regression'"
        )
    return propensity


def regression(problem: Problem, plays: Plays) -> tuple[Floats, Floats, Floats, float]:
    """Return theta by ridge regression in the coordinates of the span, the Gram matrix, the moment, and the number."""
    z, phi = problem.span.coordinates[plays.xs, plays.arms], problem.features[plays.xs, plays.arms]
    fitted = ridge(z, plays.losses)
    return _theta(problem, fitted), phi.T @ phi, phi.T @ plays.losses, float(len(plays.xs))


def ridge(z: Floats, losses: Floats) -> Floats:
    """Return (I + sum of z z^T)^-1 sum of z loss."""
    return np.asarray(np.linalg.solve(np.eye(z.shape[1]) + z.T @ z, z.T @ losses))


def doubly_robust(problem: Problem, plays: Plays) -> tuple[Floats, Floats, Floats, float]:
    """Return the same with weights: theta = mean of m + Sigma^-1 w phi (loss - <phi, m>), w = e/propensity.

    e is even play, Sigma its covariance, and m a ridge regression on earlier rows: whatever m is, a row's mean given
    what came before it is Sigma^-1 E_e[phi loss], the best linear fit. The number is (sum w)^2/sum w^2.
    """
    even = even_play(problem.available)
    sigma = _gram(problem.span.coordinates, problem.probabilities[:, None] * even)
    z = problem.span.coordinates[plays.xs, plays.arms]
    weights = even[plays.xs, plays.arms] / plays.propensities
    total = np.zeros(z.shape[1])
    ends = np.linspace(0, len(z), min(BLOCKS, len(z)) + 1).astype(int)
    for first, last in pairwise(ends.tolist()):
        m = ridge(z[:first], plays.losses[:first])
        block = slice(first, last)
        surprise = weights[block] * (plays.losses[block] - z[block] @ m)
        total += (last - first) * m + np.linalg.solve(sigma, z[block].T @ surprise)
    worth = float(weights.sum() ** 2 / (weights**2).sum())
    theta = _theta(problem, total / len(z))
    information = worth * _gram(problem.features, problem.probabilities[:, None] * even)
    return theta, information, information @ theta, worth


def _gram(z: Floats, weights: Floats) -> Floats:
    """Return the sum of weights phi phi^T over contexts and arms."""
    return np.asarray(np.einsum("xa,xai,xaj->ij", weights, z, z))


def _theta(problem: Problem, fitted: Floats) -> Floats:
    """Return theta of the features from that of the coordinates of their span."""
    return np.asarray(problem.span.basis @ fitted)


def _losses_of(problem: Problem, rewards: Any) -> Floats:
    """Return the losses that expected rewards mean, as a table (contexts, arms); refuse rewards out of range."""
    limits = problem.reward_range
    if isinstance(rewards, Mapping) or (hasattr(rewards, "to_dict") and rewards.ndim == 1):  # or a Series
        named = {str(name): reward for name, reward in rewards.items()}
        strange = [name for name in named if name not in problem.arms]
        if strange or not named:
            raise ValueError(f"rewards go by the names of arms, {', '.join(problem.arms[:8])}; got {strange or 'none'}")
        given = checked_losses(list(named.values()), is_reward=True, reward_range=limits)
        row = np.full(problem.n_arms, given.mean())
        row[[problem.arms.index(name) for name in named]] = given
        return np.repeat(row[None], problem.n_contexts, axis=0)
    table = table_of(rewards, problem)
    if table.shape != problem.available.shape:
        raise ValueError(f"rewards must be a table of shape {problem.available.shape}; got {table.shape}")
    given = checked_losses(table[problem.available], is_reward=True, reward_range=limits)
    losses = np.full(table.shape, given.mean())
    losses[problem.available] = given
    return losses
