"""Transfer of learned fields to a changed problem, and from and to priors."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Beliefs, Earlier, Machine
from bothworlds.policy.blocks import blocks_of
from bothworlds.policy.feature_map import RANK, CoordinateChange, coordinate_change, least_squares, pairs_of
from bothworlds.policy.learner_state import LearnerState
from bothworlds.policy.prior import Prior
from bothworlds.policy.problem_history import History
from bothworlds.policy.spec import PolicySpec
from bothworlds.problem import Problem
from bothworlds.problem.checks import is_number

Fields = Mapping[str, Floats]  # learned fields by name


def beliefs_of(machine: Machine, algorithm: object) -> Beliefs:
    """Return the fields that can take over earlier learning; refuse algorithms that have none."""
    if machine.beliefs is None:
        raise ValueError(
            f"{type(algorithm).__name__} cannot take over earlier learning; LCTsallisINF, RealFTRL, RealLinExp3 with "
            "arm-dependent features, LinUCB, OFUL, LinTS, DLinUCB, SWLinUCB and SquareCB can. Start a new policy "
            "without a prior"
        )
    return machine.beliefs


def fields_from_prior(machine: Machine, beliefs: Beliefs, problem: Problem, prior: Prior) -> dict[str, Any]:
    """Return the learned fields of a new policy with a prior."""
    D = problem.features.shape[2]
    if len(prior.theta) != D:
        raise ValueError(
            f"the prior is for {len(prior.theta)} features and the problem has {D}, including an added constant: make "
            "it for this problem, with Prior.from_rows or Prior.from_rewards"
        )
    if prior.problem is not None:
        check_columns(prior.problem, problem)
    basis, theta = coordinates_of(machine, problem), prior.theta
    fields: dict[str, Any] = {"t": 1.0 + round(prior.rounds)}
    if beliefs.total:
        offered = problem.available
        values = problem.features[offered] @ theta
        fields[beliefs.total] = prior.rounds * _least_squares(machine.known.z[offered], values)
    if beliefs.rounds:
        fields[beliefs.rounds] = prior.rounds
    if beliefs.gram:
        initial = np.asarray(machine.begin[beliefs.gram])
        information, moment = prior.information, prior.moment
        if basis is not None:
            information, moment = basis.T @ information @ basis, basis.T @ moment
        fields[beliefs.gram], fields[beliefs.moment] = initial + information, moment
        if beliefs.squared:
            fields[beliefs.squared] = initial + information
    return {**fields, **_rate_fields(machine, beliefs, float(round(prior.rounds)), None)}


def check_columns(old: Problem, new: Problem) -> None:
    """Refuse a prior if the columns of the problems mean different things, so that equal rows have other features.

    This can only be checked for problems made by `Problem.from_sample`, whose contexts are rows of a table.
    """
    if old.rows is None or new.rows is None or not set(old.arms) & set(new.arms):
        return
    new_index = {row: x for x, row in enumerate(new.rows.rows)} if old.rows.columns == new.rows.columns else {}
    arms = [(a, new.arms.index(name)) for a, name in enumerate(old.arms) if name in new.arms]
    old_arms, new_arms = (list(indices) for indices in zip(*arms, strict=True))
    for x, row in enumerate(old.rows.rows):
        if row in new_index and not np.array_equal(old.features[x][old_arms], new.features[new_index[row]][new_arms]):
            raise ValueError(
                f"the prior was made for a problem with other columns: {old.contexts[x]!r} has other features there. "
                "Continue the policy with policy.change(problem), or make a prior for this problem with Prior.from_rows"
            )


def prior_from(machine: Machine, beliefs: Beliefs, problem: Problem, learned: Fields, pi: Floats) -> Prior:
    """Return learned fields as a prior in the features of the problem.

    For FTRL without a Gram matrix, the information is that of one play per round, distributed as in the current plan.
    """
    rounds = float(learned[beliefs.rounds][0]) if beliefs.rounds else float(learned["t"][0]) - 1.0
    z, g = machine.known.z, problem.probabilities
    basis = coordinates_of(machine, problem)
    back = np.eye(z.shape[2]) if basis is None else np.linalg.pinv(basis)
    moment = None
    if beliefs.gram:
        initial = np.asarray(machine.begin[beliefs.gram])
        information, moment = learned[beliefs.gram] - initial, learned[beliefs.moment]
        theta = np.linalg.solve(learned[beliefs.gram], moment)
    else:
        information = rounds * np.einsum("x,xa,xai,xaj->ij", g, pi, z, z)
    if beliefs.total:
        theta = loss_sum(beliefs, learned) / (rounds or 1.0)
    information = back.T @ _positive_part(information) @ back
    return Prior(
        theta=theta if basis is None else basis @ theta,
        information=(information + information.T) / 2.0,
        rounds=rounds,
        moment=None if moment is None else back.T @ moment,
        problem=problem,
    )


def loss_sum(beliefs: Beliefs, learned: Fields) -> Floats:
    """Return the sum of losses that plans follow: the learned sum plus the regression drift, if there is one."""
    return learned[beliefs.total] + learned[beliefs.drift] if beliefs.drift else learned[beliefs.total]


def transferred_fields(
    old: Machine, learned: Fields, new: Machine, beliefs: Beliefs, change: CoordinateChange, *, trust: float
) -> dict[str, Any]:
    """Return the learned fields on a new problem from those on the old one; ``trust`` is the share of rounds kept."""
    before = float(learned["t"][0]) - 1.0
    rounds = float(round(trust * before))
    share = rounds / before if before else 0.0
    fields: dict[str, Any] = {"t": 1.0 + rounds, **{name: learned[name] for name in beliefs.unchanged}}
    if beliefs.total:
        total = loss_sum(beliefs, learned)
        total = total if change.is_identity else change.matrix.T @ total
        fields[beliefs.total] = total if share == 1.0 else share * total
    if beliefs.rounds:
        fields[beliefs.rounds] = share * learned[beliefs.rounds]
    if beliefs.gram:
        gram = _share_of(learned[beliefs.gram], old.begin[beliefs.gram], share)
        moment = _share_of(learned[beliefs.moment], 0.0, share)
        fields[beliefs.gram], fields[beliefs.moment] = transform_regression(gram, moment, change)
        if beliefs.squared:
            squared = _share_of(learned[beliefs.squared], old.begin[beliefs.squared], share)
            fields[beliefs.squared] = transform_squared(gram, squared, change, fields[beliefs.gram])
    earlier = Earlier(old.options, learned, share)
    return {**fields, **_rate_fields(new, beliefs, rounds, earlier)}


def _share_of(learned: Floats, initial: Any, share: float) -> Floats:
    """Return a sum of which a share of the terms is kept, and its initial value in place of the others."""
    return learned if share == 1.0 else share * learned + (1.0 - share) * np.asarray(initial)


def transform_squared(gram: Floats, squared: Floats, change: CoordinateChange, new_gram: Floats) -> Floats:
    """Return V~, the Gram matrix with squared weights, in new coordinates, where V is ``new_gram``.

    The covariance of the estimate, V^-1 V~ V^-1, is carried like that of `transform_regression`.
    """
    if change.is_identity:
        return squared
    solved = np.linalg.solve(gram, change.matrix)
    covariance = solved.T @ squared @ solved + change.unknown @ change.unknown.T
    moved = new_gram @ covariance @ new_gram
    return np.asarray((moved + moved.T) / 2.0)


def transform_regression(gram: Floats, moment: Floats, change: CoordinateChange) -> tuple[Floats, Floats]:
    """Return Gram matrix and moment of a regression in new coordinates.

    The covariance is A^T V^-1 A, which marginalises removed pairs, plus the initial covariance, the identity, in
    directions about which nothing is known.
    """
    if change.is_identity:
        return gram, moment
    blocks = blocks_of(gram, change.matrix, change.unknown)
    if len(blocks) == 1:
        return _transform_block(gram, moment, change.matrix, change.unknown)
    count = change.matrix.shape[1]
    new_gram, new_moment = np.zeros((count, count)), np.zeros(count)
    for old, new in blocks:
        unknown = change.unknown[new]
        new_gram[np.ix_(new, new)], new_moment[new] = _transform_block(
            gram[np.ix_(old, old)], moment[old], change.matrix[np.ix_(old, new)], unknown[:, unknown.any(axis=0)]
        )
    return new_gram, new_moment


def _transform_block(gram: Floats, moment: Floats, matrix: Floats, unknown: Floats) -> tuple[Floats, Floats]:
    """Return Gram matrix and moment of a regression in new coordinates."""
    solved = np.linalg.solve(gram, np.column_stack([matrix, moment]))
    covariance = matrix.T @ solved[:, :-1] + unknown @ unknown.T
    inverse = np.linalg.inv((covariance + covariance.T) / 2.0)
    inverse = (inverse + inverse.T) / 2.0
    return inverse, inverse @ (matrix.T @ solved[:, -1])


def with_exploration(
    new: Machine,
    beliefs: Beliefs,
    change: CoordinateChange,
    fields: Mapping[str, Any],
    *,
    fresh: float | None,
    rate: float,
) -> dict[str, Any] | None:
    """Return learned fields with which new pairs are explored; None if they need no change.

    A new pair starts at most H/eta behind the best of its context, H = -psi of the uniform distribution. So it costs no
    more than the first penalty, as if it had been there from the start. ``rate`` is eta of the first plan.
    """
    if not beliefs.total or not change.open.shape[1] or fresh == 1.0:
        return None
    total = np.asarray(fields[beliefs.total])
    return {**fields, beliefs.total: total + exploration_shift(new, change, total, fresh, full_entropy(new) / rate)}


def full_entropy(machine: Machine) -> float:
    """Return -psi of the uniform distribution for the machine's regulariser.

    The options have this value as ``full``, or the Tsallis index ``alpha``; without both it is Shannon entropy.
    """
    options, K = machine.options, machine.sizes.K
    if hasattr(options, "full"):
        return float(options.full)
    if hasattr(options, "alpha"):
        return float((K ** (1.0 - options.alpha) - 1.0) / options.alpha)
    return math.log(K)


def exploration_shift(
    new: Machine, change: CoordinateChange, total: Floats, fresh: float | None, furthest: float
) -> Floats:
    """Return the shift of Theta with which new pairs are explored.

    Nothing is known in directions orthogonal to all shared pairs. There the sum of losses of a new pair moves from the
    mean of the others towards the least in its context, until ``fresh`` of the distance is left, or ``furthest`` if
    ``fresh`` is None.
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
    return np.asarray(change.open @ least_squares(z[xs, arms] @ change.open, down))


