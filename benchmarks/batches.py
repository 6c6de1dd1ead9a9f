"""The cost of the certificate with feedback in batches: the table in research/theory.md, under "Batches".

Run ``python benchmarks/batches.py``: mean regret in two stochastic worlds, and how often the condition of the proof is
violated without ``batch=b``.
"""

import numpy as np

import bothworlds as bw
from bothworlds import environments as en

WORLDS = (
    {"contexts": 2, "arms": 3, "dimension": 3, "gap": 0.8, "seed": 3},
    {"contexts": 10, "arms": 5, "dimension": 5, "gap": 0.2, "seed": 1},
)
CONSTANT = 0.25  # the c of Certified()


def players(batch: int) -> dict[str, object]:
    return {
        "batch=1": bw.LCTsallisINF(tuning="certified"),
        "batch=b": bw.LCTsallisINF(tuning=bw.Certified(batch=batch)),
        "c/b alone": bw.LCTsallisINF(tuning=bw.Certified(c=CONSTANT / batch)),
        "uniform": bw.FixedPolicy(),
    }


def regrets(world: en.Environment, horizon: int, batch: int) -> str:
    replications = 8 if horizon < 10**6 else 4
    algorithms = players(batch)
    results = bw.simulate(
        world, algorithms, horizon=horizon, replications=replications, rng=21, batch=batch, checkpoints=[horizon]
    )
    return "  ".join(f"{name} {results[name].regret[-1]:,.0f}" for name in algorithms)


def violations(instance: en.Instance, batch: int, rounds: int) -> str:
    """Play `Certified()` in batches: how often eta |sum of the estimates| sqrt q exceeds 1/2, and how far."""
    problem, rng = instance.problem, np.random.default_rng(0)
    policy = bw.LCTsallisINF(tuning="certified").start(problem, rng=1)
    steps = []
    for _ in range(rounds // batch):
        q, eta = policy.state.q.copy(), float(policy.state.rates[0])
        decisions = policy.act(rng.choice(problem.n_contexts, size=batch, p=problem.probabilities))
        means = [problem.features[decision.context, decision.arm] @ instance.theta for decision in decisions]
        losses = np.where(rng.random(batch) < (1.0 + np.array(means)) / 2.0, 1.0, -1.0)
        before = policy.state.theta.copy()
        policy.update(decisions, loss=losses)
        change = policy._machine.known.z @ (policy.state.theta - before)
        steps.append(float((eta * np.abs(change) * np.sqrt(q)).max()))
    above = np.flatnonzero(np.array(steps) > 0.5)
    last = f", the last at round {(above[-1] + 1) * batch:,}" if len(above) else ""
    return f"above 1/2 in {len(above)} of {len(steps)} batches{last}; largest {max(steps):.2f}"


def main() -> None:
    for options in WORLDS:
        instance = en.random_instance(**options)  # type: ignore[arg-type]
        print(", ".join(f"{name} {value}" for name, value in options.items()))
        for horizon in (50_000, 10**6):
            for batch in (2, 10, 40):
                print(f"  T {horizon:,}, b {batch}:  {regrets(en.stochastic(instance), horizon, batch)}")
        print(f"  batch=1 in batches of 40, 20,000 rounds: {violations(instance, 40, 20_000)}")


if __name__ == "__main__":
    main()
