"""Slow, independent versions of what evaluation computes, row by row in plain Python; and small logs."""

import importlib
import math
from typing import Any

import numpy as np

import bothworlds as bw
from bothworlds.arrays import Floats
from bothworlds.evaluation import Logged, Regression
from bothworlds.evaluation.betting_grid import COMPONENTS, BetGrid
from support.problems import random_problem

try:
    ORACLES: dict[str, Any] = {name: importlib.import_module(f"estimators.bandits.{name}") for name in ("ips", "snips")}
except ModuleNotFoundError:
    ORACLES = {}


def small_log(
    seed: int = 0,
    rows: int = 400,
    S: int = 3,
    K: int = 3,
    *,
    limits: tuple[float, float] = (0.0, 1.0),
    spread: float = 1.0,
) -> Logged:
    """A log whose probabilities change from row to row, with clicks as rewards."""
    rng = np.random.default_rng(seed)
    problem = random_problem(seed, S=S, K=K, d=2, reward_range=limits)
    means = rng.uniform(0.1, 0.9, size=(S, K))
    context = rng.choice(S, p=problem.probabilities, size=rows)
    h = rng.dirichlet(np.full(K, spread), size=rows) * 0.9 + 0.1 / K
    below = np.cumsum(h / h.sum(axis=1, keepdims=True), axis=1)
    arm = (rng.random((rows, 1)) >= below / below[:, -1:]).sum(axis=1)
    clicks = (rng.random(rows) < means[context, arm]).astype(np.float64)
    reward = limits[0] + (limits[1] - limits[0]) * clicks
    return Logged.from_columns(problem, context=context, arm=arm, reward=reward, probabilities=h)


def some_table(log: Logged, seed: int = 5) -> Floats:
    return np.random.default_rng(seed).dirichlet(np.ones(log.problem.n_arms), size=log.problem.n_contexts)


def slow_ridge(log: Logged, t: int, starts: list[int]) -> Floats:
    """The predictions for row t: explicit sums over the rows before its block."""
    begin = max(start for start in starts if start <= t)
    phi = log.problem.features
    d = phi.shape[2]
    scale = sum(float(v @ v) for v in phi.reshape(-1, d)) / len(phi.reshape(-1, d)) / d
    gram, right = scale * np.eye(d), np.zeros(d)
    low, high = log.reward_range
    for i in range(begin):
        f = phi[log.context[i], log.arm[i]]
        gram += np.outer(f, f)
        right += f * ((log.reward[i] - low) / (high - low) - 0.5)
    theta = np.linalg.lstsq(gram, right, rcond=None)[0]
    return np.asarray([[min(1.0, max(0.0, 0.5 + float(f @ theta))) for f in row] for row in phi])


def slow_sum(q: Floats, h: Floats, predicted: Floats, arm: int, y: float, k: float) -> float:
    """X of one row with predictions cut as the derivation says: by the sign of q."""
    cut = []
    for a in range(len(q)):
        if q[a] > 0.0:
            cut.append(min(predicted[a], k * h[a] / q[a]))
        elif q[a] < 0.0:
            cut.append(max(predicted[a], 1.0 - k * h[a] / -q[a]))
        else:
            cut.append(predicted[a])
    return float(sum(q[a] * cut[a] for a in range(len(q))) + q[arm] / h[arm] * (y - cut[arm]))


def slow_offsets(log: Logged, contrast: Floats, width: float) -> list[int]:
    """How many steps lower each row is bet on."""
    assert log.probabilities is not None
    sizes = []
    for t in range(log.rows):
        q, h = contrast[log.context[t]], log.probabilities[t]
        spread = sum(q[a] ** 2 / h[a] for a in range(len(q)) if h[a] > 0.0)
        sizes.append(0.5 * math.log2(max(spread / width**2, 1.0)))
    found = []
    for t in range(log.rows):
        half = sizes[t // 2 : t]
        found.append(round(sum(half) / len(half)) if half else 0)
    return found


def slow_bound(log: Logged, contrast: Floats, fit: Regression, grid: BetGrid, rows: int, alpha: float) -> float:
    """The root of the mixture of capitals after some rows, each factor computed on its own; by bisection."""
    assert log.probabilities is not None
    offsets = slow_offsets(log, contrast, grid.width)
    starts = fit.starts.tolist()
    terms = []
    for t in range(rows):
        block = max(i for i, start in enumerate(starts) if start <= t)
        x, y = int(log.context[t]), float(log.scaled(slice(t, t + 1))[0])
        for j in range(COMPONENTS):
            step = j + offsets[t]
            bet, k = grid.share * 0.5**step / grid.width, grid.width * (2.0**step - 1.0)
            terms.append(
                (bet, slow_sum(contrast[x], log.probabilities[t], fit.tables[block, x], int(log.arm[t]), y, k))
            )
    bets = np.array([bet for bet, _ in terms]).reshape(rows, COMPONENTS)
    sums = np.array([x for _, x in terms]).reshape(rows, COMPONENTS)

    def out(v: float) -> bool:
        logs = np.log(1.0 + bets * (sums - v)).sum(axis=0) + grid.log_prior
        return math.fsum(math.exp(one) for one in logs) >= 2.0 / alpha

    low, high = -grid.b, grid.a
    if not out(low):
        return low
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if out(middle) else (low, middle)
    return low


def written_log(problem: bw.Problem, means: Floats, tuning: Any, rows: int, seed: int) -> Logged:
    """A log written by a policy of the library that learns as it goes."""
    rng = np.random.default_rng(seed)
    policy = bw.LCTsallisINF(tuning=tuning).start(problem, rng=seed)
    context = rng.choice(problem.n_contexts, size=rows, p=problem.probabilities)
    chance = rng.random(rows).tolist()
    h, arm, reward = np.empty((rows, problem.n_arms)), np.empty(rows, dtype=np.int64), np.empty(rows)
    for t, x in enumerate(context.tolist()):
        h[t] = policy.probabilities(x)
        decision = policy.act(x)
        arm[t], reward[t] = decision.arm, float(chance[t] < means[x, decision.arm])
        policy.update(decision, reward=reward[t])
    return Logged.from_columns(problem, context=context, arm=arm, reward=reward, probabilities=h)
