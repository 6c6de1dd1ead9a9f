"""SampledPolicy: an algorithm in progress on contexts that are not listed. Act on features, update, ask, save."""

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from bothworlds.errors import NumericalError
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.entries import LARGEST, SURE
from bothworlds.kernels.random import ARM, draw, two_uniforms
from bothworlds.kernels.sampled import Pieces, pieces
from bothworlds.kernels.status import NOT_FINITE, OK, sentence
from bothworlds.plain import to_plain
from bothworlds.policy.decision import Decision
from bothworlds.policy.feeding import batch_of, check_once, check_owner, one_of
from bothworlds.policy.footing import as_section
from bothworlds.policy.identity import apart_after_fork, new_name, new_source, stream_of
from bothworlds.policy.ledger import Ledger
from bothworlds.problem import SampledProblem
from bothworlds.problem.feedback import Feedback, checked_loss
from bothworlds.problem.storage import SAMPLED_POLICY, check_npz, write_arrays
from bothworlds.sampled.covariance import Covariance, Mixture

FORMAT = SAMPLED_POLICY
UNLISTED = -1
NO_PLAN = (
    "a policy on a SampledProblem has no plan and takes no ids: its covariance is drawn for a decision or moves with "
    "every context seen, so that a decision is no function of plan and id. One process decides and learns with it, in "
    "any number of threads; ids are made, and feedback is taken once for each, also after bothworlds.load"
)
NO_HOLDOUT = (
    "a policy on a SampledProblem holds no decisions out and counts nothing by context, for its contexts are not "
    "listed: keep some of the traffic away from it yourself, and compare the two"
)

NO_LAW = (
    "contexts of a SampledProblem are drawn and not listed, so that there are no probabilities to change; with "
    "covariance='reservoir' the policy follows the contexts that come by itself"
)


