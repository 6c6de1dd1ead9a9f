"""Prior: a belief about the losses before the first feedback, in the features of a problem."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.kernels.contract import even_play
from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number
from bothworlds.problem.lookup import table_of
from bothworlds.problem.pairs import pair_of
from bothworlds.problem.rewards import checked_loss, checked_losses

Method = Literal["regression", "propensities"]
BLOCKS = 10  # number of regressions that predict losses in the doubly robust estimate


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Prior:
    """A belief about theta, where the losses are <phi, theta>: use it with ``algorithm.start(problem, prior=...)``.

    It comes from a log (`from_rows`), from expected rewards (`from_rewards`), from a policy (``policy.prior()``), or
    from this constructor. A regression uses ``information`` and ``moment`` as if the plays behind them were its own.
    FTRL starts as if it had played ``rounds`` rounds in which the mean of its estimates was ``theta``: its sum of
    losses is rounds theta. So ``start(problem, prior=policy.prior())`` starts with the sums of the policy.

    Attributes
    ----------
    theta
        The losses, in [-1, 1], are <phi, theta>: one number for each column of the features.
    information
        Sum of phi phi^T over plays, (columns, columns): the inverse of the covariance of theta, in units of the noise.
    rounds
        Number of rounds that the prior is worth to FTRL. A prior that is wrong about the best arm costs at most that
        many times its error (docs/explanation/what-is-proved.md); a right one saves the cost of learning.
    moment
        Sum of phi times loss over the same plays; the default is information times theta.
    notes
        Sentences about rows that were left out.
    problem
        The problem that the prior was made for, if any: problems whose columns mean something else refuse the prior.

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
        n_rounds = _checked_rounds(rounds)
        mean, gram = np.array(theta, dtype=np.float64), np.array(information, dtype=np.float64)
        d = len(mean) if mean.ndim == 1 else 0
        if not d or gram.shape != (d, d):
            raise ValueError(
                "theta must be a vector with a number for each feature, and information a square matrix of the same "
                f"size; got shapes {mean.shape} and {gram.shape}"
            )
        sums = gram @ mean if moment is None else np.array(moment, dtype=np.float64)
        if sums.shape != (d,) or not all(np.isfinite(array).all() for array in (mean, gram, sums)):
            raise ValueError("theta, information and moment of a prior must be finite, and moment as long as theta")
        if np.abs(gram - gram.T).max() > 1e-9 * (1.0 + np.abs(gram).max()):
            raise ValueError("information is a sum of phi phi^T, and must be symmetric")
        if np.linalg.eigvalsh(gram).min() < -1e-9 * (1.0 + np.abs(gram).max()):
            raise ValueError("information is a sum of phi phi^T, and must not have a negative eigenvalue")
        arrays = {"theta": mean, "information": gram, "moment": sums}
        for array in arrays.values():
            array.setflags(write=False)
        for name, value in {**arrays, "rounds": n_rounds, "notes": tuple(notes), "problem": problem}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_rows(
        cls, problem: Problem, rows: Iterable[Any], *, method: Method = "regression", rounds: float | None = None
    ) -> Self:
        """Estimate a prior from rows of any log: context, arm and reward, and propensities if they are known.

        Parameters
        ----------
        problem
            The problem that the prior is for. Rows without a reward, and rows with a pair of context and arm that the
            problem does not offer, are left out; ``notes`` has their numbers.
        rows
            `bothworlds.logs.Row`, or objects with ``context``, ``arm``, ``reward`` and optionally ``propensity``.
        method
            "regression" is ridge regression. It needs no propensities, and is correct if losses are linear in the
            features, however the arms were chosen. "propensities" weighs each row by 1/propensity, on top of
            predictions from earlier rows (doubly robust). It is unbiased for the best linear fit under uniform play,
            even if losses are not linear or if the arms were chosen with more information. It is noisier, and unbiased
            only with the true propensities, not with estimates.
        rounds
            Number of rounds that the prior is worth to FTRL. The default is the number of rows, or the effective number
            of weighted rows.

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
        theta, information, moment, effective_rows = estimate(problem, plays)
        return cls(
            theta=theta,
            information=information,
            moment=moment,
            rounds=effective_rows if rounds is None else rounds,
            notes=notes,
            problem=problem,
        )

    @classmethod
    def from_rewards(cls, problem: Problem, rewards: Any, *, rounds: float) -> Self:
        """Make a prior from expected rewards, worth a number of rounds of uniform play.

        ``rewards`` is a table (contexts, arms) in the problem's units, a DataFrame with their names, or a dictionary or
        Series by arm; arms left out get the mean of the others. If the rewards are not linear in the features, the best
        linear fit is used.

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
    """Return the number of rounds that a prior is worth; refuse other values."""
    if not is_number(rounds) or not 0.0 <= rounds < 1e15:
        raise ValueError(f"rounds must be a number of rounds, not negative and below 1e15; got {rounds!r}")
    return float(rounds)


class Plays(NamedTuple):
    """Rows as columns: indices of contexts and arms, losses, and propensities (1 if they are not used)."""

    xs: Ints
    arms: Ints
    losses: Floats
    propensities: Floats


