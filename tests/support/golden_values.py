"""Golden values: what every algorithm and tuning computes, as digests.

    cd tests && python -m support.golden_values

writes golden_values.json. A commit that changes it says in a sentence which numbers moved and why.
"""

import hashlib
import json
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.simulation.replication import Replications
from bothworlds.simulation.setting import make_setting
from support.problems import parameters, random_problem

FILE = Path(__file__).parent / "golden_values.json"
ROUNDS, REPLICATIONS = 60, 3
T = 1000
MASK = np.array([[1, 1, 1, 1]] * 6 + [[1, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 0]], dtype=bool)

CASES: dict[str, Any] = {
    "paper": bw.LCTsallisINF(tuning="paper"),
    "paper, any support": bw.LCTsallisINF(tuning=bw.Paper(finite_support=False)),
    "paper, alpha 0.7": bw.LCTsallisINF(tuning="paper", alpha=0.7),
    "paper, resampled": bw.LCTsallisINF(tuning="paper", covariance=bw.MGR(samples=7)),
    "certified": bw.LCTsallisINF(tuning="certified"),
    "certified, alpha 0.3": bw.LCTsallisINF(tuning="certified", alpha=0.3),
    "certified, batches": bw.LCTsallisINF(tuning=bw.Certified(c=0.2, batch=2)),
    "matched": bw.LCTsallisINF(tuning="matched"),
    "RealFTRL": bw.RealFTRL(),
    "RealFTRL, horizon": bw.RealFTRL(horizon=T),
    "RealLinExp3": bw.RealLinExp3(horizon=T),
    "RealLinExp3, resampled": bw.RealLinExp3(horizon=T, covariance=bw.MGR(samples=9)),
    "RealLinExp3, arm-dependent": bw.RealLinExp3(horizon=T, features="arm-dependent"),
    "RealLinExp3, arm-dependent, resampled": bw.RealLinExp3(
        horizon=T, features="arm-dependent", covariance=bw.MGR(samples=9)
    ),
    "RobustLinExp3": bw.RobustLinExp3(horizon=T),
    "FTRLLC": bw.FTRLLC(horizon=T),
    "FTRLLC, resampled": bw.FTRLLC(horizon=T, covariance=bw.MGR(samples=5)),
    "LinearEXP4": bw.LinearEXP4(horizon=T),
    "LinearEXP4, all": bw.LinearEXP4(horizon=T, policies="all"),
    "LinearEXP4, empirical": bw.LinearEXP4(horizon=T, contexts="empirical"),
    "LinearEXP4, all, empirical": bw.LinearEXP4(horizon=T, policies="all", contexts="empirical"),
    "LogdetFTRL": bw.LogdetFTRL(horizon=T),
    "LogdetFTRL, empirical": bw.LogdetFTRL(horizon=T, contexts="empirical", scale=0.001),
    "BoBWRealLinExp3": bw.BoBWRealLinExp3(horizon=T, scale=0.0),
    "BoBWRealLinExp3, maps": bw.BoBWRealLinExp3(horizon=T, candidate="per-context", scale=0.01),
    "BoBWRealLinExp3, arm-independent": bw.BoBWRealLinExp3(horizon=T, features="arm-independent", scale=0.0),
    "BoBWRealLinExp3, printed": bw.BoBWRealLinExp3(
        horizon=T, features="arm-independent", constants="printed", candidate="per-context"
    ),
    "BoBWLinearEXP4": bw.BoBWLinearEXP4(horizon=T, scale=0.0),
    "BoBWLinearEXP4, weighted": bw.BoBWLinearEXP4(horizon=T, estimates="importance-weighted", scale=0.0),
    "MWULC": bw.MWULC(speed=100.0),
    "BoBWMWULC": bw.BoBWMWULC(horizon=T, scale=0.0, speed=300.0),
    "BoBWMWULC, maps": bw.BoBWMWULC(horizon=T, scale=0.0, candidate="per-context"),
    "PerContextTsallisINF": bw.PerContextTsallisINF(),
    "PerContextTsallisINF, IW": bw.PerContextTsallisINF(estimator="iw"),
    "PerContextExp3": bw.PerContextExp3(),
    "LinUCB": bw.LinUCB(width=0.5),
    "OFUL": bw.OFUL(),
    "LinTS": bw.LinTS(),
    "LinTS, one draw": bw.LinTS(draws=1),
    "LinTS, theory": bw.LinTS(spread="theory"),
    "DLinUCB": bw.DLinUCB(discount=0.9),
    "SWLinUCB": bw.SWLinUCB(window=20),
    "SquareCB": bw.SquareCB(),
    "uniform": bw.FixedPolicy(),
}