def coordinates_of(machine: Machine, problem: Problem) -> Floats | None:
    """Return the matrix B with z = B^T phi; None if z = phi."""
    offered = problem.available
    phi, z = problem.features[offered], machine.known.z[offered]
    return None if phi.shape == z.shape and np.array_equal(phi, z) else _least_squares(phi, z)


def _least_squares(rows: Floats, values: Floats) -> Floats:
    """Return the smallest least-squares solution after scaling the columns of ``rows`` to the same length."""
    scale = np.sqrt((rows**2).sum(axis=0))
    scale = np.where(scale > 0.0, scale, 1.0)
    solution, *_ = np.linalg.lstsq(rows / scale, values, rcond=RANK)
    return np.asarray(solution / (scale[:, None] if solution.ndim == 2 else scale))


def _rate_fields(machine: Machine, beliefs: Beliefs, rounds: float, earlier: Earlier | None) -> Mapping[str, Any]:
    """Return the fields that rates depend on after some rounds; none if they keep their initial values."""
    if beliefs.rate_fields is None or not rounds:
        return {}
    return beliefs.rate_fields(machine.options, rounds, earlier)


def _positive_part(matrix: Floats) -> Floats:
    """Return the positive semidefinite part of a symmetric matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def check_change(problem: Any, *, trust: float, fresh: float | None) -> None:
    """Refuse a problem of another type, and shares outside [0, 1]."""
    if not isinstance(problem, Problem):
        raise ValueError(f"change needs a Problem; got {problem!r:.80}")
    for name, share in {"trust": trust, **({} if fresh is None else {"fresh": fresh})}.items():
        if not is_number(share) or not 0.0 <= share <= 1.0:
            raise ValueError(f"{name} must lie between 0 and 1; got {share!r}")


def check_range(old: Problem, new: Problem) -> None:
    """Refuse a change of the reward range."""
    before, after = old.reward_range, new.reward_range
    if after != before:
        raise ValueError(
            f"the reward range would change from {before} to {after}: losses on two scales cannot be added. Keep "
            "reward_range, or start a new policy"
        )


def check_move(current: PolicySpec, old: PolicySpec) -> None:
    """Refuse a change that was not made from the current spec."""
    if current is not old:
        raise ValueError("another thread has changed the problem at the same time: change it in one thread only")


@dataclass(frozen=True, eq=False, kw_only=True)
class PreparedChange:
    """All that a change of the problem needs and that does not depend on what is learned until then.

    ``coordinates`` is None if coordinates stay. For ``trust`` and ``fresh`` see `bothworlds.Policy.change`.
    """

    old: PolicySpec
    new: PolicySpec
    coordinates: CoordinateChange | None
    trust: float = 1.0
    fresh: float | None = None


def prepare_change(
    old: PolicySpec, problem: Problem, *, trust: float = 1.0, fresh: float | None = None
) -> PreparedChange:
    """Prepare a change of the problem: a design and a map between coordinates, which may take long."""
    new, coordinates = old.for_problem(problem), None
    check_range(old.problem, problem)
    if new.machine is not old.machine or trust != 1.0:
        beliefs_of(old.machine, old.algorithm)
        coordinates = coordinate_change(pairs_of(old.problem, old.machine), pairs_of(problem, new.machine))
        assert new.short_fingerprint, new.known.size  # computed now, and cached
    return PreparedChange(old=old, new=new, coordinates=coordinates, trust=trust, fresh=fresh)


def transfer_state(
    learner_state: LearnerState,
    history: History,
    prepared: PreparedChange,
    change: CoordinateChange,
    *,
    key: int,
    began: int,
) -> tuple[LearnerState, History]:
    """Return a learner state for the new spec with all that was learned, and the history after the change.

    The old learner state is unchanged. ``began`` is the version of the first plan.
    """
    old, new, trust, fresh = learner_state.spec, prepared.new, prepared.trust, prepared.fresh
    beliefs = beliefs_of(old.machine, old.algorithm)
    after = history.after(
        old.problem,
        new.problem,
        change,
        carried=old.carried,
        linear=beliefs.linear,
        began=began,
        fingerprint=old.short_fingerprint,
    )
    fields = transferred_fields(old.machine, learner_state.learnt(), new.machine, beliefs, change, trust=trust)
    new_state, updates = LearnerState(new, key), learner_state.updates
    new_state.set_learned(fields, updates=updates)
    rate = float(getattr(new_state.state, "rates", np.ones(1))[0])
    explored = with_exploration(new.machine, beliefs, change, fields, fresh=fresh, rate=rate)
    if explored is not None:
        new_state.set_learned(explored, updates=updates)
    return new_state, after
