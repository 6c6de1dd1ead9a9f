"""Policies that the adaptive tuning has left in files: it is gone, and `Matched` goes on with what they have learnt.

The two had predictions, estimates and coordinates in common, so that Theta, the regression, the clock and what open
decisions carry are taken as they are. The learning rate goes on from where the clock of its noise had brought it,

    eta = scale K^(1/4)/sqrt(offset d) (1 + n/offset)^-slope.
"""

import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bothworlds.errors import users_line
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import all_parts
from bothworlds.policy.footing import MARK, Footing, fingerprint_of
from bothworlds.theory.schedules import Matching, learning_gain

GONE = "the adaptive tuning, which is gone"
LEAVES = (  # of its memory
    *("t", "theta", "start", "start_rate", "ridge", "response", "noisy", "tail", "rates", "entropy", "y", "q", "pi"),
    *("sigma", "inverse", "baseline", "vector", "half", "mixed", "sums", "powers"),
)


def is_former(header: Mapping[str, Any]) -> bool:
    """Tell whether the header of a file with its frame names the adaptive tuning."""
    algorithm = header["algorithm"]
    tuning = algorithm.get("tuning") if isinstance(algorithm, dict) else None
    return isinstance(tuning, dict) and tuning.get("name") == "Adaptive"


def successor(header: Mapping[str, Any], path: str | Path) -> dict[str, Any]:
    """Return the header with the matched tuning in the place of the adaptive one, and say so."""
    algorithm = header["algorithm"]
    if algorithm["alpha"] != 0.5:
        raise ValueError(
            f"{path} was saved with {GONE}, and alpha = {algorithm['alpha']}: the matched tuning, which goes on with "
            "such policies, is for alpha = 1/2 alone. Start a new policy; Prior.from_rows takes what stands in a log"
        )
    warnings.warn(
        f"{path} was saved with {GONE}: the matched tuning goes on with what it has learnt", stacklevel=users_line()
    )
    tuning = {"name": "Matched", "caution": Matching.caution, "leaning": Matching.leaning}
    return {**header, "algorithm": {**algorithm, "tuning": tuning}}


def taken_over(
    algorithm: Mapping[str, Any], header: Mapping[str, Any], arrays: Mapping[str, Any], footing: Footing
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and arrays of a policy of the adaptive tuning, ``algorithm``, for `Matched`, whose footing it is.

    The header has the mark of its decisions, so that they are known as those of a rule that is over.
    """
    tuning = algorithm["tuning"]
    beta = inverse_rate(tuning, float(arrays["learnt.noisy"][0]), first=footing.machine.options.first)
    now = {**header, "footing": header.get("footing", ""), "mark": mark_of(algorithm, footing)}
    return now, {**arrays, "learnt.inverse_rate": np.array([beta]), **counted_in(algorithm, arrays)}


def counted_in(algorithm: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, Floats]:
    """Return how many rounds are in Theta, for files that do not say it: it faded by t/(t + recency) in every round."""
    return {"learnt.counted": (arrays["learnt.t"] - 1.0) / (1.0 + algorithm["tuning"].get("recency", 0.0))}


def inverse_rate(tuning: Mapping[str, Any], noisy: float, *, first: float) -> float:
    """Return beta = 1/eta of the last plan, but at least the first one of `Matched`, sqrt(d)/K^(1/4)."""
    scale, offset, slope = (float(tuning[name]) for name in ("scale", "offset", "slope"))
    return first * max(1.0, math.sqrt(offset) / scale * math.pow(1.0 + noisy / offset, slope))


def mark_of(algorithm: Mapping[str, Any], footing: Footing) -> str:
    """Return the mark that decisions of the adaptive tuning have on the problem of a footing."""
    tuning, sizes = algorithm["tuning"], footing.machine.sizes
    slope, offset = tuning["slope"], tuning["offset"]
    rate = learning_gain(alpha=0.5, n_arms=sizes.K, dimension=sizes.d)
    gain = tuning["scale"] * rate * offset ** (slope - 0.5) * offset**-slope
    own = [tuning[name] for name in ("slope", "offset", "recency", "forgetting", "floor")]
    leverage = 1.0 / float(footing.machine.frame["coverage"][0])
    options = [0.5, gain, *own, tuning["c"] or 0.0, (sizes.K**0.5 - 1.0) / 0.5, leverage]
    said = [footing.problem.fingerprint, algorithm, LEAVES]
    return fingerprint_of(said, [*all_parts(footing.machine.known), np.array(options)])[:MARK]
