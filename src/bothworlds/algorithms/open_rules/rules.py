"""The rules of algorithms on open problems."""

from typing import Any

from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import LCTsallisINF
from bothworlds.algorithms.lc_tsallis.matched import Matched
from bothworlds.algorithms.open_rules.open_linear import rule_by_bounds, rule_by_gaps
from bothworlds.algorithms.open_rules.open_tsallis import OpenTsallis
from bothworlds.algorithms.regression.discounted import DLinUCB
from bothworlds.algorithms.regression.optimism import LinUCB
from bothworlds.algorithms.regression.squarecb import SquareCB
from bothworlds.open_contexts import OpenRule

KNOWN = "LCTsallisINF(), LinUCB(), DLinUCB() and SquareCB() have one"


def open_rule_of(algorithm: Any) -> OpenRule:
    """Return the rule of an algorithm for problems whose contexts are not listed; raise ValueError without one.

    >>> from bothworlds import RealFTRL
    >>> open_rule_of(RealFTRL(horizon=100))
    Traceback (most recent call last):
    ValueError: RealFTRL has no rule for an OpenProblem: LCTsallisINF(), LinUCB(), DLinUCB() and SquareCB() have one
    """
    if isinstance(algorithm, LCTsallisINF):
        if isinstance(algorithm.tuning, Matched):
            return OpenTsallis(algorithm.tuning)
        raise ValueError(
            f"the tuning {algorithm.tuning} needs a list of contexts, and an OpenProblem has none: use "
            "LCTsallisINF(), whose tuning is 'matched'"
        )
    if isinstance(algorithm, LinUCB):
        return rule_by_bounds(width=algorithm.width, ridge=algorithm.ridge)
    if isinstance(algorithm, DLinUCB):
        return rule_by_bounds(width=algorithm.width, ridge=algorithm.ridge, discount=algorithm.discount)
    if isinstance(algorithm, SquareCB):
        return rule_by_gaps(scale=algorithm.scale, ridge=algorithm.ridge)
    raise ValueError(f"{type(algorithm).__name__} has no rule for an OpenProblem: {KNOWN}")
