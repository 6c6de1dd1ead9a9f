"""Every registered algorithm at every odd size and in every regime: it runs soundly, or refuses in a sentence."""

import itertools
from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.registry import algorithms, make_algorithm
from bothworlds.environments.registry import WORLDS
from bothworlds.simulation.replication import Replications
from bothworlds.simulation.setting import Setting
from support.problems import bits, masked, parameters, play, random_problem

# An algorithm may warn that so short a horizon makes its guarantee empty; it must run all the same.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

ROUNDS = 25
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "BoBWMWULC": [{"candidate": "per-context"}, {"scale": 0.0, "speed": 300.0}],
    "BoBWLinearEXP4": [{"policies": "all"}, {"estimates": "importance-weighted"}],
    "BoBWRealLinExp3": [
        {"candidate": "per-context"},
        {"scale": 0.0},
        {"features": "arm-independent", "scale": 0.0},
        {"features": "arm-independent", "constants": "printed", "candidate": "per-context"},
    ],
    "LCTsallisINF": [
        {"tuning": "certified"},
        {"tuning": "paper"},
        {"tuning": "paper", "covariance": {"kind": "mgr", "samples": 20}},
    ],
    "LinearEXP4": [{"policies": "all"}, {"policies": "all", "contexts": "empirical"}, {"contexts": "empirical"}],
    "LogdetFTRL": [{"contexts": "empirical"}, {"contexts": "empirical", "scale": 0.001}],
    "LinTS": [{"spread": "theory"}],
    "MWULC": [{"speed": 1000.0}],
    "PerContextTsallisINF": [{"estimator": "iw"}],
}


def algorithms_of(kind: str, horizon: int) -> list[Any]:
    """The algorithm with its defaults, and with the options above; a horizon only where it is required."""
    maker: Any = algorithms()[kind]
    required = {"horizon": horizon} if any(f.name == "horizon" and f.default is MISSING for f in fields(maker)) else {}
    return [make_algorithm({"kind": kind, **required, **options}) for options in [{}, *OPTIONS.get(kind, [])]]


def dependent() -> bw.Problem:
    """Three features that span two dimensions, one of them a thousand times the size of another."""
    features = random_problem(8, S=4, K=3, d=2).features
    wider = np.concatenate([features, 1e3 * features.sum(axis=2, keepdims=True)], axis=2)
    return bw.Problem(features=wider, probabilities=np.full(4, 0.25))


@cache
def one_vector_per_context() -> bw.Problem:
    return bw.Problem.from_arm_independent([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], probabilities=[0.4, 0.4, 0.2], arms=3)


PROBLEMS: dict[str, Callable[[], bw.Problem]] = {
    "S = 1": lambda: random_problem(1, S=1, K=3, d=2),
    "K = 2": lambda: random_problem(2, S=3, K=2, d=2),
    "d = 1": lambda: random_problem(3, S=3, K=3, d=1),
    "S = 1, K = 2, d = 1": lambda: bw.Problem(features=[[[1.0], [-1.0]]], probabilities=[1.0]),
    "K = 500": lambda: random_problem(4, S=2, K=500, d=3),
    "d = 50": lambda: random_problem(5, S=12, K=8, d=50),
    "S = 300": lambda: random_problem(6, S=300, K=3, d=3),
    "L = 10,000": lambda: random_problem(6, S=4, K=3, d=3, rarity=1e4),
    "L = 10,000, one-hot": lambda: bw.Problem(features=np.eye(6).reshape(3, 2, 6), probabilities=[1e-4, 0.4999, 0.5]),
    "arms not offered": masked,
    "rank-deficient features": dependent,
    "one vector per context": one_vector_per_context,
}


@cache
def problem_of(name: str) -> bw.Problem:
    """One for all algorithms: its designs are computed once."""
    return PROBLEMS[name]()


def machine_or_refusal(algorithm: Any, problem: bw.Problem) -> Any:
    """What the algorithm makes of a problem, or the sentence in which it refuses.

    The best design takes half a minute at d = 50: there the D-optimal one stands in.
    """
    designed = getattr(algorithm, "design", None) == "joint-g" and getattr(algorithm, "contexts", "known") == "known"
    if problem.dimension >= 50 and designed:
        algorithm = replace(algorithm, design="joint-d")
    try:
        return algorithm.machine(problem)
    except ValueError as refusal:
        return str(refusal)


def run_soundly(algorithm: Any, problem: bw.Problem, horizon: int) -> bool:
    """Play some rounds and look at the plan after each; False where the algorithm refuses in a sentence."""
    machine = machine_or_refusal(algorithm, problem)
    if isinstance(machine, str):
        assert len(machine.split()) >= 5
        return False
    world = en.stochastic(en.Instance(problem, parameters(problem)))
    setting = Setting(environment=world, horizon=horizon, checkpoints=np.array([horizon]), seed=1)
    run = Replications(machine, setting, [0])
    for _ in range(horizon):
        run.advance(1)
        pi = machine.kernel.state_of(*run._memory, tuple(machine.sizes)).pi
        assert (pi >= 0.0).all()
        assert np.abs(pi.sum(axis=1) - 1.0).max() <= 1e-9
        assert not pi[~problem.available].any()
    [outcome] = run.outcomes()
    assert all(np.isfinite(part).all() for part in (outcome.expected, outcome.realised, *outcome.final.values()))
    return True


