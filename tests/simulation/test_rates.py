"""eta_t and gamma_t at the checkpoints are those of a policy that plays the same rounds, in every round loop."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds import kernels as k
from bothworlds.algorithms.fixed import KERNEL
from bothworlds.kernels.random import stream_key
from bothworlds.simulation.engine import simulate
from bothworlds.simulation.replication import Replications
from bothworlds.simulation.results import load_results
from bothworlds.simulation.setting import make_setting

INSTANCE = en.random_instance(contexts=4, arms=3, dimension=3, gap=0.2, seed=2)
STILL = en.stochastic(INSTANCE, noise="none")
WORLD = en.stochastic(INSTANCE)
MARKS = [1, 2, 3, 7, 20, 21, 60]


def rates_of_a_policy(algorithm: Any, *, seed: int, number: int, horizon: int) -> np.ndarray:
    """Play the rounds of a replication with a policy, round by round, and read its rates before every decision."""
    path = bw.replay(STILL, algorithm, horizon=horizon, replication=number, rng=seed)
    losses = INSTANCE.problem.features @ INSTANCE.theta
    policy = algorithm.start(INSTANCE.problem, rng=stream_key(seed, number), interpreted=True)
    found = []
    for x, a in path.trace:
        found.append(policy.state.rates.copy())
        decision = policy.act(int(x))
        assert decision.arm == a
        policy.update(decision, loss=float(losses[x, a]))
    return np.array(found)


@pytest.mark.parametrize("algorithm", [bw.LCTsallisINF(), bw.LCTsallisINF(tuning="certified"), bw.RealFTRL()], ids=repr)
def test_recorded_rates_are_those_of_a_policy_that_plays_the_same_rounds(algorithm: Any) -> None:
    results = simulate(STILL, {"it": algorithm}, horizon=60, replications=3, rng=5, checkpoints=MARKS)
    run = results["it"]
    assert run.learning_rate is not None
    assert run.exploration_rate is not None
    assert run.exploration_rate.shape == run.learning_rate.shape == (3, len(MARKS))
    for number in range(3):
        every = rates_of_a_policy(algorithm, seed=5, number=number, horizon=60)
        mine = np.stack([run.learning_rate[number], run.exploration_rate[number]], axis=1)
        np.testing.assert_allclose(mine, every[np.array(MARKS) - 1], rtol=1e-9)


@pytest.mark.parametrize("algorithm", [bw.LCTsallisINF(), bw.LCTsallisINF(tuning="certified")], ids=repr)
def test_at_once_alone_and_interpreted_alike(algorithm: Any) -> None:
    """Also across slices of any length, and with feedback that comes late and in batches."""
    machine = algorithm.machine(WORLD.problem)
    setting = make_setting(WORLD, horizon=60, rng=4, checkpoints=MARKS, delay=2, batch=3)
    some = Replications(machine, setting, range(5))
    while some.played < 60:
        some.advance(7)
    together = some.outcomes()
    for number in range(5):
        alone = Replications(machine, setting, [number])
        read = Replications(machine, setting, [number], interpreted=True)
        for one in (alone, read):
            one.advance(60)
            [outcome] = one.outcomes()
            assert outcome.rates is not None
            np.testing.assert_array_equal(outcome.rates, together[number].rates)


@pytest.mark.parametrize("delay", [0, 5])
def test_rates_of_a_schedule_are_those_of_the_schedule(delay: int) -> None:
    """Compare with the formula of (4); t counts the updates."""
    algorithm = bw.LCTsallisINF(tuning="paper")
    options: dict[str, Any] = {"horizon": 4000, "replications": 4, "checkpoints": 30, "delay": delay}
    results = simulate(WORLD, {"it": algorithm}, **options)
    schedule = algorithm.schedule_for(WORLD.problem, algorithm.design_for(WORLD.problem))
    clock = np.maximum(1, results.checkpoints - delay)
    run = results["it"]
    for found, of in (
        (run.learning_rate, schedule.learning_rate),
        (run.exploration_rate, schedule.exploration_rate),
    ):
        assert found is not None
        np.testing.assert_allclose(found, np.tile([of(float(t)) for t in clock], (4, 1)), rtol=1e-12)
    followed = simulate(WORLD, {"it": bw.LCTsallisINF(tuning="certified")}, **options)["it"].exploration_rate
    assert followed is not None
    certified = bw.LCTsallisINF(tuning="certified")
    allowed = certified.schedule_for(WORLD.problem, certified.design_for(WORLD.problem))
    most = np.array([allowed.exploration_rate(float(t)) for t in clock])
    assert (followed <= most * (1.0 + 1e-12)).all()
    assert (followed[:, -1] < most[-1]).all()


def test_in_a_world_of_python_too() -> None:
    theta = [float(part) for part in INSTANCE.theta]
    slow = en.from_function(INSTANCE.problem, lambda t, pi: theta, name="slow", noise="none")
    for algorithm in (bw.LCTsallisINF(), bw.RealFTRL()):
        runs = [simulate(one, {"it": algorithm}, horizon=60, checkpoints=MARKS)["it"] for one in (slow, STILL)]
        for name in ("learning_rate", "exploration_rate"):
            one, other = (getattr(run, name) for run in runs)
            np.testing.assert_allclose(one, other, rtol=1e-9)
        path = bw.replay(slow, algorithm, horizon=60)
        assert path.rates is not None


def test_players_without_such_rates_have_none(tmp_path: Path) -> None:
    results = simulate(WORLD, {"even": bw.FixedPolicy(), "LinUCB": bw.LinUCB()}, horizon=60, replications=2)
    results.save(tmp_path / "run.npz")
    for some in (results, load_results(tmp_path / "run.npz")):
        assert all(run.exploration_rate is None and run.learning_rate is None for run in some.runs.values())


class Rates(NamedTuple):
    """Rates in a nested record."""

    speeds: Annotated[k.Floats, k.planned(2)]


class State(NamedTuple):
    """A user's algorithm that plays uniformly with decreasing exploration rate."""

    t: Annotated[k.Floats, k.learnt()]
    rates: Rates
    pi: Annotated[k.Floats, k.planned("S", "K")]