def refuse_holdout(share: float) -> None:
    """Refuse to hold decisions out where contexts are not listed."""
    if share:
        raise ValueError(NO_HOLDOUT)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What distinguishes the algorithms: entropy, rates, and how the covariance is come by.

    ``alpha`` is the Tsallis index, 1 for Shannon entropy. ``rates(t, pace)`` returns eta_t and gamma_t. Where
    ``growth`` is given, pace begins at ``first_pace`` and grows by growth(t, sum of entropies) with every update; each
    decision then carries, as its baseline, the entropy of q_t at the context seen. ``covariance(problem, pieces)``
    makes the stand-in for Sigma_t^-1.
    """

    alpha: float
    rates: Callable[[float, float], tuple[float, float]]
    covariance: Callable[[SampledProblem, Pieces], Covariance]
    first_pace: float = 0.0
    growth: Callable[[float, float], float] | None = None


class SampledPolicy:
    """An algorithm in progress on a `SampledProblem`; made by ``algorithm.start(problem, rng=...)``.

    What is learnt is t and Theta, as ever. A decision carries its direction, so feedback may be late, out of order, in
    batches or missing; given the mixture of its moment every estimate has the bias of the covariance, and no other.
    ``beyond_coverage`` counts contexts whose leverage exceeds 1/lambda: the guarantees do not cover these.

    >>> from bothworlds import RealFTRL
    >>> problem = SampledProblem(lambda rng: rng.uniform(), lambda x: [[1.0, x], [1.0, -x]], samples=100)
    >>> policy = RealFTRL(horizon=1000, covariance="reservoir").start(problem, rng=7)
    >>> decision = policy.act(features=[[1.0, 0.3], [1.0, -0.3]], name="visitor 17")
    >>> policy.update(decision, loss=-0.5)
    >>> decision.context_name, policy.updates, policy.probabilities(context=0.3).round(3).tolist()
    ('visitor 17', 1, [0.503, 0.497])
    """

    def __init__(
        self, algorithm: object, problem: SampledProblem, rule: Rule, *, key: int, interpreted: bool = False
    ) -> None:
        """Begin a policy. Internal."""
        self.algorithm = algorithm
        self.problem = problem
        self.name = new_name()
        self.beyond_coverage = 0
        self._rule = rule
        self._key = key
        self._pieces = pieces(interpreted=interpreted)
        self._covariance = rule.covariance(problem, self._pieces)
        self._lock = threading.RLock()
        self._begin_life(Ledger.begin(key))
        self._theta: Floats = np.zeros(problem.dimension)
        self._t, self._pace, self._entropy = 1.0, rule.first_pace, 0.0
        apart_after_fork(self)

    def _begin_life(self, ledger: Ledger) -> None:
        """Issue ids of another life from now on."""
        self._ledger, self._rounds = ledger, ledger.rounds

    def set_apart(self) -> None:
        """Go on with ids and random numbers of its own, in a process that was forked off the owner's. Internal."""
        self._lock = threading.RLock()
        self._key = stream_of(self._key, new_source())
        self._begin_life(self._ledger.next_life(self._key, same_stream=False))

    def plan(self) -> NoReturn:
        """Refuse: contexts that are not listed leave no plan to hand out."""
        raise ValueError(NO_PLAN)

    def health(self, **_: Any) -> NoReturn:
        """Refuse: nothing is counted by context where contexts are not listed."""
        raise ValueError(NO_HOLDOUT)

    def change_probabilities(self, *_: Any) -> NoReturn:
        """Refuse: contexts that are not listed have no probabilities."""
        raise ValueError(NO_LAW)

    def follow(self, *_: Any) -> NoReturn:
        """Refuse: contexts that are not listed have no probabilities."""
        raise ValueError(NO_LAW)

    def copy(self) -> NoReturn:
        """Refuse: there is one owner."""
        raise ValueError(f"{NO_PLAN}; a copy would be a second one that sees half of the contexts")

    def __reduce__(self) -> Any:
        raise TypeError("a policy is not copied like data; use policy.save and bothworlds.load")

    @property
    def rounds(self) -> int:
        """How many decisions were taken."""
        return self._rounds.last

    @property
    def updates(self) -> int:
        """How many decisions were answered."""
        return int(self._t) - 1

    @property
    def open_rounds(self) -> int:
        """How many decisions still wait for feedback."""
        with self._lock:
            return len(self._ledger)

    @property
    def learning_rate(self) -> float:
        """eta_t."""
        return self._rule.rates(self._t, self._pace)[0]

    @property
    def exploration_rate(self) -> float:
        """gamma_t."""
        return self._rule.rates(self._t, self._pace)[1]

    def _points(self, z: Floats) -> Floats:
        """Return q_t(x) for coordinates (contexts, arms, d)."""
        q = np.empty(z.shape[:2])
        status = self._pieces.points(z, self._theta, self.learning_rate, self._rule.alpha, np.empty(z.shape[1]), q)
        if status != OK:
            raise NumericalError(f"{sentence(status)} at t = {int(self._t)}")
        return q

    def _coordinates(self, features: Any, context: Any) -> tuple[Floats, Floats]:
        """Return z and e of a context given by its features, or by itself."""
        if (features is None) == (context is None):
            raise ValueError("give either features= or context=, one of the two")
        return self.problem.one(self.problem.feature_map(context) if features is None else features)

    def probabilities(self, *, features: Any = None, context: Any = None) -> Floats:
        """Return pi_t(. | x), shape (arms,), for features (arms, dimension) or for a context of the sampler's kind."""
        z, e = self._coordinates(features, context)
        with self._lock:
            mixed: Floats = self._mixed(self._points(z), e)[0]
        return mixed

    def _mixed(self, q: Floats, e: Floats) -> Floats:
        """Return pi_t = (1 - gamma_t) q_t + gamma_t e (equation (3))."""
        gamma = self.exploration_rate
        return (1.0 - gamma) * q + gamma * e

    def act(self, *, features: Any = None, context: Any = None, name: str = "", id: None = None) -> Decision:
        """Choose an arm for features (arms, dimension), or for a context of the sampler's kind.

        ``name`` is kept as the decision's ``context_name``; its ``context`` is -1, for there is no list. On any error
        no decision was taken. An ``id`` cannot be given.
        """
        given: Any = id
        if given is not None:
            raise ValueError(NO_PLAN)
        with self._lock:
            return self._act(*self._coordinates(features, context), name)

    def _act(self, z: Floats, e: Floats, name: str) -> Decision:
        number = self._rounds.last + 1
        q = self._points(z)
        pi = self._mixed(q, e)
        u, _ = two_uniforms(self._key, number, ARM, 0)
        arm = draw(pi[0], u)
        mixture = Mixture(self.exploration_rate, self._points)
        direction = self._covariance.direction(mixture, z[0, arm], key=self._key, time=number)
        baseline = None if self._rule.growth is None else np.array([_entropy(q[0])])
        self._covariance.see(z[0], key=self._key, time=number)
        self.beyond_coverage += int((z[0] ** 2).sum(axis=1).max() * self.problem.coverage > 1.0 + 1e-9)
        self._rounds.add()
        return Decision(
            number,
            UNLISTED,
            name,
            arm,
            self.problem.arms[arm],
            float(pi[0, arm]),
            direction,
            baseline,
            self.name,
            self._ledger.life,
            self.updates,
        )

    def update(
        self, decision: Decision | Sequence[Decision], *, loss: Feedback = None, reward: Feedback = None
    ) -> None:
        """Learn from the loss, or the reward, of one decision or of a batch. On any error nothing has changed."""
        given, is_reward = one_of(loss, reward)
        batch, values = ([decision], [given]) if isinstance(decision, Decision) else (batch_of(decision, given), given)
        limits = self.problem.reward_range
        losses = [checked_loss(value, is_reward=is_reward, reward_range=limits) for value in values]
        with self._lock:
            for made in batch:
                self._check(made)
            check_once(batch)
            self._learn(batch, losses)

    def _learn(self, batch: list[Decision], losses: list[float]) -> None:
        """Add theta_hat = loss direction to Theta, and advance the clock."""
        theta = self._theta + sum(loss * made.direction for made, loss in zip(batch, losses, strict=True))
        if not np.isfinite(theta).all():
            raise NumericalError(f"{sentence(NOT_FINITE)} at t = {int(self._t)}. The update was not applied")
        self._theta = theta
        for made in batch:
            if self._rule.growth is not None and made.baseline is not None:
                self._entropy += float(made.baseline[0])
                self._pace += self._rule.growth(self._t, self._entropy)
            self._t += 1.0
            self._ledger.close(made)
        self._covariance.renew()

    def _check(self, made: Decision) -> None:
        """Refuse a decision that is not this policy's, not open, or damaged."""
        check_owner(made, self.name)
        if refusal := self._ledger.refusal(made):
            raise ValueError(f"round {made.round} {refusal}; each decision takes feedback once")
        expected = None if self._rule.growth is None else (1,)
        shape = None if made.baseline is None else made.baseline.shape
        if made.direction.shape != self._theta.shape or shape != expected:
            raise ValueError(f"round {made.round}: direction or baseline damaged, they do not fit this policy")
        carried = made.direction if made.baseline is None else np.append(made.direction, made.baseline)
        if not (0.0 < made.propensity <= SURE and (np.abs(carried) <= LARGEST).all()):
            raise ValueError(
                f"round {made.round}: propensity, direction or baseline damaged: no plan has such numbers, not finite, "
                f"out of range or above {LARGEST:g}"
            )

    def expire(self, *, before: int) -> int:
        """Close all decisions of rounds before the given one that were never answered; return how many."""
        with self._lock:
            return self._ledger.expire(before=before)

    def learnt(self) -> dict[str, Floats]:
        """Return what was learnt, by name, as copies; Theta in the coordinates of ``problem.frame``."""
        return {"theta": self._theta.copy(), "clock": np.array([self._t, self._pace, self._entropy])}

    def save(self, path: str | Path) -> None:
        """Write the policy to an .npz file; ``bothworlds.load(path, problem=...)`` continues it bit for bit.

        Functions are not written: whoever loads the policy gives it the problem again.
        """
        check_npz(path, "a policy")
        with self._lock:
            write_arrays(path, *self._kept())

    def _kept(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return header and arrays of a file."""
        frame = self.problem.frame
        header = {
            "format": FORMAT,
            "algorithm": to_plain(self.algorithm),
            "name": self.name,
            "key": self._key,
            **self._ledger.header(),
            "beyond_coverage": self.beyond_coverage,
            "arms": self.problem.arms,
            "reward_range": self.problem.reward_range,
        }
        arrays = {
            **self._ledger.arrays(),
            "basis": frame.basis,
            "lift": frame.lift,
            "coverage": np.array([frame.coverage, *frame.halves]),
            **as_section("learnt", self.learnt()),
            **as_section("covariance", self._covariance.arrays()),
        }
        return header, arrays

    def restore(
        self,
        *,
        name: str,
        ledger: Ledger,
        learnt: dict[str, Floats],
        covariance: dict[str, Floats],
        beyond_coverage: int,
    ) -> None:
        """Put back what a file kept. Internal."""
        shapes = {"theta": self._theta.shape, "clock": (3,)}
        if any(learnt[part].shape != shape or not np.isfinite(learnt[part]).all() for part, shape in shapes.items()):
            raise TypeError("what is learnt does not fit the problem")
        self.name, self.beyond_coverage = name, beyond_coverage
        self._begin_life(ledger)
        self._theta = learnt["theta"].copy()
        self._t, self._pace, self._entropy = (float(value) for value in learnt["clock"])
        self._covariance.restore(covariance)
        self._covariance.renew()

    def __repr__(self) -> str:
        return f"SampledPolicy({self.algorithm}, {self.rounds} rounds, {self.updates} updates)"


def _entropy(q: Floats) -> float:
    """Return H(q) = -sum_a q_a log q_a."""
    return float(sum(-p * math.log(p) for p in q.tolist() if p > 0.0))
