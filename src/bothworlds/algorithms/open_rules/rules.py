"""The rules of algorithms on open problems."""

from typing import Any

from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import LCTsallisINF
from bothworlds.algorithms.lc_tsallis.matched import Matched
from bothworlds.algorithms.open_rules.open_tsallis import OpenTsallis
from bothworlds.open_contexts import OpenRule

KNOWN = "LCTsallisINF() has one"


def open_rule_of(algorithm: Any) -> OpenRule:
    """Return the rule of an algorithm for problems whose contexts are not listed; raise ValueError without one.

    >>> from bothworlds import RealFTRL
    >>> open_rule_of(RealFTRL(horizon=100))
    Traceback (most recent call last):
    ValueError: RealFTRL has no rule for an OpenProblem: LCTsallisINF() has one
    """
    if isinstance(algorithm, LCTsallisINF):
        if isinstance(algorithm.tuning, Matched):
            return OpenTsallis(algorithm.tuning)
        raise ValueError(
            f"the tuning {algorithm.tuning} needs a list of contexts, and an OpenProblem has none: use "
            "LCTsallisINF(), whose tuning is 'matched'"
        )
    raise ValueError(f"{type(algorithm).__name__} has no rule for an OpenProblem: {KNOWN}")
