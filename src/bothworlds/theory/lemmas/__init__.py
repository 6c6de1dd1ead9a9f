"""The paper's lemmas as pure functions, each with a test by enumeration."""

from bothworlds.theory.lemmas.estimates import estimate_bound, largest_estimates, second_moments
from bothworlds.theory.lemmas.margin import (
    largest_margin_gap,
    margin_condition,
    margin_mean,
    margin_value,
    omega_sum_bound,
)
from bothworlds.theory.lemmas.matching import (
    centred,
    centred_lengths,
    entropy_growth,
    largest_cost,
    linear_cost,
    stability_cost,
    stability_share,
    step_cost,
)
from bothworlds.theory.lemmas.penalty import entropy_sum_bound, omega, penalty_bound, tsallis_entropy
from bothworlds.theory.lemmas.stability import (
    shannon_stability_bound,
    shannon_stability_value,
    stability_bound,
    stability_bound_of_paper,
    stability_factor,
    stability_step,
    stability_value,
)

__all__ = [
    "centred",
    "centred_lengths",
    "entropy_growth",
    "entropy_sum_bound",
    "estimate_bound",
    "largest_cost",
    "largest_estimates",
    "largest_margin_gap",
    "linear_cost",
    "margin_condition",
    "margin_mean",
    "margin_value",
    "omega",
    "omega_sum_bound",
    "penalty_bound",
    "second_moments",
    "shannon_stability_bound",
    "shannon_stability_value",
    "stability_bound",
    "stability_bound_of_paper",
    "stability_cost",
    "stability_factor",
    "stability_share",
    "stability_step",
    "stability_value",
    "step_cost",
    "tsallis_entropy",
]
