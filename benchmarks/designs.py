"""Time the exploration designs and show how close each comes to the best: python benchmarks/designs.py."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from bothworlds.theory.designs import (
    coverage,
    joint_d_optimal,
    joint_g_optimal,
    per_context_g_optimal,
    uniform,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bothworlds.arrays import Bools, Floats

MANY = ((30, 6, 48), (50, 10, 50), (100, 10, 100))  # dimensions
KINDS = ("unit", "student", "pareto", "sparse")
SHAPES = ((10, 5, 5), (100, 10, 20), (10, 100, 20), (10_000, 10, 20), (1_000, 100, 20), *MANY)
METHODS = {"uniform": uniform, "per-context G": per_context_g_optimal, "joint D": joint_d_optimal}


def instance(kind: str, S: int, K: int, d: int) -> tuple[Floats, Floats, Bools]:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((S, K, d))
    z /= np.linalg.norm(z, axis=2, keepdims=True)
    g = np.full(S, 1.0 / S)
    if kind == "student":
        z *= np.abs(rng.standard_t(2.0, (S, K, 1))) + 0.01
        g = rng.pareto(1.2, S) + 1e-3
    if kind == "pareto":
        z *= rng.pareto(1.5, (S, K, 1)) + 1.0
        g = 1.0 / np.arange(1, S + 1)
    if kind == "sparse":
        z *= rng.random((S, K, d)) < 0.1
        z[:, 0] = np.eye(d)[np.arange(S) % d]
        g = rng.dirichlet(np.ones(S))
    flat = z.reshape(-1, d)
    factor = np.linalg.cholesky(flat.T @ flat / len(flat))
    return (flat @ np.linalg.inv(factor).T).reshape(S, K, d), g / g.sum(), np.ones((S, K), dtype=bool)


def rows(z: Floats, g: Floats, offered: Bools) -> Iterator[tuple[str, float, float, float]]:
    """Yield method, seconds, value = 1/λ, and the lower bound on 1/λ of every design (found by joint G)."""
    began = time.perf_counter()
    best = joint_g_optimal(z, g, offered)
    seconds = time.perf_counter() - began
    for name, design in METHODS.items():
        began = time.perf_counter()
        e = design(z, g, offered)
        yield name, time.perf_counter() - began, 1.0 / coverage(z, g, e), best.lower_bound
    yield "joint G", seconds, best.value, best.lower_bound


def main() -> None:
    # The first call pays for the start of the linear algebra libraries.
    joint_g_optimal(*instance("unit", 10, 5, 5))
    print(f"{'features':10}{'S':>7}{'K':>5}{'d':>4}  {'method':15}{'seconds':>9}{'value':>13}{'bound':>13}{'gap':>10}")
    for kind in KINDS:
        for S, K, d in SHAPES:
            for name, seconds, value, bound in rows(*instance(kind, S, K, d)):
                head = f"{kind:10}{S:7}{K:5}{d:4}  {name:15}"
                print(f"{head}{seconds:9.3f}{value:13.3f}{bound:13.3f}{value / bound - 1.0:10.2%}", flush=True)


if __name__ == "__main__":
    main()
