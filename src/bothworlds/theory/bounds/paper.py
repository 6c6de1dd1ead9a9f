"""Bounds with known constants for LC-Tsallis-INF and BoBW-RealFTRL, one per tuning and regime."""

import math
from functools import partial
from types import ModuleType
from typing import Any

from bothworlds.theory.bounds import matched, shannon, tsallis
from bothworlds.theory.bounds.bound import Bound
from bothworlds.theory.bounds.facts import Facts
from bothworlds.theory.bounds.matched import MatchedRates
from bothworlds.theory.bounds.tsallis import TsallisRates
from bothworlds.theory.schedules import Matching, certified_constant, schedule, stability_constant

FEEDBACK = "feedback after every decision, alpha = 1/2"
GAPS = {
    "stochastic": "theta_t = theta_0, every gap at least Delta_*",
    "corrupted": "gaps at least Delta_* up to a total corruption C (Definition 2.6)",
    "margin": "theta_t = theta_0, P(Delta(X) <= h) <= (h/Delta_*)^beta/2 up to Delta_* (Definition 2.5)",
    "margin, corrupted": "margin condition (Definition 2.5) up to a total corruption C; our combination of the two",
}


def tsallis_rates(facts: Facts, tuning: str) -> TsallisRates:
    """Return the schedule of a tuning: "paper", "certified", or "paper, any support"."""
    c = certified_constant(0.5) if tuning == "certified" else stability_constant(0.5)
    rarity = None if tuning == "paper, any support" else facts.problem.rarity
    return TsallisRates(**_tsallis_inputs(facts, c, rarity=rarity, use_linear=tuning != "paper"))


def matched_rates(facts: Facts) -> MatchedRates:
    """Return the inputs of the theorem for the matched tuning."""
    problem = facts.problem
    return MatchedRates(
        n_arms=problem.n_arms,
        dimension=problem.dimension,
        rarity=problem.rarity,
        coverage=facts.coverage,
        matching=Matching(),
    )


def _tsallis_inputs(facts: Facts, c: float, *, rarity: float | None, use_linear: bool) -> dict[str, Any]:
    """Return K, d, L, the constant c of Lemma B.1 and its schedule, alpha = 1/2."""
    sizes: dict[str, Any] = {"n_arms": facts.problem.n_arms, "dimension": facts.problem.dimension}
    rules: dict[str, Any] = {"rarity": rarity, "constant": c, "use_linear": use_linear}
    rates = schedule(alpha=0.5, coverage=facts.coverage, **sizes, **rules)
    return {**sizes, "schedule": rates, "rarity": facts.problem.rarity, "c": c}


def tsallis_bounds(facts: Facts) -> list[Bound]:
    """Return the bounds of Theorems 4.2-4.4 for the tunings that they cover."""
    finite = math.isfinite(facts.margin)
    margin_rate = "((1+beta)/(beta Delta_*))^(beta/(2+beta)) (L d sqrt K)^((1+beta)/(2+beta)) T^(1/(2+beta))"
    rate = margin_rate if finite else "A + sqrt(C A), A = (L d sqrt(K)/Delta_*) log T,"
    bounds = []
    for tuning in ("paper", "certified", "paper, any support"):
        rates = tsallis_rates(facts, tuning)
        t0 = f"t0 = {rates.t0:.4g}"
        any_losses = (
            "Theorem 4.2",
            f"R_T <= sqrt(1 - 1/K) sum_t beta(t) + kappa_T = O(sqrt(d sqrt(K) T) + kappa); {t0}",
        )
        with_gap = (
            "Theorem 4.3" if finite else "Theorem 4.4",
            "R_T <= min over nu of [sum_t max_y (beta(t) sqrt y - nu (Delta_*/2) M(y/L)) + kappa_T + nu C]/(1 - nu)"
            f" = O({rate} and kappa); {t0}",
        )
        # without finite support kappa itself is of order sqrt T, so only Theorem 4.2 applies
        stated = [any_losses] if tuning == "paper, any support" else [any_losses, with_gap]
        bounds += _in_regimes(facts, f"LC-Tsallis-INF, {tuning}", tsallis, rates, stated, FEEDBACK)
    return bounds


def matched_bounds(facts: Facts) -> list[Bound]:
    """Return the bounds of our theorem for the matched tuning."""
    rates = matched_rates(facts)
    form = (
        "(d sqrt(K L) log T)^((1+beta)/(2+beta)) Delta_*^(-beta/(2+beta)) T^(1/(2+beta))) without corruption; "
        "exploration adds lower powers of T"
        if math.isfinite(facts.margin)
        else "D + sqrt(C D) + E + (C E^2)^(1/3)), D = d sqrt(K L) log(T)/Delta_*, E = sqrt(K L/(lambda Delta_*)) log T"
    )
    stated = [
        ("ours", "R_T = O(sqrt(d sqrt(K) T) + (K L T/lambda)^(1/3) + sqrt(K L/lambda) log(K L/lambda))"),
        ("ours", f"R_T = O({form}"),
    ]
    return _in_regimes(facts, "LC-Tsallis-INF, matched", matched, rates, stated, FEEDBACK)


def shannon_bounds(facts: Facts) -> list[Bound]:
    """Return the bounds of Theorems D.2-D.4 for RealFTRL(horizon=T)."""
    problem, finite = facts.problem, math.isfinite(facts.margin)
    rates = shannon.ShannonRates(
        n_arms=problem.n_arms, dimension=problem.dimension, coverage=facts.coverage, tuned_to=float(facts.horizon)
    )
    margin_form = "D^((1+beta)/(2+beta)) Delta_*^(-beta/(2+beta)) T^(1/(2+beta))"
    form = margin_form if finite else "D/Delta_* + sqrt(C D/Delta_*)"
    t0 = f"t0 at most {rates.t0:.4g}"
    stated = [
        ("Theorem D.2", f"R_T = O(sqrt((1/lambda + d) T log T log K) + log(K)/lambda); {t0}"),
        (f"Theorem D.{3 if finite else 4}", f"R_T = O({form}), D = (1/lambda + d) log(T) log(KT); {t0}"),
    ]
    need = "feedback after every decision, RealFTRL(horizon=T) with its cap eta_t <= lambda/2"
    return _in_regimes(facts, "BoBW-RealFTRL", shannon, rates, stated, need)


def _in_regimes(
    facts: Facts, name: str, theorem: ModuleType, rates: Any, stated: list[tuple[str, str]], need: str
) -> list[Bound]:
    """Return the bound for any losses and, if a gap is known, the bounds for its regime.

    ``stated`` has one (source, statement) for each.
    """
    (source, statement), *with_gap = stated
    any_losses = "any losses in [-1, 1], theta_t chosen before X_t"
    bounds = [facts.bound(name, source, partial(theorem.adversarial, rates), statement, need, any_losses)]
    for source, statement in with_gap if facts.gap is not None else []:
        known = {"gap": facts.gap, "margin": facts.margin, "corruption": facts.corruption}
        formula, assumption = partial(theorem.self_bounding, rates, **known), GAPS[facts.regime]
        bounds.append(facts.bound(name, source, formula, statement, need, assumption, regime=facts.regime))
    return bounds
