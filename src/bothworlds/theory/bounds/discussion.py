"""Bounds of the baselines in the Discussion (Section 4.4), and the lower bound that motivates the margin condition."""

import math

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.theory.bounds.bound import Bound
from bothworlds.theory.bounds.facts import Facts


def discussion_bounds(facts: Facts) -> list[Bound]:
    """Return the bounds for per-context Tsallis-INF and the tabular MDP, and the lower bound."""
    return [*_per_context(facts), *_tabular(facts), *_lower_bounds(facts)]


def _per_context(facts: Facts) -> list[Bound]:
    """Bound S copies of Tsallis-INF, each with its own rounds: 4 sqrt(K n) + 1 after n rounds, for losses in [0, 1]."""
    g, S, K, gap = facts.problem.probabilities, facts.problem.n_contexts, facts.problem.n_arms, facts.gap
    roots = float(np.sqrt(g).sum())
    name, source = "Tsallis-INF in every context", "Section 4.4"
    rows = [
        facts.bound(
            name,
            source,
            lambda T: 8.0 * math.sqrt(K) * roots * np.sqrt(T) + 2.0 * S,
            "sum_x E[2 (4 sqrt(K T_x) + 1)] <= 8 sqrt(K T) sum_x sqrt(g(x)) + 2 S, at most 8 sqrt(S K T) + 2 S",
            "losses rescaled to [0, 1], which doubles the regret; nothing is shared between contexts",
        )
    ]
    if gap is not None and math.isinf(facts.margin):

        def logarithmic(T: Floats) -> Floats:
            rounds = np.maximum(T[:, None] * g[None, :], math.e)
            main = K * np.log(rounds).sum(axis=1) / gap
            return np.asarray(main + np.sqrt(facts.corruption * main))

        rows.append(
            facts.bound(
                name,
                source,
                logarithmic,
                "O(sum_x K log(T g(x))/Delta_*), at most A = S K log(T/S)/Delta_*; with corruption, A + sqrt(C A)",
                "every gap at least Delta_*",
                regime=facts.regime,
                constants_known=False,
            )
        )
    return rows


def _tabular(facts: Facts) -> list[Bound]:
    """Treat contexts as the S states of a one-step MDP; the paper's formulas omit the number of states."""
    S, K, gap = facts.problem.n_contexts, facts.problem.n_arms, facts.gap
    name, source = "tabular MDP", "Section 4.4, corrected"
    note = "printed without S (sqrt(K I T), I = 1 step), which S separate K-armed bandits contradict"
    rows = [
        facts.bound(name, source, lambda T: np.sqrt(S * K * T), "O(sqrt(S K I T)), I = 1", note, constants_known=False)
    ]
    if gap is not None and math.isinf(facts.margin) and facts.corruption == 0.0:
        rows.append(
            facts.bound(
                name,
                source,
                lambda T: S * K * np.maximum(np.log(T), 1.0) / gap,
                "O(S K I log(T)/Delta_*), I = 1",
                note,
                regime="stochastic",
                constants_known=False,
            )
        )
    return rows


def _lower_bounds(facts: Facts) -> list[Bound]:
    """Li, Yang & Narisetty (2021): (log d)^((1+beta)/2) T^((1-beta)/2) + log T for beta in [0, 1]."""
    if facts.gap is None or facts.corruption > 0.0:
        return []
    beta, log_d = min(facts.margin, 1.0), math.log(max(facts.problem.dimension, 2))
    return [
        facts.bound(
            "every algorithm",
            "Li et al. 2021, Theorem 1",
            lambda T: log_d ** (0.5 * (1.0 + beta)) * T ** (0.5 * (1.0 - beta)) + np.log(T),
            "Omega((log d)^((1+beta)/2) T^((1-beta)/2) + log T), beta at most 1 here",
            "minimax over problems with a margin condition, sparse parameters and random features: a reference for "
            "the growth in T, no statement on this problem",
            regime=facts.regime,
            constants_known=False,
            lower=True,
        )
    ]
