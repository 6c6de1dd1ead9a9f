"""Bounds of the algorithms of the paper, one per tuning and regime, constants known."""

import math
from functools import partial

from bothworlds.theory.bounds import matched, shannon, tsallis
from bothworlds.theory.bounds.bound import Bound
from bothworlds.theory.bounds.facts import Facts
from bothworlds.theory.bounds.matched import MatchedRates
from bothworlds.theory.bounds.tsallis import TsallisRates
from bothworlds.theory.schedules import MATCHED_CONSTANT, Schedule, certified_constant, schedule, stability_constant

FEEDBACK = "feedback after every decision, alpha = 1/2"
GAPS = {
    "stochastic": "theta_t = theta_0, every gap at least Delta_*",
    "corrupted": "gaps at least Delta_* but for a total corruption C (Definition 2.6)",
    "margin": "theta_t = theta_0, P(Delta(X) <= h) <= (h/Delta_*)^beta/2 up to Delta_* (Definition 2.5)",
    "margin, corrupted": "margin condition (Definition 2.5) but for a total corruption C; our combination of the two",
}


def tsallis_rates(facts: Facts, tuning: str) -> TsallisRates:
    """Return the schedule of a tuning: "paper", "certified", or "paper, any support"."""
    problem = facts.problem
    c = certified_constant(0.5) if tuning == "certified" else stability_constant(0.5)
    rates = _schedule(
        facts,
        c,
        rarity=None if tuning == "paper, any support" else problem.rarity,
        use_linear=tuning != "paper",
    )
    return TsallisRates(schedule=rates, n_arms=problem.n_arms, dimension=problem.dimension, rarity=problem.rarity, c=c)


def matched_rates(facts: Facts) -> MatchedRates:
    """Return what the theorem about the matched tuning needs."""
    problem, c = facts.problem, MATCHED_CONSTANT
    rates = _schedule(facts, c, rarity=problem.rarity, use_linear=True)
    return MatchedRates(schedule=rates, n_arms=problem.n_arms, dimension=problem.dimension, rarity=problem.rarity, c=c)


def _schedule(facts: Facts, constant: float, *, rarity: float | None, use_linear: bool) -> Schedule:
    """Return the schedule of a constant c of Lemma B.1, alpha = 1/2."""
    return schedule(
        alpha=0.5,
        n_arms=facts.problem.n_arms,
        dimension=facts.problem.dimension,
        coverage=facts.coverage,
        rarity=rarity,
        constant=constant,
        use_linear=use_linear,
    )


def tsallis_bounds(facts: Facts) -> list[Bound]:
    """Theorems 4.2-4.4 for the tunings they hold for."""
    found = []
    for tuning in ("paper", "certified", "paper, any support"):
        rates = tsallis_rates(facts, tuning)
        name = f"LC-Tsallis-INF, {tuning}"
        t0 = f"t0 = {rates.t0:.4g}"
        found.append(
            facts.bound(
                name,
                "Theorem 4.2",
                partial(tsallis.adversarial, rates),
                f"R_T <= sqrt(1 - 1/K) sum_t beta(t) + kappa_T = O(sqrt(d sqrt(K) T) + kappa); {t0}",
                FEEDBACK,
                "any losses in [-1, 1], theta_t chosen before X_t",
            )
        )
        if facts.gap is None or tuning == "paper, any support":
            continue  # without finite support kappa itself is of order sqrt T: Theorem 4.2 is all there is
        finite = math.isfinite(facts.margin)
        margin_rate = "((1+beta)/(beta Delta_*))^(beta/(2+beta)) (L d sqrt K)^((1+beta)/(2+beta)) T^(1/(2+beta))"
        rate = margin_rate if finite else "A + sqrt(C A), A = (L d sqrt(K)/Delta_*) log T,"
        found.append(
            facts.bound(
                name,
                "Theorem 4.3" if finite else "Theorem 4.4",
                partial(tsallis.self_bounding, rates, gap=facts.gap, margin=facts.margin, corruption=facts.corruption),
                "R_T <= min over nu of [sum_t max_y (beta(t) sqrt y - nu (Delta_*/2) M(y/L)) + kappa_T + nu C]/(1 - nu)"
                f" = O({rate} and kappa); {t0}",
                FEEDBACK,
                GAPS[facts.regime],
                regime=facts.regime,
            )
        )
    return found


def matched_bounds(facts: Facts) -> list[Bound]:
    """Our theorem for the matched tuning."""
    rates = matched_rates(facts)
    name, note = "LC-Tsallis-INF, matched", "ours"
    found = [
        facts.bound(
            name,
            note,
            partial(matched.adversarial, rates),
            "R_T = O(sqrt(d sqrt(K) T) + (K L T/lambda)^(1/3) + sqrt(K L/lambda))",
            FEEDBACK,
            "any losses in [-1, 1], theta_t chosen before X_t",
        )
    ]
    if facts.gap is not None:
        finite = math.isfinite(facts.margin)
        form = (
            "(d sqrt(K L) log T)^((1+beta)/(2+beta)) Delta_*^(-beta/(2+beta)) T^(1/(2+beta)) without corruption; "
            "exploration adds lower powers of T"
            if finite
            else "D + sqrt(C D) + E + (C E^2)^(1/3), D = d sqrt(K L) log(T)/Delta_*, "
            "E = sqrt(K L/(lambda Delta_*)) log T"
        )
        found.append(
            facts.bound(
                name,
                note,
                partial(matched.self_bounding, rates, gap=facts.gap, margin=facts.margin, corruption=facts.corruption),
                f"R_T = O({form})",
                FEEDBACK,
                GAPS[facts.regime],
                regime=facts.regime,
            )
        )
    return found


def shannon_bounds(facts: Facts) -> list[Bound]:
    """Theorems D.2-D.4 for RealFTRL(horizon=T)."""
    problem = facts.problem
    rates = shannon.ShannonRates(
        n_arms=problem.n_arms, dimension=problem.dimension, coverage=facts.coverage, tuned_to=float(facts.horizon)
    )
    name = "BoBW-RealFTRL"
    need = ("feedback after every decision, RealFTRL(horizon=T) with its cap eta_t <= lambda/2",)
    found = [
        facts.bound(
            name,
            "Theorem D.2",
            partial(shannon.adversarial, rates),
            f"R_T = O(sqrt((1/lambda + d) T log T log K) + log(K)/lambda); t0 at most {rates.t0:.4g}",
            *need,
            "any losses in [-1, 1], theta_t chosen before X_t",
        )
    ]
    if facts.gap is not None:
        finite = math.isfinite(facts.margin)
        form = (
            "D^((1+beta)/(2+beta)) Delta_*^(-beta/(2+beta)) T^(1/(2+beta))"
            if finite
            else "D/Delta_* + sqrt(C D/Delta_*)"
        )
        found.append(
            facts.bound(
                name,
                "Theorem D.3" if finite else "Theorem D.4",
                partial(shannon.self_bounding, rates, gap=facts.gap, margin=facts.margin, corruption=facts.corruption),
                f"R_T = O({form}), D = (1/lambda + d) log(T) log(KT); t0 at most {rates.t0:.4g}",
                *need,
                GAPS[facts.regime],
                regime=facts.regime,
            )
        )
    return found
