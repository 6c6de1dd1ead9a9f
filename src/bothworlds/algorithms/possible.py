"""What a decision can carry: an algorithm's own knowledge of what none of its plans could have written.

A decision may come back from a log, and a log may be damaged. A check here must never refuse a decision that was taken,
however old the plan, so it uses what holds for every plan and what the decision says of its own moment: its propensity.
"""

from collections.abc import Callable, Sequence
from operator import mul

from bothworlds.decision import Decision
from bothworlds.kernels.entries import World

Possible = Callable[[Decision], bool]
SLACK = 0.01  # far above rounding: a plan is refused where its leverages are wrong by 1e-6 of their mean


def leverages(world: World) -> Possible:
    """Return the check for direction = Sigma^-1 z with Sigma >= g(x) pi(a|x) z z^T: 0 <= <z, direction> g pi <= 1.

    It holds for the covariance of all arms and for that of the arm played, whatever the tuning.
    """

    def possible(made: Decision) -> bool:
        z = world.z[made.context, made.arm].tolist()  # plain floats: faster than an array of a few
        leverage: float = sum(map(mul, z, made.direction.tolist()))
        return -SLACK <= leverage * float(world.g[made.context]) * made.propensity <= 1.0 + SLACK

    return possible


def is_importance_weight(made: Decision) -> bool:
    """Tell whether a direction is 1/pi(a|x) at the arm played and zero elsewhere, with a baseline in [0, 1]."""
    weights = made.direction.tolist()
    weight = weights.pop(made.arm)
    within = made.baseline is None or all(0.0 <= share <= 1.0 for share in made.baseline.tolist())
    return within and not any(weights) and abs(weight * made.propensity - 1.0) <= SLACK


def is_seed(made: Decision) -> bool:
    """Tell whether a direction is a uniform on [0, 1), and zeros."""
    seed, *rest = made.direction.tolist()
    return 0.0 <= seed < 1.0 and not any(rest)


def options_of_a_master(start: int, *, policies: int | None = None) -> Possible:
    """Return the check for what a reduction's decision tells its master: option, 1/q of it, 1/q_2, epoch.

    Of an algorithm on listed policies the number of the one drawn comes next; each of them is an index, so that a wrong
    one would be written where it does not belong.
    """

    def possible(made: Decision) -> bool:
        option, inverse, base, epoch, *more = made.direction.tolist()[start:]
        drawn = policies is None or _is_index(more, policies)
        return option in (0.0, 1.0) and min(inverse, base) >= 1.0 - SLACK and epoch >= 1.0 and drawn

    return possible


def _is_index(numbers: Sequence[float], count: int) -> bool:
    """Tell whether the first number is a whole one from 0 to count - 1."""
    return bool(numbers) and numbers[0].is_integer() and 0 <= numbers[0] < count
