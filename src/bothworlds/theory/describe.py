"""Describe a problem in words: sizes, rarity, coverage, and the cost of exploration."""

from bothworlds.problem import Problem, SampledProblem
from bothworlds.theory.design import design
from bothworlds.theory.schedules import schedule, stability_constant


def describe(problem: Problem) -> str:
    """Return sizes, rarity and coverage of a problem, and t0 of LC-Tsallis-INF, as text.

    Uses the joint design and the paper's constants.
    """
    explore = design(problem)
    rates = schedule(
        alpha=0.5,
        n_arms=problem.n_arms,
        dimension=problem.dimension,
        coverage=explore.coverage,
        rarity=problem.rarity,
        constant=stability_constant(0.5),
        use_linear=False,
    )
    rarest = problem.contexts[int(problem.probabilities.argmin())]
    t0 = rates.exploration_rounds
    unit = "units of loss" if problem.reward_range is None else "units of reward"
    offered = int(problem.available.sum())
    lines = [
        f"{problem.n_contexts} contexts (S), {problem.n_arms} arms (K), {problem.dimension} dimensions (d)",
        f"rarity L = {problem.rarity:.4g}: the rarest context is {rarest!r}",
        f"coverage lambda = {explore.coverage:.4g} with the joint design, within {explore.gap:.1%} of the best "
        f"(the worst-case bound 1/(d L) is {1 / (problem.dimension * problem.rarity):.2g})",
        f"t0 = {t0:,.0f}: with the paper's constants half of the first t0 rounds are exploration,",
        f"which costs at most {_amount(t0 * problem.reward_per_loss)} {unit}; "
        "'certified' explores far less, 'matched', the default, learns far sooner",
    ]
    if offered < problem.available.size:
        lines.append(f"{offered} of {problem.available.size} pairs of context and arm are offered")
    return "\n".join([*lines, *(f"note: {note}" for note in problem.notes)])


def describe_sampled(problem: SampledProblem) -> str:
    """Return the estimates for a problem whose contexts are not listed, and the sample size, as text."""
    n, d, lam = problem.samples, problem.dimension, problem.coverage
    t0 = schedule(
        alpha=0.5, n_arms=problem.n_arms, dimension=d, coverage=lam, rarity=None, constant=stability_constant(0.5)
    ).exploration_rounds
    unit = "units of loss" if problem.reward_range is None else "units of reward"
    first, second = problem.frame.halves
    if problem.coverage_given:
        coverage = [
            f"coverage lambda = {lam:.4g}, as given (the halves of the sample suggest {first:.4g} and {second:.4g})"
        ]
    else:
        coverage = [
            f"coverage lambda = {lam:.4g}, estimated: one over the largest of {n * problem.n_arms:,} sampled leverages",
            f"(its halves give {first:.4g} and {second:.4g}); a future context exceeds it with probability about "
            f"1/{n + 1:,}",
        ]
    lines = [
        f"{problem.n_arms} arms (K), contexts drawn by a sampler; all estimates are from {n:,} samples",
        f"{d} dimensions (d): the rank of the sampled second moment of {problem.n_features} features",
        *coverage,
        f"t0 = {t0:,.0f}: with gamma = 8 eta/lambda half of the first t0 rounds of LC-Tsallis-INF are exploration,",
        f"which costs at most {_amount(t0 * problem.reward_per_loss)} {unit}",
    ]
    return "\n".join([*lines, *(f"note: {note}" for note in problem.notes)])


def _amount(value: float) -> str:
    """Format an amount with four significant digits, or as a whole number from 1,000 on.

    >>> _amount(15223.6), _amount(0.012345)
    ('15,224', '0.01235')
    """
    return f"{value:,.0f}" if value >= 1000.0 else f"{value:.4g}"
