"""The black-box reductions against their bases: regret with the theorems' constants, and with smaller ones.

Run ``python benchmarks/reductions.py``: two stochastic worlds, with and without an arm that is best in every context,
and an adversary that sees the policy; mean regret over replications at T, and its growth exponent between T/2 and T.
``python benchmarks/reductions.py unseen`` does the same for algorithms that do not know the context distribution, and
``python benchmarks/reductions.py shares`` prints the share that the bonus alone leaves to a candidate.
"""

import math
import sys
import warnings
from typing import Any, Literal

import numpy as np

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.shared.corral_master import master_point
from bothworlds.kernels.jit.compile import compiled

HORIZON = 20_000
REPLICATIONS = 8
SCALES = (1.0, 0.1, 0.01, 0.0)
CONSTANTS = {
    "printed, K = 5, d = 4, lambda_min = 0.05": (math.log(5) * (400 + 60 + 1) ** 2, 200 * math.log(5)),
    "tuned, the same sizes": (9 * (20 + 200) * math.log(5), 200 * math.log(5)),
    "literal, best arms differ": (181.0, 15.8),
    "policies, linear, best arms differ": (963.0, 85.8),
    "policies, importance-weighted, best arms differ": (340.0, 0.0),
}


def same_best_arm() -> en.Instance:
    """One feature vector per context; arm 2 is the best everywhere, by 0.2 at least."""
    rng = np.random.default_rng(0)
    vectors = np.concatenate([np.ones((5, 1)), rng.uniform(-0.2, 0.2, size=(5, 1))], axis=1)
    problem = bw.Problem.from_arm_independent(vectors, probabilities=np.full(5, 0.2), arms=4)
    theta = np.array([0.2, 0.1, 0.1, 0.0, -0.2, 0.0, 0.3, -0.1])
    return en.Instance(problem, theta)


def reductions() -> dict[str, Any]:
    """Return the reductions to arms and maps, with either base, and to policies; each with its constants scaled."""
    candidates: tuple[Literal["literal", "per-context"], ...] = ("literal", "per-context")
    estimates: tuple[Literal["linear", "importance-weighted"], ...] = ("linear", "importance-weighted")
    found: dict[str, Any] = {}
    for candidate in candidates:
        for scale in SCALES:
            found[f"{candidate}, scale {scale:g}"] = bw.BoBWRealLinExp3(
                horizon=HORIZON, candidate=candidate, scale=scale
            )
    found["literal, arm-independent, tuned"] = bw.BoBWRealLinExp3(horizon=HORIZON, features="arm-independent")
    found["literal, arm-independent, printed"] = bw.BoBWRealLinExp3(
        horizon=HORIZON, features="arm-independent", constants="printed"
    )
    for kind in estimates:
        for scale in SCALES:
            found[f"policies, {kind}, scale {scale:g}"] = bw.BoBWLinearEXP4(
                horizon=HORIZON, estimates=kind, scale=scale
            )
    return found


def unseen() -> dict[str, Any]:
    """Return the algorithms with empirical contexts, with scaled constants, and those that know the distribution."""
    found: dict[str, Any] = {"LinearEXP4": bw.LinearEXP4(horizon=HORIZON), "LogdetFTRL": bw.LogdetFTRL(horizon=HORIZON)}
    for scale in (1.0, 0.1, 0.01, 0.001, 0.0):
        found[f"LinearEXP4, empirical, scale {scale:g}"] = bw.LinearEXP4(
            horizon=HORIZON, contexts="empirical", scale=scale
        )
        found[f"LogdetFTRL, empirical, scale {scale:g}"] = bw.LogdetFTRL(
            horizon=HORIZON, contexts="empirical", scale=scale
        )
    return found


def main() -> None:
    """Print the tables."""
    if "shares" in sys.argv[1:]:
        print_shares()
        return
    other = en.random_instance(contexts=5, arms=4, dimension=4, gap=0.2, seed=7)
    worlds = {
        "same best arm": en.stochastic(same_best_arm()),
        "best arms differ": en.stochastic(other),
        "adversary": en.adaptive_adversary(other.problem, en.opposite(other.theta)),
    }
    without = "unseen" in sys.argv[1:]
    algorithms: dict[str, Any] = {
        "uniform": bw.FixedPolicy(),
        "base: RealLinExp3": bw.RealLinExp3(horizon=HORIZON, features="arm-dependent", design="uniform"),
        **(unseen() if without else reductions()),
        "LC-Tsallis-INF, certified": bw.LCTsallisINF(tuning="certified"),
    }
    for name, world in worlds.items():
        print(name)
        for label, algorithm in algorithms.items():
            print(f"  {label:40s} {constants(algorithm, world.problem):44s}", end="", flush=True)
            print(regret(world, algorithm))


def left_to_candidate(c1: float, c2: float, out: Any) -> None:
    """Write the share q_1 of a candidate that does as well as the base, at t = 100, 1,000 and so on."""
    total = 0.0
    worst = 0.0
    position = 0
    for t in range(1, 10 ** (out.shape[0] + 1) + 1):
        one, two = master_point(float(t), -(math.sqrt(c1 * total) + c2 * worst), c1, c2)
        total += 1.0 / two
        worst = max(worst, 1.0 / two)
        if t == 10 ** (position + 2):
            out[position] = one
            position += 1


def print_shares() -> None:
    """Print what the bonus leaves, and from when on a candidate that is better by 0.2 outweighs it."""
    run = compiled(left_to_candidate)
    for name, (c1, c2) in CONSTANTS.items():
        out = np.zeros(5)
        run(c1, c2, out)
        print(f"{name:50s} c1 {c1:8,.0f} c2 {c2:5.1f} {out.round(3)}  c1/0.2^2 {c1 / 0.04:,.0f}")


def constants(algorithm: Any, problem: bw.Problem) -> str:
    """Describe what a reduction computes for its first candidate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        facts = getattr(algorithm.start(problem, rng=1).state, "facts", None)
    if facts is None:
        return ""
    dimension, inverse, log_size, c1, c2 = facts
    return f"D {dimension:.0f}, 1/lambda {inverse:.1f}, N {np.exp(log_size):.0f}, c1 {c1:.0f}, c2 {c2:.1f}"


def regret(world: en.Environment, algorithm: Any) -> str:
    """Return the regret of a run and how it grew in its second half."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = bw.simulate(
            world, {"a": algorithm}, horizon=HORIZON, replications=REPLICATIONS, checkpoints=[HORIZON // 2]
        )["a"]
    half, whole = run.regret[-2:]
    return f"regret {whole:8.1f}   growth {np.log2(max(whole, 1) / max(half, 1)):.2f}"


if __name__ == "__main__":
    main()
