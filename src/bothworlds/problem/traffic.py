"""The traffic mix: the law of contexts as known, as estimated from prior and counts, or as it drifts."""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.problem import checks
from bothworlds.problem.labelled import by_place

Kind = Literal["known", "estimated", "drifting"]


@dataclass(frozen=True, eq=False, repr=False)
class TrafficMix:
    """The law of contexts g(x), and how it follows what is observed; made by `known`, `estimated` or `drifting`.

    probabilities = (k g_0 + c)/(k + sum c)

    g_0 is the ``prior``, k its ``strength`` in observations, c the ``counts``. Known: c = 0 for good. Estimated: c
    are all observations, the estimate converges. Drifting: an observation that is n observations old counts (1 -
    1/window)^n, so that about ``window`` of them are remembered. Every context keeps a positive probability, k g_0/(k
    + sum c) at least.

    Estimates of losses that are made with a law other than the true one are biased; `bothworlds.theory.traffic` has the
    bias and its bound. Give a policy a new law from time to time, not with every decision: each is a plan of its own.

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
        """Take a law for true, whatever is observed."""
        return cls._begin("known", probabilities, 1.0, math.inf)

    @classmethod
    def estimated(cls, prior: Any, *, strength: float | None = None) -> Self:
        """Estimate a law that does not change; the prior is worth ``strength`` observations, one per context."""
        return cls._begin("estimated", prior, strength, math.inf)

    @classmethod
    def drifting(cls, prior: Any, *, window: float, strength: float | None = None) -> Self:
        """Follow a law that changes, by the last ``window`` observations or so."""
        return cls._begin("drifting", prior, strength, window)

    @classmethod
    def _begin(cls, kind: Kind, prior: Any, strength: float | None, window: float) -> Self:
        law = checks.frozen_array(by_place(prior, "probabilities"), "probabilities")
        checks.check_probabilities(law, law.size)
        k: Any = float(law.size) if strength is None else strength
        if not checks.is_number(k) or not 0.0 < k < math.inf:
            raise ValueError(f"strength is how many observations the prior is worth, positive; got {strength!r}")
        if kind == "drifting" and not (checks.is_number(window) and 1.0 < window < math.inf):
            raise ValueError(f"window is how many observations are remembered, more than 1; got {window!r}")
        return cls(kind, law, float(k), float(window), _frozen(np.zeros_like(law)))

    def observe(self, counts: Any) -> Self:
        """Return the mix after some more contexts, so many of each.

        Their order does not matter; for a law that drifts, they count as they would in the mean over all orders.

        >>> TrafficMix.drifting([0.5, 0.5], window=10, strength=1).observe([100, 0]).probabilities.round(3).tolist()
        [0.955, 0.045]
        """
        new = self._counts(counts)
        total = float(new.sum())
        seen = self.observed + round(total)
        if self.kind == "known" or total == 0.0:
            return replace(self, observed=seen)
        if self.kind == "estimated":
            return replace(self, counts=_frozen(self.counts + new), observed=seen)
        rate = total * math.log1p(-1.0 / self.window)
        share = -math.expm1(rate) * self.window / total
        return replace(self, counts=_frozen(math.exp(rate) * self.counts + share * new), observed=seen)

    def _counts(self, given: Any) -> Floats:
        """Return counts of contexts; refuse what cannot be."""
        counts = checks.frozen_array(by_place(given, "counts"), "counts")
        if counts.shape != self.prior.shape or (counts < 0.0).any():
            raise ValueError(f"counts must be {self.prior.size} numbers, none negative, one per context; got {given!r}")
        return counts

    @property
    def probabilities(self) -> Floats:
        """The law as it is thought to be now."""
        if self.kind == "known":
            return self.prior
        law = self.strength * self.prior + self.counts
        return _frozen(law / law.sum())

    def to_dict(self) -> dict[str, Any]:
        """Return the mix as plain values, for JSON."""
        window = None if math.isinf(self.window) else self.window
        arrays = {"prior": self.prior.tolist(), "counts": self.counts.tolist()}
        return {"kind": self.kind, "strength": self.strength, "window": window, "observed": self.observed, **arrays}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Make a mix again of what `to_dict` returned.

        >>> mix = TrafficMix.drifting([0.5, 0.5], window=10).observe([3, 1])
        >>> TrafficMix.from_dict(mix.to_dict()).probabilities.tolist() == mix.probabilities.tolist()
        True
        """
        try:
            kind, k, window = values["kind"], values["strength"], values["window"]
            if kind not in get_args(Kind):
                raise ValueError(f"the kind of a traffic mix is one of {', '.join(get_args(Kind))}; got {kind!r}")
            begun = cls._begin(kind, values["prior"], k, math.inf if window is None else window)
            observed = checks.whole(values["observed"], 0, "observed")
            return replace(begun, counts=begun._counts(values["counts"]), observed=observed)
        except (KeyError, TypeError) as error:
            raise ValueError(f"this is not a complete traffic mix: {error!r}") from None

    def __repr__(self) -> str:
        remembered = f", window {self.window:g}" if self.kind == "drifting" else ""
        return f"TrafficMix({self.kind}, {self.prior.size} contexts, {self.observed:,} observed{remembered})"


def _frozen(array: Floats) -> Floats:
    array.setflags(write=False)
    return array


def require_mix(mix: Any) -> TrafficMix:
    """Return a traffic mix; refuse what is none, a law above all."""
    if not isinstance(mix, TrafficMix):
        raise ValueError(f"a policy follows a TrafficMix; for a law use change_probabilities; got {mix!r:.80}")
    return mix
