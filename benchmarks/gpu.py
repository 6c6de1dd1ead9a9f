"""Rounds per second on a GPU, every algorithm and several sizes, beside JAX where it is installed.

    python benchmarks/gpu.py [--replications 65536] [--rounds 1000] [--sizes 10,5,5 50,10,10] [--only paper,certified]

A table of millions of rounds a second, compilation apart; then how far the first replications are from the CPU's. Needs
a GPU and numba-cuda; JAX runs the plain schedule of LC-Tsallis-INF with vmap and scan, if it is there.
"""

import argparse
import importlib.util
import time
from typing import Any

import numpy as np

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.simulation.gpu import GpuReplications, is_available
from bothworlds.simulation.setting import make_setting

CHECKED = 16


def algorithms(rounds: int) -> dict[str, Any]:
    return {
        "paper": bw.LCTsallisINF(tuning="paper"),
        "certified": bw.LCTsallisINF(tuning="certified"),
        "matched": bw.LCTsallisINF(tuning="matched"),
        "RealFTRL": bw.RealFTRL(),
        "RealLinExp3": bw.RealLinExp3(horizon=rounds, features="arm-dependent"),
        "OFUL": bw.OFUL(),
        "LinUCB": bw.LinUCB(),
        "LinTS, 1 draw": bw.LinTS(draws=1),
        "per context": bw.PerContextTsallisINF(),
    }


def measure(world: en.Environment, algorithm: Any, replications: int, rounds: int) -> str:
    """Play once, and compare the first replications with the CPU."""
    setting = make_setting(world, horizon=rounds, rng=0, checkpoints=20)
    began = time.perf_counter()
    some = GpuReplications(algorithm.machine(world.problem), setting, range(replications))
    some.advance(10)
    compiled = time.perf_counter() - began
    began = time.perf_counter()
    some.advance(rounds)
    speed = replications * (rounds - 10) / (time.perf_counter() - began) / 1e6
    here = np.array([outcome.expected for outcome in some.outcomes()[:CHECKED]])
    there = bw.simulate(world, {"": algorithm}, horizon=rounds, replications=CHECKED, checkpoints=20)[""].expected
    apart = np.abs(here - there).max(axis=0)
    far = setting.checkpoints[apart > 1e-6]
    since = f"apart by 1e-6 from round {far[0]} on" if len(far) else f"within {apart.max():.1e} of the CPU"
    return f"{speed:>8.{1 if speed < 100.0 else 0}f} million rounds/s, compiled in {compiled:.0f} s, {since}"


def jax_speed(world: en.Environment, replications: int, rounds: int) -> float:
    """Play LC-Tsallis-INF with a plain schedule in JAX; return millions of rounds a second."""
    import jax  # type: ignore[import-not-found]
    import jax.numpy as jnp  # type: ignore[import-not-found]

    jax.config.update("jax_enable_x64", True)
    machine = bw.LCTsallisINF(tuning="paper").machine(world.problem)
    z, g, e = (jnp.asarray(part) for part in (machine.known.z, machine.known.g, machine.known.e))
    table = jnp.asarray(world.tables[0])
    S, K, d = z.shape
    rates = machine.options.rates
    gain, cap, scale = rates.gain, rates.cap, rates.power_scale

    def point(losses: Any) -> Any:
        s = losses - losses.min(axis=1, keepdims=True)
        y = jnp.ones((S, 1))
        for _ in range(4):
            r = 1.0 / (s + y)
            total, slope = (r**2).sum(axis=1, keepdims=True), (r**3).sum(axis=1, keepdims=True)
            y = jnp.clip(y + total * (total - 1.0) / (jnp.sqrt(total) + 1.0) / slope, 1.0, K**0.5)
        w = (s + y) ** -2
        return w / w.sum(axis=1, keepdims=True)

    def step(carry: Any, t: Any) -> Any:
        theta, key, lost = carry
        key, *keys = jax.random.split(key, 4)
        eta = jnp.minimum(gain / jnp.sqrt(t), cap)
        gamma = jnp.minimum(0.5, scale * eta * eta)
        pi = (1.0 - gamma) * point(eta * (z @ theta)) + gamma * e
        sigma = jnp.einsum("x,xa,xai,xaj->ij", g, pi, z, z)
        x = jax.random.categorical(keys[0], jnp.log(g))
        a = jax.random.categorical(keys[1], jnp.log(pi[x]))
        loss = jnp.where(jax.random.uniform(keys[2]) < 0.5 * (1.0 + table[x, a]), 1.0, -1.0)
        theta = theta + loss * jnp.linalg.solve(sigma, z[x, a])
        return (theta, key, lost + (g[:, None] * pi * table).sum()), None

    def one(key: Any) -> Any:
        start = (jnp.zeros(d), key, 0.0)
        return jax.lax.scan(step, start, jnp.arange(1.0, rounds + 1.0))[0][2]

    run = jax.jit(jax.vmap(one))
    keys = jax.random.split(jax.random.PRNGKey(0), replications)
    run(keys).block_until_ready()
    began = time.perf_counter()
    run(keys).block_until_ready()
    return replications * rounds / (time.perf_counter() - began) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replications", type=int, default=65_536)
    parser.add_argument("--rounds", type=int, default=1_000)
    parser.add_argument("--sizes", nargs="+", default=["10,5,5"])
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if not is_available():
        raise SystemExit("there is no GPU here")
    for size in options.sizes:
        S, K, d = (int(part) for part in size.split(","))
        world = en.stochastic(en.random_instance(contexts=S, arms=K, dimension=d, gap=0.2, seed=1))
        print(
            f"S = {S}, K = {K}, d = {d}, {options.replications:,} replications, {options.rounds:,} rounds", flush=True
        )
        for name, algorithm in algorithms(options.rounds).items():
            if not options.only or name in options.only.split(","):
                print(f"  {name:>14}: {measure(world, algorithm, options.replications, options.rounds)}", flush=True)
        if importlib.util.find_spec("jax") and (not options.only or "jax" in options.only.split(",")):
            speed = jax_speed(world, options.replications, min(200, options.rounds))
            print(f"  {'JAX, plain':>14}: {speed:>8.{1 if speed < 100.0 else 0}f} million rounds/s", flush=True)


if __name__ == "__main__":
    main()
