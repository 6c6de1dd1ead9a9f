"""SampledPolicy: an algorithm in progress on a `SampledProblem`. It decides on features, learns, and is saved."""

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from bothworlds._public_names import internal
from bothworlds.arrays import Floats
from bothworlds.errors import NumericalError
from bothworlds.kernels.entry_points import MAX_CARRIED, MAX_PROPENSITY
from bothworlds.kernels.random import ARM, draw, two_uniforms
from bothworlds.kernels.status import NOT_FINITE, OK, sentence
from bothworlds.policy.decision import Decision
from bothworlds.policy.feedback import batch_of, check_once, check_owner, reward_or_loss
from bothworlds.policy.feedback_registry import FeedbackRegistry
from bothworlds.policy.ids import new_name, new_source, reset_after_fork, stream_of
from bothworlds.policy.spec import as_section
from bothworlds.problem import SampledProblem
from bothworlds.problem.file_format import SAMPLED_POLICY, check_npz, write_arrays
from bothworlds.problem.rewards import Feedback, checked_loss
from bothworlds.sampled.covariance import Covariance, Mixture
from bothworlds.sampled.kernels import BatchKernels, batch_kernels
from bothworlds.serialization import to_plain

FORMAT = SAMPLED_POLICY
UNLISTED = -1
NO_PLAN = (
    "a policy on a SampledProblem has no plan and takes no ids: its covariance is drawn for each decision or changes "
    "with every context, so that a decision is not a function of plan and id. One process decides and learns with it, "
    "in any number of threads; it issues ids, and feedback is taken once for each, also after bothworlds.load"
)
NO_HOLDOUT = (
    "a policy on a SampledProblem cannot hold out decisions or report health, since its contexts are not listed: send "
    "some of the traffic to uniform decisions yourself, and compare the rewards"
)
NO_DISTRIBUTION = (
    "the contexts of a SampledProblem are not listed, so that there are no probabilities to change; with "
    "covariance='reservoir' the policy adapts to the observed contexts by itself"
)


def refuse_holdout(share: float) -> None:
    """Refuse a holdout, since contexts are not listed."""
    if share:
        raise ValueError(NO_HOLDOUT)


@dataclass(frozen=True, kw_only=True)
class SampledRule:
    """The rule of an algorithm: entropy, rates and covariance.

    ``alpha`` is the Tsallis index, 1 for Shannon entropy. ``rates(t, inverse_rate)`` returns eta_t and gamma_t. With
    ``growth``, the inverse rate starts at ``first_inverse_rate`` and grows by growth(t, sum of entropies) with every
    update; the baseline of each decision is then the entropy of q_t at its context. ``covariance(problem, kernels)``
    makes the estimate of Sigma_t^-1.
    """

    alpha: float
    rates: Callable[[float, float], tuple[float, float]]
    covariance: Callable[[SampledProblem, BatchKernels], Covariance]
    first_inverse_rate: float = 0.0
    growth: Callable[[float, float], float] | None = None


