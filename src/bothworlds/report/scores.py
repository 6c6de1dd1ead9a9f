"""Scores: how far an algorithm is from the best reference player, regime by regime, and where it is worst.

The measure is that of the scoreboard, (max(R, 0) + s)/(max(R_ref, 0) + s) with s = sqrt(d T)/10 and R_ref the smallest
regret of the reference players and of the algorithm itself. No other algorithm has a say in it.
"""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.report.scoreboard import ratios, slack
from bothworlds.report.statistics import Estimate, jackknife, means_without_one

Outcomes = Mapping[str, Floats]  # regret at the horizon of every replication (R,), by label


class Rating(NamedTuple):
    """A ratio to the best reference: as it is first, then with each replication left out in turn (1 + R,)."""

    several: Floats

    @property
    def value(self) -> float:
        """The ratio itself."""
        return float(self.several[0])

    @property
    def interval(self) -> tuple[float, float]:
        """Its 95 % interval, of its logarithm, for it is a ratio; not numbers for a single replication."""
        middle, half = _estimate(np.log(self.several))
        return float(np.maximum(1.0, math.exp(middle - half))), math.exp(middle + half)


class Score(NamedTuple):
    """The largest ratio of an algorithm over the regimes, and the regime where it has it."""

    rating: Rating
    regime: str

    @property
    def value(self) -> float:
        """The score itself."""
        return self.rating.value


def ratings(players: Outcomes, references: Outcomes, *, dimension: int, horizon: int) -> dict[str, Rating]:
    """Return the ratio of every player to the best of the references and itself; at least 1.

    >>> found = ratings({"mine": np.array([30.0])}, {"even": np.array([10.0])}, dimension=4, horizon=10_000)
    >>> round(found["mine"].value, 3)
    1.667
    """
    rivals = np.array([_means(outcomes) for outcomes in references.values()])
    found = {}
    for label, outcomes in players.items():
        mine = _means(outcomes)[None, :]
        slacks = np.full(mine.shape[1], slack(dimension, horizon))
        found[label] = Rating(ratios(mine, slacks, rivals=rivals)[0])
    return found


def _means(outcomes: Floats) -> Floats:
    """Return the mean, and the means with each replication left out, if there are several."""
    some = means_without_one(outcomes[:, None])[:, 0] if len(outcomes) > 1 else np.zeros(0)
    return np.concatenate([[outcomes.mean()], some])


def scores(regimes: Mapping[str, Mapping[str, Rating]]) -> dict[str, Score]:
    """Return the score of every algorithm that was rated in all regimes: the worst regime counts."""
    if not regimes or not all(regimes.values()):
        return {}
    names = list(regimes)
    found = {}
    for label in dict.fromkeys(label for rated in regimes.values() for label in rated):
        if all(label in rated for rated in regimes.values()):
            table = np.array([regimes[name][label].several for name in names])
            found[label] = Score(Rating(table.max(axis=0)), names[int(table[:, 0].argmax())])
    return found


def clearly_smallest(found: Mapping[str, Score], *, sign: float = 1.0) -> str | None:
    """Return the label whose score is below every other's beyond noise, at 95 %, or None; ``sign=-1``: above."""
    if len(found) < 2:
        return None
    best = min(found, key=lambda label: sign * found[label].value)
    for label in found:
        if label != best:
            # of ratios, so that the regret of the reference, which both share, takes no part in the noise
            apart = _estimate(sign * np.log(found[label].rating.several / found[best].rating.several))
            if not apart.value > apart.half:
                return None
    return best


def _estimate(several: Floats) -> Estimate:
    """Return a number and the half width of its interval from what it is with each replication left out."""
    first, *others = several.tolist()
    return Estimate(first, jackknife(first, others).half if others else math.nan)


def told(ratio: float) -> str:
    """Return a ratio as a sentence has it, with the digits of the tables.

    >>> told(2.769), told(182.68), told(12_345.6)
    ('2.77', '183', '12,346')
    """
    return f"{ratio:,.0f}" if ratio >= 100.0 else f"{ratio:.3g}"


def finding(found: Mapping[str, Score], *, yardsticks: Iterable[str] = ()) -> list[str]:
    """Return the result in sentences: who is never far from the best, and who is farthest; none where it is not clear.

    ``yardsticks`` are players that learn nothing: nobody needs to be told that they are far from the best.
    """
    sentences = []
    safest = clearly_smallest(found)
    if safest is not None:
        score = found[safest]
        sentences.append(
            f"{safest} is the safest of these: its worst ratio to the best reference player is "
            f"{told(score.value)}, in the regime {score.regime}."
        )
    learners = {label: score for label, score in found.items() if label not in set(yardsticks)}
    farthest = clearly_smallest(learners, sign=-1.0)
    if farthest is not None and farthest != safest:
        score = found[farthest]
        sentences.append(
            f"{farthest} has the largest worst ratio of the learners, {told(score.value)}, "
            f"in the regime {score.regime}."
        )
    return sentences