@pytest.mark.parametrize("kind", algorithms())
def test_odd_sizes_run_soundly_or_are_refused(kind: str) -> None:
    ran = []
    for name in PROBLEMS:
        ran += [name for algorithm in algorithms_of(kind, ROUNDS) if run_soundly(algorithm, problem_of(name), ROUNDS)]
    assert ran  # an algorithm for one kind of problem refuses the others, but not all


@pytest.mark.parametrize("kind", algorithms())
def test_a_single_round_is_a_whole_run(kind: str) -> None:
    ran = [
        run_soundly(one, problem(), 1) for problem in (masked, one_vector_per_context) for one in algorithms_of(kind, 2)
    ]
    assert any(ran)


@pytest.mark.parametrize("kind", algorithms())
def test_files_bring_every_algorithm_back(kind: str, tmp_path: Path) -> None:
    """With each of its options, arms not offered, and feedback that comes after the file."""
    for problem, algorithm in itertools.product((masked(), one_vector_per_context()), algorithms_of(kind, ROUNDS)):
        if isinstance(machine_or_refusal(algorithm, problem), str):
            continue
        policy = algorithm.start(problem, rng=1)
        play(policy, 10)
        waiting = policy.act([0, 1, 2])
        policy.save(tmp_path / "policy.npz")
        copy = bw.load(tmp_path / "policy.npz")
        assert copy.probabilities().tobytes() == policy.probabilities().tobytes()
        for one in (policy, copy):
            one.update(waiting, loss=[0.5, -0.25, 1.0])
        assert copy.probabilities().tobytes() == policy.probabilities().tobytes()
        assert play(copy, 10) == play(policy, 10)
        assert bits(copy) == bits(policy)


@pytest.mark.parametrize("kind", algorithms())
def test_every_regime_is_played_to_the_end(kind: str) -> None:
    """200 rounds in each world of the studies, with features of arms and with one vector per context."""
    plain = one_vector_per_context()
    instances = [
        en.random_instance(contexts=4, arms=3, dimension=2, gap=0.2, seed=1),
        en.Instance(plain, parameters(plain)),
    ]
    ran = set()
    for regime, instance in itertools.product(WORLDS, instances):
        world = WORLDS[regime](instance, {}, {"horizon": 200, "seed": 1})
        algorithm = algorithms_of(kind, 200)[0]
        if isinstance(machine_or_refusal(algorithm, world.problem), str):
            continue
        run = bw.simulate(world, {"a": algorithm}, horizon=200, replications=2, checkpoints=2)["a"]
        assert np.isfinite([*run.regret, *run.regret_against_own_best]).all()
        assert np.abs(run.expected).max() <= 200.0
        ran.add(regime)
    assert len(ran) >= len(WORLDS) - 1  # only the column of ones of a moving level is not one vector per context


@pytest.mark.parametrize("kind", sorted(algorithms()))
def test_late_decisions_are_taken_and_damaged_ones_refused(kind: str) -> None:
    """Every decision that was taken is learnt from, fifty rounds late; huge numbers are refused and change nothing."""
    for algorithm in algorithms_of(kind, 200):
        for problem in (random_problem(5, S=3, K=2, d=2, rarity=1000.0), random_problem(6, S=4, K=3, d=2)):
            policy = algorithm.start(problem, rng=1)
            waiting: list[bw.Decision] = []
            rng = np.random.default_rng(3)
            for t in range(200):
                waiting.append(policy.act(t % problem.n_contexts))
                if len(waiting) > 50:
                    policy.update(waiting.pop(0), loss=float(rng.choice([-1.0, 1.0])))
            before = bits(policy)
            spoilt = [waiting[0]._replace(propensity=1.5)]
            if len(waiting[0].direction):  # regressions and fixed policies carry nothing
                spoilt += [waiting[0]._replace(direction=np.full_like(waiting[0].direction, 1e308))]
            for one in spoilt:
                with pytest.raises(ValueError, match="damaged"):
                    policy.update(one, loss=1.0)
            assert bits(policy) == before
            policy.update(waiting, loss=[0.5] * len(waiting))
            assert policy.updates == 200


@pytest.mark.parametrize("kind", sorted({*algorithms()} - {"LCTsallisINF", "RealFTRL", "RealLinExp3"}))
def test_a_sampled_problem_is_refused_in_a_sentence(kind: str) -> None:
    problem = bw.SampledProblem(lambda rng: rng.normal(size=(3, 2)), lambda x: x, samples=50)
    for algorithm in algorithms_of(kind, 50):
        with pytest.raises(ValueError, match=r"contexts are not listed.*for all others make a Problem"):
            algorithm.start(problem)