class SampledPolicy:
    """An algorithm in progress on a `SampledProblem`, from ``algorithm.start(problem, rng=...)``.

    The learned fields are t and Theta. A decision has its direction, so feedback may be late, out of order, in batches
    or missing. Given the plan at the decision, the only bias of an estimate is that of the covariance.
    ``beyond_coverage`` counts contexts whose leverage exceeds 1/lambda: the guarantees do not cover these.

    >>> from bothworlds import RealFTRL
    >>> problem = SampledProblem(lambda rng: rng.uniform(), lambda x: [[1.0, x], [1.0, -x]], samples=100)
    >>> policy = RealFTRL(horizon=1000, covariance="reservoir").start(problem, rng=7)
    >>> decision = policy.act(features=[[1.0, 0.3], [1.0, -0.3]], name="visitor 17")
    >>> policy.update(decision, loss=-0.5)
    >>> decision.context_name, policy.updates, policy.probabilities(context=0.3).round(3).tolist()
    ('visitor 17', 1, [0.503, 0.497])
    """

    @internal
    def __init__(
        self, algorithm: object, problem: SampledProblem, rule: SampledRule, *, key: int, interpreted: bool = False
    ) -> None:
        """Start a policy; ``key`` is that of the random stream."""
        self.algorithm = algorithm
        self.problem = problem
        self.name = new_name()
        self.beyond_coverage = 0
        self._rule = rule
        self._key = key
        self._kernels = batch_kernels(interpreted=interpreted)
        self._covariance = rule.covariance(problem, self._kernels)
        self._lock = threading.RLock()
        self._begin_session(FeedbackRegistry.begin(key))
        self._theta: Floats = np.zeros(problem.dimension)
        self._t, self._inverse_rate, self._entropy = 1.0, rule.first_inverse_rate, 0.0
        reset_after_fork(self)

    def _begin_session(self, registry: FeedbackRegistry) -> None:
        """Issue ids of another session from now on."""
        self._registry, self._rounds = registry, registry.rounds

    @internal
    def reset_in_fork(self) -> None:
        """Switch to new ids and random numbers, in a process that was just forked."""
        self._lock = threading.RLock()
        self._key = stream_of(self._key, new_source())
        self._begin_session(self._registry.next_session(self._key, same_stream=False))

    def plan(self) -> NoReturn:
        """Refuse: without listed contexts there is no plan."""
        raise ValueError(NO_PLAN)

    def health(self, **_: Any) -> NoReturn:
        """Refuse: without listed contexts there are no counts by context."""
        raise ValueError(NO_HOLDOUT)

    def change_probabilities(self, *_: Any) -> NoReturn:
        """Refuse: without listed contexts there are no probabilities."""
        raise ValueError(NO_DISTRIBUTION)

    def follow(self, *_: Any) -> NoReturn:
        """Refuse: without listed contexts there are no probabilities."""
        raise ValueError(NO_DISTRIBUTION)

    def copy(self) -> NoReturn:
        """Refuse: a second policy would observe only some of the contexts."""
        raise ValueError(f"{NO_PLAN}; a copy would be a second policy that observes only some of the contexts")

    def __reduce__(self) -> Any:
        raise TypeError("a policy cannot be pickled or copied; use policy.save and bothworlds.load")

    @property
    def rounds(self) -> int:
        """Number of decisions."""
        return self._rounds.last

    @property
    def updates(self) -> int:
        """Number of decisions with feedback."""
        return int(self._t) - 1

    @property
    def open_rounds(self) -> int:
        """Number of decisions that wait for feedback."""
        with self._lock:
            return len(self._registry)

    @property
    def learning_rate(self) -> float:
        """eta_t."""
        return self._rule.rates(self._t, self._inverse_rate)[0]

    @property
    def exploration_rate(self) -> float:
        """gamma_t."""
        return self._rule.rates(self._t, self._inverse_rate)[1]

    def _points(self, z: Floats) -> Floats:
        """Return q_t, shape (contexts, arms), for coordinates (contexts, arms, d)."""
        q = np.empty(z.shape[:2])
        status = self._kernels.points(z, self._theta, self.learning_rate, self._rule.alpha, np.empty(z.shape[1]), q)
        if status != OK:
            raise NumericalError(f"{sentence(status)} at t = {int(self._t)}")
        return q

    def _coordinates(self, features: Any, context: Any) -> tuple[Floats, Floats]:
        """Return z and e of a context, given by its features or by itself."""
        if (features is None) == (context is None):
            raise ValueError("give either features= or context=")
        return self.problem.single_context(self.problem.feature_map(context) if features is None else features)

    def probabilities(self, *, features: Any = None, context: Any = None) -> Floats:
        """Return pi_t(. | x), shape (arms,), for features (arms, dimension) or for a context from the sampler."""
        z, e = self._coordinates(features, context)
        with self._lock:
            mixed: Floats = self._mixed(self._points(z), e)[0]
        return mixed

    def _mixed(self, q: Floats, e: Floats) -> Floats:
        """Return pi_t = (1 - gamma_t) q_t + gamma_t e (equation (3))."""
        gamma = self.exploration_rate
        return (1.0 - gamma) * q + gamma * e

    def act(self, *, features: Any = None, context: Any = None, name: str = "", id: None = None) -> Decision:
        """Choose an arm for features (arms, dimension), or for a context from the sampler.

        ``name`` becomes the decision's ``context_name``; its ``context`` is -1, since contexts are not listed. After an
        error no decision was taken. An ``id`` cannot be given.
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
        self._covariance.observe(z[0], key=self._key, time=number)
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
            self._registry.session,
            self.updates,
        )

    def update(
        self, decision: Decision | Sequence[Decision], reward: Feedback = None, *, loss: Feedback = None
    ) -> None:
        """Learn from the rewards or losses of one decision or of a batch. After an error nothing has changed."""
        given, is_reward = reward_or_loss(loss, reward)
        batch, values = ([decision], [given]) if isinstance(decision, Decision) else (batch_of(decision, given), given)
        limits = self.problem.reward_range
        losses = [checked_loss(value, is_reward=is_reward, reward_range=limits) for value in values]
        with self._lock:
            for item in batch:
                self._check(item)
            check_once(batch)
            self._learn(batch, losses)

    def _learn(self, batch: list[Decision], losses: list[float]) -> None:
        """Add theta_hat = loss direction to Theta, and advance the clock."""
        theta = self._theta + sum(loss * decision.direction for decision, loss in zip(batch, losses, strict=True))
        if not np.isfinite(theta).all():
            raise NumericalError(f"{sentence(NOT_FINITE)} at t = {int(self._t)}. The update was not applied")
        self._theta = theta
        for decision in batch:
            if self._rule.growth is not None and decision.baseline is not None:
                self._entropy += float(decision.baseline[0])
                self._inverse_rate += self._rule.growth(self._t, self._entropy)
            self._t += 1.0
            self._registry.close(decision)
        self._covariance.clear_cache()

    def _check(self, decision: Decision) -> None:
        """Refuse a decision that is not this policy's, not open, or damaged."""
        check_owner(decision, self.name)
        if refusal := self._registry.refusal(decision):
            raise ValueError(f"round {decision.round} {refusal}; each decision takes feedback once")
        expected = None if self._rule.growth is None else (1,)
        shape = None if decision.baseline is None else decision.baseline.shape
        if decision.direction.shape != self._theta.shape or shape != expected:
            raise ValueError(f"round {decision.round}: direction or baseline damaged, they do not fit this policy")
        carried = decision.direction if decision.baseline is None else np.append(decision.direction, decision.baseline)
        if not (0.0 < decision.propensity <= MAX_PROPENSITY and (np.abs(carried) <= MAX_CARRIED).all()):
            raise ValueError(
                f"round {decision.round}: propensity, direction or baseline damaged: not finite, out of range or above "
                f"{MAX_CARRIED:g}"
            )

    def expire(self, *, before: int) -> int:
        """Close all decisions without feedback from rounds before the given one; return their number."""
        with self._lock:
            return self._registry.expire(before=before)

    def learnt(self) -> dict[str, Floats]:
        """Return the learned fields by name, as copies; Theta is in the coordinates of ``problem.frame``."""
        return {"theta": self._theta.copy(), "clock": np.array([self._t, self._inverse_rate, self._entropy])}

    def save(self, path: str | Path) -> None:
        """Write the policy to an .npz file; ``bothworlds.load(path, problem=...)`` continues it bit for bit.

        The file has no functions: `bothworlds.load` needs the problem again.
        """
        check_npz(path, "a policy")
        with self._lock:
            write_arrays(path, *self._file_parts())

    def _file_parts(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return header and arrays for a file."""
        frame = self.problem.frame
        header = {
            "format": FORMAT,
            "algorithm": to_plain(self.algorithm),
            "name": self.name,
            "key": self._key,
            **self._registry.header(),
            "beyond_coverage": self.beyond_coverage,
            "arms": self.problem.arms,
            "reward_range": self.problem.reward_range,
        }
        arrays = {
            **self._registry.arrays(),
            "basis": frame.basis,
            "lift": frame.lift,
            "coverage": np.array([frame.coverage, *frame.halves]),
            **as_section("learnt", self.learnt()),
            **as_section("covariance", self._covariance.arrays()),
        }
        return header, arrays

    @internal
    def restore(
        self,
        *,
        name: str,
        registry: FeedbackRegistry,
        learnt: dict[str, Floats],
        covariance: dict[str, Floats],
        beyond_coverage: int,
    ) -> None:
        """Restore the state from the parts of a file."""
        shapes = {"theta": self._theta.shape, "clock": (3,)}
        if any(learnt[name].shape != shape or not np.isfinite(learnt[name]).all() for name, shape in shapes.items()):
            raise TypeError("the learned fields do not fit the problem")
        self.name, self.beyond_coverage = name, beyond_coverage
        self._begin_session(registry)
        self._theta = learnt["theta"].copy()
        self._t, self._inverse_rate, self._entropy = (float(value) for value in learnt["clock"])
        self._covariance.restore(covariance)
        self._covariance.clear_cache()

    def __repr__(self) -> str:
        return f"SampledPolicy({self.algorithm}, {self.rounds} rounds, {self.updates} updates)"


def _entropy(q: Floats) -> float:
    """Return H(q) = -sum_a q_a log q_a."""
    return float(sum(-p * math.log(p) for p in q.tolist() if p > 0.0))
