"""What a learner begins with: a prior, or what was learnt on another problem; pure functions of machines and arrays."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import Beliefs, Earlier, Machine
from bothworlds.policy.mapping import RANK, CoordinateChange
from bothworlds.policy.prior import Prior
from bothworlds.problem import Problem

Learnt = Mapping[str, Floats]


def beliefs_of(machine: Machine, algorithm: object) -> Beliefs:
    """Return what a learner can be told, or refuse one that can be told nothing."""
    if machine.beliefs is None:
        raise ValueError(
            f"{type(algorithm).__name__} has no place for what was learnt before: LCTsallisINF, RealFTRL, RealLinExp3 "
            "with arm-dependent features, LinUCB, OFUL and LinTS have. Start it anew, without a prior"
        )
    return machine.beliefs


def begun_with(machine: Machine, beliefs: Beliefs, problem: Problem, prior: Prior) -> dict[str, Any]:
    """Return what is learnt at the start from a prior, by the names of fields."""
    D = problem.features.shape[2]
    if len(prior.theta) != D:
        raise ValueError(
            f"the prior is for {len(prior.theta)} features and the problem has {D}, with a constant if one was added: "
            "make it for this problem, with Prior.from_rows or Prior.from_rewards"
        )
    if prior.problem is not None:
        check_columns(prior.problem, problem)
    basis, theta = coordinates_of(machine, problem), prior.theta
    made: dict[str, Any] = {"t": 1.0 + round(prior.rounds)}
    if beliefs.total:
        offered = problem.available
        values = problem.features[offered] @ theta
        made[beliefs.total] = prior.rounds * _least(machine.known.z[offered], values)
        if beliefs.counted:
            made[beliefs.counted] = prior.rounds
    if beliefs.gram:
        own = np.asarray(machine.begin[beliefs.gram])
        information, moment = prior.information, prior.moment
        if basis is not None:
            information, moment = basis.T @ information @ basis, basis.T @ moment
        made[beliefs.gram], made[beliefs.moment] = own + information, moment
    return {**made, **_paced(machine, beliefs, float(round(prior.rounds)), None)}


def check_columns(old: Problem, new: Problem) -> None:
    """Refuse what was learnt in features whose columns mean something else: then equal rows have other features.

    Only contexts that stand for rows of a table tell: `Problem.from_sample` has made their columns.
    """
    if old.rows is None or new.rows is None or not set(old.arms) & set(new.arms):
        return
    known = {row: x for x, row in enumerate(new.rows.rows)} if old.rows.columns == new.rows.columns else {}
    arms = [(a, new.arms.index(name)) for a, name in enumerate(old.arms) if name in new.arms]
    ours, theirs = (list(part) for part in zip(*arms, strict=True))
    for x, row in enumerate(old.rows.rows):
        if row in known and not np.array_equal(old.features[x][ours], new.features[known[row]][theirs]):
            raise ValueError(
                f"the prior was made for a problem whose columns are others: {old.contexts[x]!r} has other features "
                "there. Let the policy go on, policy.change(problem), or make the prior for this problem, with "
                "Prior.from_rows"
            )


def prior_from(machine: Machine, beliefs: Beliefs, problem: Problem, learnt: Learnt, pi: Floats) -> Prior:
    """Return what a learner has learnt as a prior in the features of its problem.

    FTRL that keeps no Gram matrix has seen about as many plays as rounds, spread as its present plan spreads them.
    """
    rounds = float(learnt[beliefs.counted][0]) if beliefs.counted else float(learnt["t"][0]) - 1.0
    z, g = machine.known.z, problem.probabilities
    basis = coordinates_of(machine, problem)
    back = np.eye(z.shape[2]) if basis is None else np.linalg.pinv(basis)
    moment = None
    if beliefs.gram:
        own = np.asarray(machine.begin[beliefs.gram])
        information, moment = learnt[beliefs.gram] - own, learnt[beliefs.moment]
        theta = np.linalg.solve(learnt[beliefs.gram], moment)
    else:
        information = rounds * np.einsum("x,xa,xai,xaj->ij", g, pi, z, z)
    if beliefs.total:
        theta = believed_sum(beliefs, learnt) / (rounds or 1.0)
    information = back.T @ _not_negative(information) @ back
    return Prior(
        theta=theta if basis is None else basis @ theta,
        information=(information + information.T) / 2.0,
        rounds=rounds,
        moment=None if moment is None else back.T @ moment,
        problem=problem,
    )


def believed_sum(beliefs: Beliefs, learnt: Learnt) -> Floats:
    """Return the sum of losses that plans follow: what is learnt, and what they lean by."""
    return learnt[beliefs.total] + learnt[beliefs.leant] if beliefs.leant else learnt[beliefs.total]


def carried_over(
    old: Machine, learnt: Learnt, new: Machine, beliefs: Beliefs, change: CoordinateChange, *, trust: float
) -> dict[str, Any]:
    """Return what is learnt on a new problem from what was learnt on an old one, by the names of fields.

    ``trust`` is the share of the rounds so far that are believed.
    """
    before = float(learnt["t"][0]) - 1.0
    rounds = float(round(trust * before))
    share = rounds / before if before else 0.0
    made: dict[str, Any] = {"t": 1.0 + rounds, **{name: learnt[name] for name in beliefs.kept}}
    if beliefs.total:
        total = believed_sum(beliefs, learnt)
        total = total if change.is_identity else change.matrix.T @ total
        made[beliefs.total] = total if share == 1.0 else share * total
        if beliefs.counted:
            made[beliefs.counted] = share * learnt[beliefs.counted]
    if beliefs.gram:
        gram, moment = learnt[beliefs.gram], learnt[beliefs.moment]
        if share < 1.0:
            gram = share * gram + (1.0 - share) * np.asarray(old.begin[beliefs.gram])
            moment = share * moment
        made[beliefs.gram], made[beliefs.moment] = moved(gram, moment, change)
    earlier = Earlier(old.options, learnt, share)
    return {**made, **_paced(new, beliefs, rounds, earlier)}


def moved(gram: Floats, moment: Floats, change: CoordinateChange) -> tuple[Floats, Floats]:
    """Return Gram matrix and moment of a regression in new coordinates.

    The covariance is A^T V^-1 A, which leaves out what is gone as a marginal distribution does, and that of the start,
    the identity, in the directions nothing is known of.
    """
    if change.is_identity:
        return gram, moment
    solved = np.linalg.solve(gram, np.column_stack([change.matrix, moment]))
    covariance = change.matrix.T @ solved[:, :-1] + change.unknown @ change.unknown.T
    inverse = np.linalg.inv((covariance + covariance.T) / 2.0)
    inverse = (inverse + inverse.T) / 2.0
    return inverse, inverse @ (change.matrix.T @ solved[:, -1])


def explored(
    new: Machine,
    beliefs: Beliefs,
    change: CoordinateChange,
    begun: Mapping[str, Any],
    *,
    fresh: float | None,
    rate: float,
) -> dict[str, Any] | None:
    """Return what is learnt so that new pairs are explored, or None where nothing is to be done.

    A new pair begins at most H/eta behind the best of its context, H = -psi of the uniform distribution: then it costs
    no more than the first penalty, as if it had been there from the start. ``rate`` is eta of the first plan.
    """
    if not beliefs.total or not change.open.shape[1] or fresh == 1.0:
        return None
    total = np.asarray(begun[beliefs.total])
    return {**begun, beliefs.total: total + lifted(new, change, total, fresh, full_entropy(new) / rate)}


def full_entropy(machine: Machine) -> float:
    """Return -psi of the uniform distribution, of the regulariser that a learner has.

    Options tell: H itself, the index of Tsallis entropy, or neither, for Shannon entropy.
    """
    options, K = machine.options, machine.sizes.K
    if hasattr(options, "full"):
        return float(options.full)
    if hasattr(options, "alpha"):
        return float((K ** (1.0 - options.alpha) - 1.0) / options.alpha)
    return math.log(K)


def lifted(new: Machine, change: CoordinateChange, total: Floats, fresh: float | None, furthest: float) -> Floats:
    """Return what to add to Theta so that new pairs are explored.

    In directions that no kept pair has a part in nothing is known, and the sum of losses of a new pair is moved from
    the mean of the others towards the least of its context, until ``fresh`` of the distance is left, or the furthest
    that is allowed.
    """
    z, offered = new.known.z, new.known.blocked == 0.0
    xs, arms = np.nonzero(change.new & offered)
    if not change.open.shape[1] or not len(xs):
        return np.zeros(len(total))
    sums = z @ total
    least = np.where(offered & ~change.new, sums, np.inf).min(axis=1)
    least = np.where(np.isfinite(least), least, np.where(offered, sums, np.inf).min(axis=1))
    behind = np.maximum(sums[xs, arms] - least[xs], 0.0)
    down = (np.minimum(behind, furthest) if fresh is None else fresh * behind) - behind
    found, *_ = np.linalg.lstsq(z[xs, arms] @ change.open, down, rcond=RANK)
    return np.asarray(change.open @ found)


def coordinates_of(machine: Machine, problem: Problem) -> Floats | None:
    """Return the matrix B with z = B^T phi, or None where a learner works on the features as they are."""
    offered = problem.available
    phi, z = problem.features[offered], machine.known.z[offered]
    return None if phi.shape == z.shape and np.array_equal(phi, z) else _least(phi, z)


def _least(rows: Floats, values: Floats) -> Floats:
    """Return the smallest least-squares solution, columns of rows being brought to one length before."""
    scale = np.sqrt((rows**2).sum(axis=0))
    scale = np.where(scale > 0.0, scale, 1.0)
    found, *_ = np.linalg.lstsq(rows / scale, values, rcond=RANK)
    return np.asarray(found / (scale[:, None] if found.ndim == 2 else scale))


def _paced(machine: Machine, beliefs: Beliefs, rounds: float, earlier: Earlier | None) -> Mapping[str, Any]:
    """Return what rates follow after some rounds; after none, what they begin with."""
    if beliefs.paced is None or not rounds:
        return {}
    return beliefs.paced(machine.options, rounds, earlier)


def _not_negative(matrix: Floats) -> Floats:
    """Return a symmetric matrix without its negative part."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
