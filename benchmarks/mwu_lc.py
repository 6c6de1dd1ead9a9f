"""MWU-LC: the effect of its printed constants, by arithmetic, and its regret with these and with larger rates.

    python benchmarks/mwu_lc.py [--horizon 20000] [--replications 8]

Arithmetic: d = 4, K = 3, losses of size 1. Regret: the worlds of `rivals.py` (arm-independent, instances 1 and 2) and
those of `reductions.py`, with and without an arm that is best in every context.
"""

import argparse
import math
from typing import Any

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.mwu_lc.machine import constants_of
from bothworlds.algorithms.shared.corral_master import data_master_point
from reductions import same_best_arm
from rivals import independent_instance

TIMES = (1, 100, 1_000, 10_000, 100_000, 1_000_000)
DIMENSION = 12.0  # d K
GAP = 0.3
SPEEDS = (1.0, 10.0, 100.0, 1000.0)


def mean_of_worse(node: float) -> float:
    """E[r] of the worse of two arms, 1/c - 1/(exp(c) - 1), which is about 1/c: not exponentially small."""
    return 0.5 - node / 12.0 if node < 1e-4 else 1.0 / node - 1.0 / math.expm1(min(node, 700.0))


def rates() -> None:
    """Print eta_t, the node eta_t gap t of an arm worse by the gap, and its probability beside one better arm."""
    print(
        f"d K = {DIMENSION:g}, losses +-1, gap {GAP}: t, eta_t, node, probability of the worse of two arms at {SPEEDS}"
    )
    total = 0.0
    for t in range(1, TIMES[-1] + 1):
        trunc = 4.0 * math.log(10.0 * DIMENSION * t)
        eta = 1.0 / math.sqrt(800.0 * DIMENSION * trunc**2 + total)
        if t in TIMES:
            node = eta * GAP * (t - 1)
            bold = [mean_of_worse(speed * node) for speed in SPEEDS]
            print(f"  {t:>9,} {eta:.2e} {node:8.3f}  {'  '.join(f'{p:.4f}' for p in bold)}")
        total += 16.0 * trunc**2


def shares(scale: float, horizon: int) -> None:
    """Print the share of the candidate where both options do equally well, sums replaced by their means."""
    kappa, c1, c2 = constants_of(DIMENSION, horizon)
    print(f"scale {scale:g}, T = {horizon:,}: kappa {kappa:.3g}, c1 {scale * c1:.3g}, c2 {scale * c2:.3g}, ", end="")
    c1, c2, log_horizon = scale * c1, scale * c2, math.log(horizon)
    print(f"first epoch {2 * c2 * log_horizon:.3g} rounds; q_1 at", end=" ")
    total = spread = worst = 0.0
    for t in range(1, horizon + 1):
        inverse_rate = 4.0 * math.sqrt(spread / log_horizon + c1 + c2 * c2)
        one, two = data_master_point(float(t), -math.sqrt(c1 * total) - c2 * worst, inverse_rate)
        if t in TIMES:
            print(f"{t:,}: {one:.3f}", end="  ")
        total, spread, worst = total + 1.0 / two, spread + one * two, max(worst, 1.0 / two)
    print()


def regret(world: en.Environment, algorithms: dict[str, Any], options: Any) -> None:
    """Print the mean regret of each algorithm, its standard error, and the growth exponent between T/2 and T."""
    half, horizon = options.horizon // 2, options.horizon
    run = bw.simulate(world, algorithms, horizon=horizon, replications=options.replications, checkpoints=[half])
    for label in algorithms:
        before, after = run[label].regret
        growth = math.log2(max(after, 1.0) / max(before, 1.0))
        print(f"    {label:<34} {after:>9.1f} ({run[label].standard_error[-1]:.1f})   growth {growth:.2f}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", type=int, default=20_000)
    parser.add_argument("--replications", type=int, default=8)
    options = parser.parse_args()
    rates()
    for scale in (1.0, 1e-4, 1e-8):
        shares(scale, 1_000_000)
    base: dict[str, Any] = {f"MWULC, speed {speed:g}": bw.MWULC(speed=speed) for speed in SPEEDS}
    base |= {"FTRLLC": bw.FTRLLC(horizon=options.horizon), "uniform": bw.FixedPolicy()}
    for seed in (1, 2):
        instance = independent_instance(5, 3, 2, seed)
        print(f"  instance {seed}, stochastic")
        regret(en.stochastic(instance), base, options)
        print(f"  instance {seed}, adversary")
        regret(en.adaptive_adversary(instance.problem, en.opposite(instance.theta)), base, options)
    reduced: dict[str, Any] = {"base: MWULC, speed 100": bw.MWULC(speed=100.0), "uniform": bw.FixedPolicy()}
    for scale, speed in ((1.0, 1.0), (1.0, 100.0), (1e-4, 100.0), (1e-8, 100.0)):
        reduced[f"BoBWMWULC, scale {scale:g}, speed {speed:g}"] = bw.BoBWMWULC(
            horizon=options.horizon, scale=scale, speed=speed
        )
    for name, instance in {"same best arm": same_best_arm(), "best arms differ": independent_instance(5, 3, 2)}.items():
        print(f"  {name}, stochastic")
        regret(en.stochastic(instance), reduced, options)


if __name__ == "__main__":
    main()