def plays_of(problem: Problem, rows: Iterable[Any], *, weighted: bool) -> tuple[Plays, tuple[str, ...]]:
    """Return rows as columns, and sentences about rows left out."""
    arm_indices = {name: i for i, name in enumerate(problem.arms)}
    plays, not_offered, without_reward = [], 0, 0
    for row in _checked_rows(rows):
        if row.reward is None:
            without_reward += 1
        elif (pair := pair_of(row, problem, arm_indices)) is None:
            not_offered += 1
        else:
            propensity = _propensity_of(row) if weighted else 1.0
            loss = checked_loss(row.reward, is_reward=True, reward_range=problem.reward_range)
            plays.append((*pair, loss, propensity))
    notes = []
    if not_offered:
        notes.append(f"{not_offered} rows have a context and an arm that the problem does not offer, and were left out")
    if without_reward:
        notes.append(f"{without_reward} rows have no reward yet, and were left out")
    if not plays:
        raise ValueError(f"no row can be used: {'; '.join(notes) or 'there are no rows'}")
    xs, arms, losses, propensities = zip(*plays, strict=True)
    return Plays(np.array(xs), np.array(arms), np.array(losses), np.array(propensities)), tuple(notes)


def _checked_rows(rows: Any) -> Iterator[Any]:
    """Yield rows; refuse other objects."""
    if not isinstance(rows, Iterable):
        raise ValueError(f"rows must be a list or an iterator of rows of a log; got {rows!r:.80}")
    for row in rows:
        if not all(hasattr(row, name) for name in ("context", "arm", "reward")):
            raise ValueError(f"a row needs context, arm and reward, like bothworlds.logs.Row; got {row!r:.80}")
        yield row


def _propensity_of(row: Any) -> float:
    """Return the propensity of a row; refuse values outside (0, 1]."""
    propensity = float(getattr(row, "propensity", None) or 0.0)
    if not 0.0 < propensity <= 1.0 + 1e-9:
        raise ValueError(
            f"method='propensities' needs the propensity of every row, above 0 and at most 1, which {row!r:.120} "
            "lacks. Without propensities use method='regression'"
        )
    return propensity


def regression(problem: Problem, plays: Plays) -> tuple[Floats, Floats, Floats, float]:
    """Return theta by ridge regression in the coordinates of the span, Gram matrix, moment, and number of rows."""
    z, phi = problem.span.coordinates[plays.xs, plays.arms], problem.features[plays.xs, plays.arms]
    fitted = ridge(z, plays.losses)
    return _theta(problem, fitted), phi.T @ phi, phi.T @ plays.losses, float(len(plays.xs))


def ridge(z: Floats, losses: Floats) -> Floats:
    """Return (I + sum of z z^T)^-1 sum of z loss."""
    return np.asarray(np.linalg.solve(np.eye(z.shape[1]) + z.T @ z, z.T @ losses))


def doubly_robust(problem: Problem, plays: Plays) -> tuple[Floats, Floats, Floats, float]:
    """Return theta = mean of m + Sigma^-1 w phi (loss - <phi, m>) with w = e/propensity, and the rest as `regression`.

    e is uniform play, Sigma its covariance, and m a ridge regression on earlier rows. For any m, the conditional mean
    of a row's term given earlier rows is Sigma^-1 E_e[phi loss], the best linear fit. The effective number of rows is
    (sum w)^2/sum w^2.
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
        residuals = weights[block] * (plays.losses[block] - z[block] @ m)
        total += (last - first) * m + np.linalg.solve(sigma, z[block].T @ residuals)
    effective_rows = float(weights.sum() ** 2 / (weights**2).sum())
    theta = _theta(problem, total / len(z))
    information = effective_rows * _gram(problem.features, problem.probabilities[:, None] * even)
    return theta, information, information @ theta, effective_rows


def _gram(z: Floats, weights: Floats) -> Floats:
    """Return the sum of weights phi phi^T over contexts and arms."""
    return np.asarray(np.einsum("xa,xai,xaj->ij", weights, z, z))


def _theta(problem: Problem, fitted: Floats) -> Floats:
    """Return theta in the features from theta in the coordinates of their span."""
    return np.asarray(problem.span.basis @ fitted)


def _losses_of(problem: Problem, rewards: Any) -> Floats:
    """Return expected rewards as losses, shape (contexts, arms); refuse rewards out of range."""
    limits = problem.reward_range
    is_series = hasattr(rewards, "to_dict") and getattr(rewards, "ndim", 2) == 1
    if isinstance(rewards, Mapping) or is_series:
        named = {str(name): reward for name, reward in rewards.items()}
        unknown = [name for name in named if name not in problem.arms]
        if unknown or not named:
            raise ValueError(f"rewards need names of arms, {', '.join(problem.arms[:8])}; got {unknown or 'none'}")
        given = checked_losses(list(named.values()), is_reward=True, reward_range=limits)
        row = np.full(problem.n_arms, given.mean())
        row[[problem.arms.index(name) for name in named]] = given
        return np.repeat(row[None], problem.n_contexts, axis=0)
    table = table_of(rewards, problem.contexts, problem.arms)
    if table.shape != problem.available.shape:
        raise ValueError(f"rewards must be a table of shape {problem.available.shape}; got {table.shape}")
    given = checked_losses(table[problem.available], is_reward=True, reward_range=limits)
    losses = np.full(table.shape, given.mean())
    losses[problem.available] = given
    return losses
