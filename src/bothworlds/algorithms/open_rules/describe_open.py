"""Describe an open problem in words: features, what a plan costs, and what is proved."""

from bothworlds.algorithms.lc_tsallis.change_evidence import WINDOWS
from bothworlds.algorithms.open_rules.open_tsallis import CAPACITY, TYPICAL_CANDIDATES, plan_operations
from bothworlds.algorithms.open_rules.pieces import ROW_BY_ROW, longest_piece
from bothworlds.problem.open import OpenProblem

PER_SECOND = 1e9  # operations of kernel code on one core, roughly


def describe_open(problem: OpenProblem) -> str:
    """Return features, memory and cost of the default rule, and what is proved, as text."""
    blocks, size = problem.shape
    n_arms = TYPICAL_CANDIDATES if problem.arms is None else len(problem.arms)
    rows = 1 if blocks > 1 else n_arms
    numbers = blocks * size * size * (len(WINDOWS) + 3) + CAPACITY * rows * size
    operations = plan_operations(blocks, size, n_arms, CAPACITY)
    most = longest_piece(operations)
    if blocks > 1:
        models = f"{blocks} arms, each with its own model of {size} features: {problem.dimension} dimensions"
    else:
        who = "candidates with each request" if problem.arms is None else f"{n_arms} arms"
        models = f"{who}; one model of {size} features"
    shown = ", ".join(problem.features[:8]) + (", ..." if size > 8 else "")
    lines = [
        models,
        f"features: {shown}",
        f"the default rule keeps {CAPACITY} recent contexts and about {_size(8.0 * numbers)}; a plan takes about "
        f"{_time(operations / PER_SECOND)}" + ("," if problem.arms else f" with {n_arms} candidates a request,"),
        "and every reward that is learned gets one"
        + (f"; from the {ROW_BY_ROW}th on, at most {most:.0f} rewards share one" if most > 1.0 else ""),
        "proved: nothing for contexts that are not listed, because their covariance is estimated; estimates are biased",
        "by at most its error times what the regression does not predict",
    ]
    return "\n".join([*lines, *(f"note: {note}" for note in problem.notes)])


def _size(count: float) -> str:
    """Format a number of bytes.

    >>> _size(5e4), _size(2.5e7)
    ('50 KB', '25 MB')
    """
    return f"{count / 1e3:,.0f} KB" if count < 1e6 else f"{count / 1e6:,.0f} MB"


def _time(seconds: float) -> str:
    """Format a duration.

    >>> _time(2.5e-4), _time(0.0137)
    ('0.25 ms', '14 ms')
    """
    return f"{1e3 * seconds:.2g} ms"