@k.kernel
def refresh(known: k.Known, options: Any, state: State, work: Any) -> int:
    """Write the rates 2 and 1/t."""
    state.rates.speeds[0] = 2.0
    state.rates.speeds[1] = 1.0 / state.t[0]
    for x in range(state.pi.shape[0]):
        for a in range(state.pi.shape[1]):
            state.pi[x, a] = known.e[x, a]
    return k.OK


@k.kernel
def learn(known: k.Known, options: Any, state: State, play: k.Play, carried: Any) -> None:
    """Count."""
    state.t[0] += 1.0


OWN = k.build_kernel(refresh, k.choose_only, learn, together=True)


class Own(bw.Algorithm):
    def machine(self, problem: bw.Problem, frame: Mapping[str, k.Floats] | None = None) -> k.Machine:
        known = k.known_of(problem, k.even_play(problem.available), np.zeros((*problem.available.shape, 0)))
        return k.Machine(kernel=OWN, known=known, rates="speeds")


def test_an_algorithm_of_ones_own_names_its_rates() -> None:
    """For any name and position of the field: in lanes, alone and in Python."""
    theta = [float(part) for part in INSTANCE.theta]
    slow = en.from_function(INSTANCE.problem, lambda t, pi: theta, name="slow")
    for world, count in ((WORLD, 5), (WORLD, 1), (slow, 1)):
        run = simulate(world, {"own": Own()}, horizon=60, replications=count, checkpoints=MARKS)["own"]
        assert run.exploration_rate is not None
        assert run.learning_rate is not None
        assert run.exploration_rate.tolist() == [[1.0 / t for t in MARKS]] * count
        assert (run.learning_rate == 2.0).all()


def test_rates_name_a_field_of_two_numbers() -> None:
    problem = INSTANCE.problem
    known = k.known_of(problem, k.even_play(problem.available), problem.features)
    with pytest.raises(
        ValueError, match="rates must name a field of the state with two numbers, eta and gamma; got 't'"
    ):
        k.Machine(kernel=KERNEL, known=known, rates="t")


def test_files_keep_them(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    results = simulate(WORLD, {"ours": bw.LCTsallisINF(), "even": bw.FixedPolicy()}, horizon=60, replications=2)
    results.save(path)
    kept, run = load_results(path)["ours"], results["ours"]
    np.testing.assert_array_equal(kept.exploration_rate, run.exploration_rate)
    np.testing.assert_array_equal(kept.learning_rate, run.learning_rate)
    assert load_results(path)["even"].exploration_rate is None


def test_tables_have_their_means() -> None:
    pytest.importorskip("pandas")
    results = simulate(WORLD, {"ours": bw.LCTsallisINF(), "even": bw.FixedPolicy()}, horizon=60, replications=2)
    table = results.to_pandas()
    rate = results["ours"].exploration_rate
    assert rate is not None
    mine = table[table.algorithm == "ours"]
    assert mine.exploration_rate.tolist() == rate.mean(axis=0).tolist()
    assert table[table.algorithm == "even"].exploration_rate.isna().all()