def mathematics() -> str:
    """Return a digest of what the last bits depend on: C library, processor, what NumPy and BLAS choose for it."""
    points = np.geomspace(1e-8, 30.0, 400)
    values = [f(p) for p in points.tolist() for f in (math.exp, math.expm1, math.log, math.erfc, math.cos)]
    arrays = [np.array(values), *(f(points) for f in (np.exp, np.log, np.sqrt, np.cos)), points**0.7]
    for d in range(2, 13):
        factor = np.cos(np.arange(d * (d + 3.0)).reshape(d, d + 3))
        matrix = factor @ factor.T + np.eye(d)
        arrays += [matrix, factor.T @ points[:d], np.linalg.cholesky(matrix), np.linalg.inv(matrix)]
        arrays += [*np.linalg.eigh(matrix), np.linalg.solve(matrix, factor)]
    return digest(*arrays)


def comparable() -> bool:
    """Return whether this machine's mathematics equals that of the golden values, to the last bit."""
    return bool(json.loads(FILE.read_text())["mathematics"] == mathematics())


def digest(*arrays: Any) -> str:
    """A short hash of arrays, of their shapes and bits."""
    found = hashlib.blake2b(digest_size=8)
    for array in arrays:
        values = np.ascontiguousarray(array)
        found.update(repr((values.shape, values.dtype.str)).encode())
        found.update(values.tobytes())
    return found.hexdigest()


def world() -> en.Environment:
    """Nine contexts, so that blocks of eight are not full; some losses corrupted."""
    instance = en.random_instance(contexts=9, arms=4, dimension=2, gap=0.2, seed=5)
    return en.corrupted(instance, budget=4.0)


def of_outcome(outcome: Any) -> str:
    """A digest of what a replication leaves."""
    learnt = [part for name in sorted(outcome.final) for part in ([ord(c) for c in name], outcome.final[name])]
    return digest(outcome.expected, outcome.realised, outcome.own_best, outcome.sums, outcome.policy, *learnt)


def simulated(algorithm: Any, mode: str) -> list[str]:
    """Digests of some replications, interpreted or compiled, alone or in lanes; each mode must give the same."""
    environment = world()
    machine = algorithm.machine(environment.problem)
    setting = make_setting(environment, horizon=ROUNDS, rng=4, checkpoints=12, delay=1, batch=2)
    if mode == "lanes":
        some = Replications(machine, setting, range(REPLICATIONS))
        some.advance(ROUNDS)
        return [of_outcome(one) for one in some.outcomes()]
    found = []
    for number in range(1 if mode == "interpreted" else REPLICATIONS):
        one = Replications(machine, setting, [number], interpreted=mode == "interpreted")
        one.advance(ROUNDS)
        found += [of_outcome(outcome) for outcome in one.outcomes()]
    return found


def as_policy(algorithm: Any, folder: Path, *, interpreted: bool = False) -> list[str]:
    """Digests of a policy's probabilities and decisions, late and in batches, before and after save and load."""
    problem = random_problem(3, S=9, K=4, d=2, available=MASK)
    theta = parameters(problem)
    policy = algorithm.start(problem, rng=11, interpreted=interpreted)
    found = []
    for part in range(2):
        rng = np.random.default_rng(part)
        waiting: list[Any] = []
        for t in range(16):
            decision = policy.act(int(rng.integers(problem.n_contexts)))
            mean = float(problem.features[decision.context, decision.arm] @ theta)
            waiting.append((decision, 1.0 if rng.random() < (1.0 + mean) / 2.0 else -1.0))
            if t % 5 == 4:
                made, losses = zip(*waiting[::-1], strict=True)
                policy.update(list(made), loss=list(losses))
                waiting = []
            elif t % 3 == 0:
                made, loss = waiting.pop(0)
                policy.update(made, loss=loss)
        learnt = policy.learnt()
        found.append(digest(policy.probabilities(), *[learnt[name] for name in sorted(learnt)]))
        policy.save(folder / "golden.npz")
        policy = bw.load(folder / "golden.npz", interpreted=interpreted)
        found.append(digest(policy.probabilities(), *[policy.learnt()[name] for name in sorted(learnt)]))
    return found


def golden(algorithm: Any, folder: Path) -> dict[str, Any]:
    """The golden values of an algorithm, by the compiled text, and the sums of its probabilities to compare by eye."""
    return {"simulated": simulated(algorithm, "alone"), "policy": as_policy(algorithm, folder)}


def main() -> None:
    """Write golden_values.json."""
    import tempfile

    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        values = {}
        for name in CASES if len(sys.argv) == 1 else sys.argv[1:]:
            values[name] = golden(CASES[name], Path(folder))
            print(name, values[name], file=sys.stderr)
    before = json.loads(FILE.read_text())["cases"] if FILE.exists() and len(sys.argv) > 1 else {}
    content = {"mathematics": mathematics(), "cases": {**before, **values}}
    FILE.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
