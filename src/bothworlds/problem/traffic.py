"""Traffic mix: a context distribution that is known, estimated from a prior and counts, or drifting."""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.problem import checks
from bothworlds.problem.lookup import by_position

Kind = Literal["known", "estimated", "drifting"]


@dataclass(frozen=True, eq=False, repr=False)
class TrafficMix:
    """A context distribution g(x) that is updated by observations; create it with `known`, `estimated` or `drifting`.

    probabilities = (k g_0 + c)/(k + sum c)

    g_0 is the ``prior``, k its ``strength`` in observations, c the ``counts``. Known: c stays 0. Estimated: c counts
    all observations, and the estimate converges. Drifting: an observation that is n observations old counts
    (1 - 1/window)^n, so about ``window`` of them are remembered. Every context keeps a positive probability, at least
    k g_0/(k + sum c).

    Loss estimates are biased if the context distribution is wrong; `studies/context_distribution_bias.py` computes the
    bias and its bound. Update the distribution of a policy from time to time, not with every decision: each update
    computes a new plan.

    >>> mix = TrafficMix.estimated([0.5, 0.5], strength=10)
    >>> mix.observe([60, 30]).probabilities.tolist()
    [0.65, 0.35]
    >>> mix.probabilities.tolist()
    [0.5, 0.5]
    """

    kind: Kind
    prior: Floats
    strength: float
    window: float
    counts: Floats
    observed: int = 0

    @classmethod
    def known(cls, probabilities: Any) -> Self:
        """Use fixed probabilities, whatever is observed."""
        return cls._create("known", probabilities, 1.0, math.inf)

    @classmethod
    def estimated(cls, prior: Any, *, strength: float | None = None) -> Self:
        """Estimate a fixed distribution; the prior counts as ``strength`` observations (default: one per context)."""
        return cls._create("estimated", prior, strength, math.inf)

    @classmethod
    def drifting(cls, prior: Any, *, window: float, strength: float | None = None) -> Self:
        """Track a changing distribution with about the last ``window`` observations."""
        return cls._create("drifting", prior, strength, window)

    @classmethod
    def _create(cls, kind: Kind, prior: Any, strength: float | None, window: float) -> Self:
        g = checks.frozen_array(by_position(prior, "probabilities"), "probabilities")
        checks.check_probabilities(g, g.size)
        k: Any = float(g.size) if strength is None else strength
        if not checks.is_number(k) or not 0.0 < k < math.inf:
            raise ValueError(
                f"strength must be a positive number, the observations that the prior counts as; got {strength!r}"
            )
        if kind == "drifting" and not (checks.is_number(window) and 1.0 < window < math.inf):
            raise ValueError(f"window must be a number above 1, the observations that are remembered; got {window!r}")
        return cls(kind, g, float(k), float(window), _frozen(np.zeros_like(g)))

    def observe(self, counts: Any) -> Self:
        """Return the mix after more contexts, given as one count per context.

        Their order does not matter; a drifting mix weights them by the mean over all orders.

        >>> TrafficMix.drifting([0.5, 0.5], window=10, strength=1).observe([100, 0]).probabilities.round(3).tolist()
        [0.955, 0.045]
        """
        new = self._counts(counts)
        total = float(new.sum())
        observed = self.observed + round(total)
        if self.kind == "known" or total == 0.0:
            return replace(self, observed=observed)
        if self.kind == "estimated":
            return replace(self, counts=_frozen(self.counts + new), observed=observed)
        rate = total * math.log1p(-1.0 / self.window)
        share = -math.expm1(rate) * self.window / total
        return replace(self, counts=_frozen(math.exp(rate) * self.counts + share * new), observed=observed)

    def _counts(self, given: Any) -> Floats:
        """Return counts as an array; raise ValueError unless there is one per context, none negative."""
        counts = checks.frozen_array(by_position(given, "counts"), "counts")
        if counts.shape != self.prior.shape or (counts < 0.0).any():
            raise ValueError(f"counts must be {self.prior.size} numbers, none negative, one per context; got {given!r}")
        return counts

    @property
    def probabilities(self) -> Floats:
        """The current estimate of the context distribution."""
        if self.kind == "known":
            return self.prior
        weights = self.strength * self.prior + self.counts
        return _frozen(weights / weights.sum())

    def to_dict(self) -> dict[str, Any]:
        """Return the mix as plain values, for JSON."""
        window = None if math.isinf(self.window) else self.window
        arrays = {"prior": self.prior.tolist(), "counts": self.counts.tolist()}
        return {"kind": self.kind, "strength": self.strength, "window": window, "observed": self.observed, **arrays}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Rebuild a mix from `to_dict`.

        >>> mix = TrafficMix.drifting([0.5, 0.5], window=10).observe([3, 1])
        >>> TrafficMix.from_dict(mix.to_dict()).probabilities.tolist() == mix.probabilities.tolist()
        True
        """
        try:
            kind, k, window = values["kind"], values["strength"], values["window"]
            if kind not in get_args(Kind):
                raise ValueError(f"the kind of a traffic mix is one of {', '.join(get_args(Kind))}; got {kind!r}")
            mix = cls._create(kind, values["prior"], k, math.inf if window is None else window)
            observed = checks.whole(values["observed"], 0, "observed")
            return replace(mix, counts=mix._counts(values["counts"]), observed=observed)
        except (KeyError, TypeError) as error:
            raise ValueError(f"this is not a complete traffic mix: {error!r}") from None

    def __repr__(self) -> str:
        remembered = f", window {self.window:g}" if self.kind == "drifting" else ""
        return f"TrafficMix({self.kind}, {self.prior.size} contexts, {self.observed:,} observed{remembered})"


def _frozen(array: Floats) -> Floats:
    array.setflags(write=False)
    return array


def require_mix(mix: Any) -> TrafficMix:
    """Return a traffic mix; raise ValueError for other objects, such as plain probabilities."""
    if not isinstance(mix, TrafficMix):
        raise ValueError(f"a policy follows a TrafficMix; for probabilities use change_probabilities; got {mix!r:.80}")
    return mix
