"""SampledProblem: contexts that can be drawn but not listed (Assumption 2.2 without the finite support of 2.3)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from bothworlds._hooks import provided
from bothworlds._public_names import internal
from bothworlds.arrays import Floats
from bothworlds.kernels.random import Seed, key_from
from bothworlds.problem import checks
from bothworlds.problem.feature_space import contains_constant
from bothworlds.problem.rewards import loss_of, reward_per_loss
from bothworlds.problem.sampled_frame import Frame, frame_of_sample

Sampler = Callable[[np.random.Generator], Any]
FeatureMap = Callable[[Any], Any]
Exploration = Literal["uniform"] | Callable[[Floats], Any]
OUTSIDE = 1e-6
LARGEST = 1e100  # coordinates are about 1
TRUSTED = 1.25  # largest ratio of given to sampled coverage without a note: both halves of a sample have errors
NEEDS_LIST = (
    "features",
    "probabilities",
    "contexts",
    "n_contexts",
    "available",
    "rarity",
    "span",
    "arm_independent_features",
    "with_probabilities",
    "context_index",
    "context_indices",
    "rows",
    "other",
    "fingerprint",
    "save",
)


class NotListedError(AttributeError, ValueError):
    """An attribute needs the list of contexts, which a sampled problem does not have."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class SampledProblem:
    """A linear contextual bandit problem whose contexts can be drawn, but not listed.

    What a `Problem` computes is estimated here from ``samples`` draws: the dimension d, which is the rank of their
    features; coordinates in which the second moment Sigma(e) of exploration is the identity; and the coverage lambda,
    one over their largest leverage. A future context exceeds that leverage with probability about 1/(samples + 1); a
    policy counts how often this happens. `describe` reports these estimates.

    Parameters
    ----------
    sampler
        A function of a numpy Generator that draws a context, any object, from the context distribution: a
        simulator, or a random row of past contexts. It must use no other source of randomness.
    feature_map
        A function of a context that returns phi(., x), of the same shape (arms, dimension) for all contexts.
    exploration
        "uniform", or a function of the features (arms, dimension) that returns the probabilities e(.|x), (arms,).
    coverage
        lambda, if known: phi^T Sigma(e)^-1 phi <= 1/lambda for all features. Estimated by default.
    samples
        Number of contexts drawn for the estimates.
    arms
        Names; "0", "1", ... by default.
    reward_range
        (lowest, highest) reward in the user's units, as in `Problem`; the features must then contain a constant.
    rng
        Seed of the draws.

    Examples
    --------
    >>> def visitor(rng):
    ...     return rng.uniform(-1.0, 1.0)
    >>> def features(age):
    ...     return [[1.0, 0.0, age], [0.0, 1.0, -age]]
    >>> SampledProblem(visitor, features)
    SampledProblem(2 arms, 3 features, coverage 0.2014 from 2000 samples)
    """

    sampler: Sampler
    feature_map: FeatureMap
    exploration: Exploration
    frame: Frame
    coverage_given: bool
    samples: int
    arms: tuple[str, ...]
    reward_range: tuple[float, float] | None
    sample_features: Floats
    sample_exploration: Floats

    def __init__(
        self,
        sampler: Sampler,
        feature_map: FeatureMap,
        exploration: Exploration = "uniform",
        coverage: float | None = None,
        *,
        samples: int = 2000,
        arms: Sequence[str] | None = None,
        reward_range: tuple[float, float] | None = None,
        rng: Seed = 0,
    ) -> None:
        for name, value in (("sampler", sampler), ("feature_map", feature_map)):
            if not callable(value):
                raise ValueError(f"{name} must be a function; got {value!r}")
        option: Any = exploration
        if not callable(option) and not (isinstance(option, str) and option == "uniform"):
            raise ValueError(f"exploration must be 'uniform' or a function of the features; got {exploration!r}")
        self._set(sampler=sampler, feature_map=feature_map, exploration=exploration)
        n = checks.whole(samples, 2, "samples")
        generator = np.random.default_rng(key_from(rng))
        phi = _stacked([feature_map(sampler(generator)) for _ in range(n)])
        e = self._exploration_of(phi)
        frame = frame_of_sample(phi, e)
        if coverage is not None:
            frame = frame._replace(coverage=_checked_coverage(coverage, frame.basis.shape[1]))
        limits = checks.check_reward_range(reward_range)
        _check_constant(phi, limits)
        self._set(frame=frame, coverage_given=coverage is not None, samples=n, reward_range=limits)
        self._set(arms=checks.names_of(arms, phi.shape[1], "arm"), sample_features=phi, sample_exploration=e)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in NEEDS_LIST:
                raise NotListedError(
                    f"a sampled problem has no {name}: its contexts are not listed. LCTsallisINF, RealFTRL and "
                    "RealLinExp3 can play it; for all others make a Problem, for instance with Problem.from_sample"
                )
            raise AttributeError(f"SampledProblem has no attribute {name!r}")

    @property
    def n_arms(self) -> int:
        """K, the number of arms."""
        return len(self.arms)

    @property
    def dimension(self) -> int:
        """d, the rank of the sampled features."""
        return int(self.frame.basis.shape[1])

    @property
    def n_features(self) -> int:
        """Number of columns of the features."""
        return int(self.frame.basis.shape[0])

    @property
    def coverage(self) -> float:
        """The coverage lambda, given or estimated."""
        return self.frame.coverage

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the span of the features, and on a given coverage that the sample contradicts."""
        sampled = max(self.frame.halves)
        if not self.coverage_given or self.coverage <= TRUSTED * sampled:
            return self.frame.notes
        note = (
            f"the coverage given, {self.coverage:.4g}, is more than the sample has, at most {sampled:.4g}: leverages "
            "exceed its inverse, and bounds that use it do not hold"
        )
        return (*self.frame.notes, note)

    @internal
    def draw(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw contexts; return coordinates (count, arms, d) and exploration probabilities (count, arms)."""
        phi = _stacked([self.feature_map(self.sampler(rng)) for _ in range(count)])
        return self.coordinates(phi), self._exploration_of(phi)

    @internal
    def single_context(self, features: Any) -> tuple[Floats, Floats]:
        """Return coordinates (1, arms, d) and exploration probabilities (1, arms) of one context."""
        phi = checks.frozen_array(features, "features")
        expected = (self.n_arms, self.n_features)
        if phi.shape != expected:
            raise ValueError(f"features of a context must have shape {expected}, (arms, dimension); got {phi.shape}")
        return self.coordinates(phi[None]), self._exploration_of(phi[None])

    def coordinates(self, phi: Floats) -> Floats:
        """Return features (contexts, arms, columns) in the coordinates of ``policy.learnt()``, (contexts, arms, d).

        Estimated losses are <z, Theta>. Raises ValueError for features outside the span of the sampled features.
        """
        if phi.shape[1:] != (self.n_arms, self.n_features):
            raise ValueError(f"feature_map gave {phi.shape[1:]}, earlier {(self.n_arms, self.n_features)}")
        with np.errstate(over="ignore", invalid="ignore"):
            z: Floats = np.ascontiguousarray(phi @ self.frame.basis)
        if not np.abs(z).max() <= LARGEST:
            raise ValueError(
                f"features of up to {np.abs(phi).max():.3g} are out of all proportion to those of sampled contexts, "
                "and too large to compute with"
            )
        if self.dimension < self.n_features:
            residual = np.abs(z @ self.frame.lift - phi).max()
            if residual > OUTSIDE * np.abs(phi).max():
                raise ValueError(
                    f"these features leave the {self.dimension} dimensions that {self.samples} sampled contexts span "
                    f"(by {residual:.3g}): nothing is known of that direction. Raise samples, or check the sampler"
                )
        return z

    def _exploration_of(self, phi: Floats) -> Floats:
        """Return e(.|x) for features (n, arms, columns)."""
        n, K, _ = phi.shape
        if not callable(self.exploration):
            return np.full((n, K), 1.0 / K)
        table = np.array([np.asarray(self.exploration(row), dtype=np.float64) for row in phi])
        if table.shape != (n, K) or not checks.are_distributions(table, within=1e-9):
            raise ValueError(f"exploration must return {K} probabilities that sum to 1; got {table[0]!r} first")
        return table

    @internal
    def with_frame(self, frame: Frame) -> Self:
        """Return the same problem with a saved policy's estimates; raise ValueError if they are of another problem."""
        own, other = self.frame.lift, frame.lift
        fits = own.shape == other.shape and np.allclose(own.T @ own, other.T @ other, rtol=1e-6, atol=1e-9)
        if not fits or not math.isclose(self.coverage, frame.coverage, rel_tol=1e-6):
            raise ValueError(
                "the policy was started on another problem: give load() a SampledProblem with the same sampler, "
                "feature_map, exploration, coverage, samples and rng"
            )
        copy = object.__new__(type(self))
        copy._set(**{**vars(self), "frame": frame})
        return copy

    @property
    def reward_per_loss(self) -> float:
        """The reward that corresponds to one unit of loss."""
        return reward_per_loss(self.reward_range)

    def loss_of(self, reward: float) -> float:
        """Return the loss in [-1, 1] of a reward in the user's units."""
        return loss_of(reward, self.reward_range)

    def describe(self) -> str:
        """Return the estimates, the sample size and the cost of exploration as text."""
        text: str = provided("describe_sampled")(self)
        return text

    def __repr__(self) -> str:
        rank = "" if self.dimension == self.n_features else f" of rank {self.dimension}"
        source = "given" if self.coverage_given else f"from {self.samples} samples"
        sizes = f"{self.n_arms} arms, {self.n_features} features{rank}"
        return f"SampledProblem({sizes}, coverage {self.coverage:.4g} {source})"


