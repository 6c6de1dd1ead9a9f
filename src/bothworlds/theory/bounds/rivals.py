"""Bounds of the other algorithms in Table 1: rates with constant 1, except for one with constants that we derive.

d' is the dimension of the arm-independent features: d K after the transformation of Theorem 4.5, as in Table 1, or
the given dimension where the problem was made from arm-independent features.
"""

import math
from collections.abc import Callable

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.theory.bounds.bound import Bound, Formula
from bothworlds.theory.bounds.facts import Facts

LAMBDA_MIN = "lambda_min > 0 of the arm-independent features: never if S < d K (Theorem 4.5)"


def rival_bounds(facts: Facts) -> list[Bound]:
    """Return the rows of Table 1 other than the paper's own algorithm, and RealLinExp3 for arm-dependent features."""
    return [
        *_shannon_transformed(facts),
        *_reduction(facts),
        *_continuous_weights(facts),
        *_linear_adversarial(facts),
        *_oful(facts),
        *_real_lin_exp3(facts),
    ]


def _sizes(facts: Facts) -> tuple[float, float, float, float]:
    """Return d, K, d' of P.Indep and 1/lambda_min, infinite where the transformation is degenerate."""
    other = facts.transformed
    inverse = math.inf if other.degenerate else 1.0 / other.smallest_eigenvalue
    return float(facts.problem.dimension), float(facts.problem.n_arms), float(other.independent), inverse


def _log(T: Floats) -> Floats:
    """Return log T, at least 1."""
    return np.asarray(np.maximum(np.log(T), 1.0))


def _pair(
    facts: Facts,
    name: str,
    source: str,
    stochastic: Callable[[Floats], Floats],
    adversarial: Formula,
    formulas: tuple[str, str],
    *assumptions: str,
) -> list[Bound]:
    """Return the two columns of a row: adversarial always, stochastic where every context has a gap."""
    rows = [facts.bound(name, source, adversarial, f"O({formulas[1]})", *assumptions, constants_known=False)]
    gap, C = facts.gap, facts.corruption
    if gap is not None and math.isinf(facts.margin):

        def with_corruption(T: Floats) -> Floats:
            main = stochastic(T) / gap
            return np.asarray(main + np.sqrt(C * main)) if C > 0.0 else np.asarray(main)

        statement = f"O(A + sqrt(C A)), A = {formulas[0]}/Delta_*"
        rows.append(
            facts.bound(
                name, source, with_corruption, statement, *assumptions, regime=facts.regime, constants_known=False
            )
        )
    return rows


def _shannon_transformed(facts: Facts) -> list[Bound]:
    _, K, other, inverse = _sizes(facts)
    return _pair(
        facts,
        "FTRL with Shannon entropy, transformed",
        "Table 1 (Kuroki et al., Kato & Ito 2023)",
        lambda T: K * (other + _log(T) * inverse) * np.log(K * T) * _log(T),
        lambda T: np.sqrt(_log(T) * math.log(K) * T * K * (other + _log(T) * inverse)),
        ("K (d' + log(T)/lambda_min) log(KT) log T", "sqrt(log T log K T K (d' + log(T)/lambda_min))"),
        LAMBDA_MIN,
    )


def _reduction(facts: Facts) -> list[Bound]:
    _, K, other, inverse = _sizes(facts)
    return _pair(
        facts,
        "BoBW reduction of RealLinExp3",
        "Table 1 (Kuroki et al., Proposition 8)",
        lambda T: K**2 * (other + inverse) ** 2 * math.log(K) * _log(T),
        lambda T: np.sqrt(T * K**2 * (other + inverse) ** 2 * math.log(K)),
        ("K^2 (d' + 1/lambda_min)^2 log K log T", "sqrt(T K^2 (d' + 1/lambda_min)^2 log K)"),
        LAMBDA_MIN,
        "O(log T) follows only if one arm is best in every context: its candidate is an arm, not a policy",
    )


def _continuous_weights(facts: Facts) -> list[Bound]:
    _, K, other, _ = _sizes(facts)
    return _pair(
        facts,
        "MWU-LC",
        "Table 1 (Kuroki et al., Theorem 1)",
        lambda T: (other * K) ** 2 * np.log(other * K * T) ** 2 * _log(T) ** 3,
        lambda T: other * K * np.sqrt(T) * _log(T),
        ("d'^2 K^2 log^2(d' K T) log^3 T", "d' K sqrt(Lambda*) log T with Lambda* <= T"),
        "a log-concave context distribution: finite support is not covered",
    )


def _linear_adversarial(facts: Facts) -> list[Bound]:
    d = float(facts.problem.dimension)
    source = "Table 1 (Liu, Wei & Zimmert 2023)"
    return [
        facts.bound(
            "Logdet-FTRL",
            source,
            lambda T: d**2 * np.sqrt(T) * _log(T),
            "O(d^2 sqrt(T) log T)",
            "context distribution unknown",
            constants_known=False,
        ),
        facts.bound(
            "Linear EXP4",
            source,
            lambda T: d * np.sqrt(T * _log(T)),
            "O(d sqrt(T log T))",
            "context distribution unknown; T^d computations a round",
            constants_known=False,
        ),
    ]


def _oful(facts: Facts) -> list[Bound]:
    d, gap = float(facts.problem.dimension), facts.gap
    if gap is None or math.isfinite(facts.margin) or facts.corruption > 0.0:
        return []
    return [
        facts.bound(
            "OFUL",
            "Table 1 (Abbasi-Yadkori et al. 2011)",
            lambda T: d * _log(T) / gap,
            "O(d log(T)/Delta_*) with probability 1 - 1/T, as Table 1 has it",
            "theta_t = theta_0; the source's own gap-dependent bound for linear losses is of order log^2 T",
            regime="stochastic",
            constants_known=False,
        )
    ]


def _real_lin_exp3(facts: Facts) -> list[Bound]:
    d, K, other, inverse = _sizes(facts)
    lam = facts.coverage
    return [
        facts.bound(
            "RealLinExp3, transformed",
            "Table 1 (Neu & Olkhovskaya 2020)",
            lambda T: np.sqrt(T * K * np.maximum(other, _log(T) * inverse) * math.log(K)),
            "O(sqrt(T K max{d', log(T)/lambda_min} log K))",
            LAMBDA_MIN,
            constants_known=False,
        ),
        facts.bound(
            "RealLinExp3, arm-dependent features",
            "ours",
            lambda T: 2.0 * np.sqrt(T * (d + 2.0 / lam) * math.log(K)),
            "2 sqrt(T (d + 2/lambda) log K): exponential weights with eta = sqrt(log K/(T (d + 2/lambda))), gamma = "
            "eta/lambda; stability (e-2) eta d T, penalty log(K)/eta, exploration 2 gamma T",
            "any losses in [-1, 1]; the algorithm knows T, and the curve retunes it at every T",
        ),
    ]
