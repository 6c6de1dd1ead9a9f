"""Costs of production: decisions from plans, rewards in batches, files, and memory.

    python benchmarks/production.py [--repeats 9]

S, K, d = 100, 20, 20 with the tuning "matched"; least of the repeats. research/production.md has the figures.
"""

import argparse
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import bothworlds as bw
from rounds import make_problem

CONTEXTS, SIZE = 100, "100,20,20"


def least(call: Callable[..., Any], prepare: Callable[[], tuple[Any, ...]], repeats: int) -> float:
    """Return the least microseconds of a call, each on new arguments."""
    times = []
    for _ in range(repeats):
        arguments = prepare()
        start = time.perf_counter()
        call(*arguments)
        times.append((time.perf_counter() - start) * 1e6)
    return min(times)


def rewards(policy: bw.Policy, count: int, repeats: int) -> tuple[float, float, float]:
    """Return microseconds a reward in a batch: `update`, `learn`, and of both the plan alone."""
    rng = np.random.default_rng(1)

    def batch() -> tuple[Any, ...]:
        return policy.act(rng.integers(CONTEXTS, size=count).tolist()), rng.uniform(-1.0, 1.0, size=count).tolist()

    update = least(lambda decisions, losses: policy.update(decisions, loss=losses), batch, repeats)
    learn = least(lambda decisions, losses: policy.learn(decisions, loss=losses), batch, repeats)
    return update / count, learn / count, least(policy._learner_state.refresh, tuple, repeats) / count


def acts(call: Callable[[], Any], repeats: int, count: int = 2000) -> float:
    """Return microseconds per call."""

    def many() -> None:
        for _ in range(count):
            call()

    return least(many, tuple, repeats) / count


def memory_per_open_decision(policy: bw.Policy, count: int = 20_000) -> tuple[float, float]:
    """Return bytes of a decision that stays open among answered ones: in the policy, and the decision itself."""
    policy.expire(before=policy.rounds + 1)
    tracemalloc.start()
    before = tracemalloc.take_snapshot()
    for _ in range(count):
        policy.act(0)
        policy._bookkeeping.rounds.close(policy._bookkeeping.rounds.add())
    inside = sum(line.size_diff for line in tracemalloc.take_snapshot().compare_to(before, "filename"))
    held = [policy.act(0) for _ in range(count)]
    both = sum(line.size_diff for line in tracemalloc.take_snapshot().compare_to(before, "filename"))
    tracemalloc.stop()
    return inside / count, (both - inside) / len(held)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    policy = bw.LCTsallisINF(tuning="matched").start(make_problem(SIZE), rng=7)
    print("rewards a batch: microseconds a reward with update, with learn, and the plan's share of both")
    for count in (1, 10, 100, 1000):
        print(f"{count:>6} " + "".join(f"{figure:>9.2f}" for figure in rewards(policy, count, repeats)))
    plan = policy.plan()
    print(f"policy.act {acts(lambda: policy.act(1), repeats):.2f}, plan.act {acts(lambda: plan.act(1), repeats):.2f},")
    print(f"plan.act with an id {acts(lambda: plan.act(1, id='visit 9'), repeats):.2f} microseconds")

    def another() -> tuple[()]:
        policy.update(policy.act(1), loss=0.5)
        return ()

    print(f"policy.plan() {least(policy.plan, another, repeats):.0f} microseconds")
    with TemporaryDirectory() as name:
        whole, small = Path(name) / "whole.npz", Path(name) / "small.npz"
        plan.save(whole)
        write = least(lambda: policy.plan().save(small, frame=False), another, repeats)
        server = bw.load_plan(whole)
        read = least(lambda: server.renewed(small), tuple, repeats)
        print(f"files: {whole.stat().st_size:,} bytes with the frame, {small.stat().st_size:,} without;")
        print(f"without: written in {write / 1e3:.1f} ms, read and planned in {read / 1e3:.1f} ms")
    inside, held = memory_per_open_decision(policy)
    print(f"an open decision: {inside:.0f} bytes in the policy, {held:.0f} bytes the decision itself")


if __name__ == "__main__":
    main()
