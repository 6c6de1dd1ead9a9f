"""Scores: ratios to the best reference player, and their arithmetic."""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.report.statistics import Estimate, jackknife, means_without_one


def slack(dimension: int, horizon: int) -> float:
    """Return s = sqrt(d T)/10, so that differences far below the order of the adversarial bound do not matter.

    >>> slack(4, 10_000)
    20.0
    """
    return math.sqrt(dimension * horizon) / 10.0


def ratios(regrets: Floats, slacks: Floats, *, rivals: Floats | None = None) -> Floats:
    """Return (max(R, 0) + s)/(max(R_best, 0) + s) for regrets (algorithms, cells) and slacks (cells,).

    R_best is the smallest regret of a cell among the algorithms; with ``rivals`` (others, cells) it is the smallest
    among the rivals and the algorithm itself, so that the ratio of one algorithm does not depend on another one.

    >>> ratios(np.array([[5.0, -3.0], [30.0, 20.0]]), np.array([20.0, 20.0])).tolist()
    [[1.0, 1.0], [2.0, 2.0]]
    """
    positive = np.maximum(regrets, 0.0)
    best = positive.min(axis=0, keepdims=True)
    if rivals is not None:
        best = np.minimum(positive, np.maximum(rivals, 0.0).min(axis=0))
    return np.asarray((positive + slacks) / (best + slacks))


Outcomes = Mapping[str, Floats]  # regret at the horizon of every replication (R,), by label


class Rating(NamedTuple):
    """A ratio to the best reference: the ratio itself, then the ratios with each replication left out (1 + R,)."""

    several: Floats

    @property
    def value(self) -> float:
        """The ratio itself."""
        return float(self.several[0])

    @property
    def interval(self) -> tuple[float, float]:
        """Its 95 % interval, computed for its logarithm; NaN for a single replication."""
        middle, half = _estimate(np.log(self.several))
        return float(np.maximum(1.0, math.exp(middle - half))), math.exp(middle + half)


class Score(NamedTuple):
    """The largest ratio of an algorithm over the regimes, and the regime with that ratio."""

    rating: Rating
    regime: str

    @property
    def value(self) -> float:
        """The score itself."""
        return self.rating.value


def ratings(players: Outcomes, references: Outcomes, *, dimension: int, horizon: int) -> dict[str, Rating]:
    """Return the ratio of every player to the best of the references and itself; at least 1.

    >>> rated = ratings({"mine": np.array([30.0])}, {"even": np.array([10.0])}, dimension=4, horizon=10_000)
    >>> round(rated["mine"].value, 3)
    1.667
    """
    rivals = np.array([_means(outcomes) for outcomes in references.values()])
    rated = {}
    for label, outcomes in players.items():
        means = _means(outcomes)[None, :]
        slacks = np.full(means.shape[1], slack(dimension, horizon))
        rated[label] = Rating(ratios(means, slacks, rivals=rivals)[0])
    return rated


def _means(outcomes: Floats) -> Floats:
    """Return the mean, followed by the means with each replication left out if there are several."""
    others = means_without_one(outcomes[:, None])[:, 0] if len(outcomes) > 1 else np.zeros(0)
    return np.concatenate([[outcomes.mean()], others])


def scores(regimes: Mapping[str, Mapping[str, Rating]]) -> dict[str, Score]:
    """Return the score of every algorithm that was rated in all regimes: its ratio in the worst regime."""
    if not regimes or not all(regimes.values()):
        return {}
    names = list(regimes)
    worst = {}
    for label in dict.fromkeys(label for rated in regimes.values() for label in rated):
        if all(label in rated for rated in regimes.values()):
            table = np.array([regimes[name][label].several for name in names])
            worst[label] = Score(Rating(table.max(axis=0)), names[int(table[:, 0].argmax())])
    return worst


def clearly_smallest(worst: Mapping[str, Score], *, sign: float = 1.0) -> str | None:
    """Return the label whose score is significantly (95 %) below all others, or None; with ``sign=-1``, above."""
    if len(worst) < 2:
        return None
    best = min(worst, key=lambda label: sign * worst[label].value)
    for label in worst:
        if label != best:
            # the regret of the reference, which both share, cancels in the quotient of the ratios
            difference = _estimate(sign * np.log(worst[label].rating.several / worst[best].rating.several))
            if not difference.value > difference.half:
                return None
    return best


def _estimate(several: Floats) -> Estimate:
    """Return a number and the half width of its interval, from its values with each replication left out."""
    first, *others = several.tolist()
    return Estimate(first, jackknife(first, others).half if others else math.nan)


def ratio_in_words(ratio: float) -> str:
    """Return a ratio for a sentence, with the digits of the tables.

    >>> ratio_in_words(2.769), ratio_in_words(182.68), ratio_in_words(12_345.6)
    ('2.77', '183', '12,346')
    """
    return f"{ratio:,.0f}" if ratio >= 100.0 else f"{ratio:.3g}"


def finding(worst: Mapping[str, Score], *, baselines: Iterable[str] = ()) -> list[str]:
    """Return sentences on the algorithms with the smallest and the largest worst ratio, where these are significant.

    ``baselines`` do not learn, and are never reported as the worst.
    """
    sentences = []
    safest = clearly_smallest(worst)
    if safest is not None:
        score = worst[safest]
        sentences.append(
            f"{safest} is the safest of these: its worst ratio to the best reference player is "
            f"{ratio_in_words(score.value)}, in the regime {score.regime}."
        )
    learners = {label: score for label, score in worst.items() if label not in set(baselines)}
    farthest = clearly_smallest(learners, sign=-1.0)
    if farthest is not None and farthest != safest:
        score = worst[farthest]
        sentences.append(
            f"{farthest} has the largest worst ratio of the learners, {ratio_in_words(score.value)}, "
            f"in the regime {score.regime}."
        )
    return sentences