def _stacked(rows: list[Any]) -> Floats:
    """Return the features of several contexts as one array (n, arms, columns)."""
    try:
        arrays = [np.asarray(row) for row in rows]
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"feature_map must return an array of shape (arms, dimension): {error}") from None
    first = arrays[0].shape
    odd = next((array.shape for array in arrays if array.shape != first), None)
    if odd is not None:
        raise ValueError(f"feature_map must return arrays of one shape (arms, dimension); got {first} and {odd}")
    phi = checks.frozen_array(np.array(arrays), "features of a sampled context")
    if len(first) != 2:
        raise ValueError(f"feature_map must return an array of shape (arms, dimension); got shape {first}")
    checks.check_features(phi)
    return phi


def _checked_coverage(coverage: Any, dimension: int) -> float:
    """Return lambda as a float; raise ValueError for values that no exploration policy can have."""
    if not checks.is_number(coverage):
        raise ValueError(f"coverage must be a number; got {coverage!r}")
    value = float(coverage)
    if not 0.0 < value <= 1.0 / dimension * (1.0 + 1e-9):
        raise ValueError(
            f"coverage must lie in (0, 1/d], here (0, {1.0 / dimension:.4g}]: leverages average to d = {dimension} "
            f"under every exploration policy; got {value:g}"
        )
    return value


def _check_constant(phi: Floats, limits: tuple[float, float] | None) -> None:
    """Raise ValueError if the features cannot express the shift from rewards to losses."""
    if limits is None or limits[0] + limits[1] == 0.0:
        return
    if not contains_constant(phi, np.ones(phi.shape[:2], dtype=bool)):
        raise ValueError(
            f"rewards in [{limits[0]:g}, {limits[1]:g}] become losses in [-1, 1] by a shift, which these features "
            "cannot express: let feature_map return a column of ones as well"
        )
