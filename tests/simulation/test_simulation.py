"""`simulate` equals the loop over a policy, does not depend on threads or other algorithms, and has exact regret."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.errors import UserCodeError
from bothworlds.report.statistics import mean_of
from bothworlds.simulation import load_results, replay, simulate
from bothworlds.simulation.results import Run
from bothworlds.simulation.round_loop_python import play_in_python
from bothworlds.simulation.setting import Setting, log_spaced
from support.problems import TUNINGS, parameters, random_problem
from support.python_learner import INSTANCE, PAIR, Plain, PlainAlgorithm

WORLDS = {
    "stochastic": en.stochastic(INSTANCE),
    "normal": en.stochastic(INSTANCE, noise="normal"),
    "growing": en.growing_phases(INSTANCE.problem, PAIR, first=20),
    "walk": en.random_walk(INSTANCE.problem, step=0.05),
    "adaptive": en.adaptive_adversary(INSTANCE.problem, PAIR),
    "corrupted": en.corrupted(INSTANCE, budget=10.0, placement="adaptive"),
    "fatigue": en.ad_fatigue(click_rates=[[0.3, 0.2], [0.1, 0.4]], probabilities=[0.4, 0.6], wear=0.1, memory=20),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("tuning", TUNINGS)
def test_the_engine_is_the_loop_over_a_policy(world: str, tuning: str) -> None:
    """The same arms round by round, the same regret to 1e-12, in every kind of world."""
    algorithm = bw.LCTsallisINF(tuning=tuning)  # type: ignore[arg-type]
    environment = WORLDS[world]
    fast = replay(environment, algorithm, horizon=250, rng=3, replication=2, interpreted=False)
    setting = Setting(environment=environment, horizon=250, checkpoints=log_spaced(250), seed=3)
    slow = play_in_python(algorithm.start, setting, 2, trace=True)
    assert fast.trace.tolist() == slow.trace.tolist()
    for name in ("expected", "realised", "own_best", "round_best"):
        assert getattr(fast, name) == pytest.approx(getattr(slow, name), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("delay", "batch"), [(0, 7), (5, 1), (20, 4)])
def test_delay_and_batches_are_the_loop_too(delay: int, batch: int) -> None:
    algorithm = bw.LCTsallisINF(tuning="matched")
    environment = WORLDS["stochastic"]
    fast = replay(environment, algorithm, horizon=200, delay=delay, batch=batch, interpreted=False)
    setting = Setting(
        environment=environment, horizon=200, checkpoints=log_spaced(200), seed=0, delay=delay, batch=batch
    )
    slow = play_in_python(algorithm.start, setting, 0, trace=True)
    assert fast.trace.tolist() == slow.trace.tolist()
    assert fast.expected == pytest.approx(slow.expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("world", WORLDS)
def test_interpreted_and_compiled_replications_agree_bit_for_bit(world: str) -> None:
    algorithm = bw.LCTsallisINF(tuning="certified")
    one, two = (replay(WORLDS[world], algorithm, horizon=120, interpreted=flag) for flag in (False, True))
    assert one.trace.tolist() == two.trace.tolist()
    assert one.expected.tobytes() == two.expected.tobytes()
    assert one.sums.tobytes() == two.sums.tobytes()


def test_results_do_not_depend_on_threads_slices_or_company(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = WORLDS["corrupted"]
    algorithms = {t: bw.LCTsallisINF(tuning=t) for t in TUNINGS}  # type: ignore[arg-type]
    together = simulate(environment, algorithms, horizon=3000, replications=5, rng=4, threads=3)
    monkeypatch.setattr("bothworlds.simulation.engine.FIRST_SLICE", 71)
    monkeypatch.setattr("bothworlds.simulation.engine.SLICE_SECONDS", 0.0)
    for label, algorithm in algorithms.items():
        alone = simulate(environment, {label: algorithm}, horizon=3000, replications=5, rng=4, threads=1)
        assert alone[label].expected.tobytes() == together[label].expected.tobytes()
        assert alone[label].final["theta"].tobytes() == together[label].final["theta"].tobytes()
    some = simulate(environment, {"paper": algorithms["paper"]}, horizon=3000, replications=2, rng=4)
    assert some["paper"].expected.tobytes() == together["paper"].expected[:2].tobytes()


def test_all_algorithms_meet_the_same_contexts() -> None:
    environment = WORLDS["stochastic"]
    traces = [
        replay(environment, bw.LCTsallisINF(tuning=t), horizon=100, interpreted=False).trace  # type: ignore[arg-type]
        for t in TUNINGS
    ]
    traces.append(replay(environment, PlainAlgorithm(), horizon=100).trace)
    for trace in traces[1:]:
        assert trace[:, 0].tolist() == traces[0][:, 0].tolist()


def test_the_regret_of_uniform_play_is_known_exactly() -> None:
    """Per round sum_x g mean_a Delta(a|x): the expected regret has no noise at all."""
    environment = WORLDS["stochastic"]
    results = simulate(environment, {"plain": PlainAlgorithm()}, horizon=50, replications=3)
    per_round = float(environment.problem.probabilities @ environment.gaps.mean(axis=1))
    assert results["plain"].regret == pytest.approx(per_round * results.checkpoints)
    assert results["plain"].standard_error == pytest.approx(0.0, abs=1e-12)


def test_the_comparator_is_one_policy_for_all_replications() -> None:
    """Against an adaptive nature E max >= max E: both regrets are reported, in that order."""
    results = simulate(WORLDS["adaptive"], bw.LCTsallisINF(tuning="matched"), horizon=2000, replications=8)
    run = next(iter(results.runs.values()))
    assert (run.regret_against_own_best >= run.regret - 1e-9).all()
    assert run.best.shape == (8, len(results.checkpoints))


def test_regret_is_taken_against_the_common_comparator_by_hand() -> None:
    """Two replications, two checkpoints; each one's own best loses less than the policy best in expectation."""
    run = Run(
        expected=np.array([[5.0, 9.0], [7.0, 12.0]]),
        realised=np.zeros((2, 2)),
        own_best=np.array([[1.0, 2.0], [2.0, 1.0]]),
        round_best=np.array([[0.0, 1.0], [1.0, 0.5]]),
        best=np.array([[3.0, 4.0], [3.0, 6.0]]),
        corruption=np.zeros(2),
        spent=np.zeros(2),
        policy=np.zeros((1, 2)),
        final={},
    )
    assert run.paths.tolist() == [[2.0, 5.0], [4.0, 6.0]]
    assert run.regret.tolist() == [3.0, 5.5]
    assert run.standard_error == pytest.approx([1.0, 0.5])
    assert run.paths_against_own_best.tolist() == [[4.0, 7.0], [5.0, 11.0]]
    assert run.regret_against_own_best.tolist() == [4.5, 9.0]
    assert run.quantiles(0.5).tolist() == [3.0, 5.5]
    assert run.dynamic_paths.tolist() == [[5.0, 8.0], [6.0, 11.5]]
    assert run.dynamic_regret.tolist() == [5.5, 9.75]
    assert run.dynamic_standard_error == pytest.approx([0.5, 1.75])


def test_the_common_comparator_by_enumeration() -> None:
    """An adaptive nature: the best of all K^S policies against the mean of the sums of theta_t, at every checkpoint."""
    world, learner = WORLDS["adaptive"], bw.LCTsallisINF(tuning="matched")
    times, S, K, count = [7, 30, 100], 4, 3, 9
    found = simulate(world, {"it": learner}, horizon=100, replications=count, checkpoints=times)["it"]
    g, policies = world.problem.probabilities, np.array(list(itertools.product(range(K), repeat=S)))
    for n, t in enumerate(times):
        paths = [replay(world, learner, horizon=t, replication=i, interpreted=False).sums[-1] for i in range(count)]
        tables = np.array([world.problem.features @ (sums @ world.thetas) for sums in paths])
        losses = tables[:, np.arange(S), policies] @ g  # (replications, policies)
        common = losses.mean(axis=0).argmin()
        assert found.best[:, n] == pytest.approx(losses[:, common], abs=1e-9)
        assert found.own_best[:, n] == pytest.approx(losses.min(axis=1), abs=1e-9)
        assert found.regret[n] == pytest.approx(found.expected[:, n].mean() - losses[:, common].mean(), abs=1e-9)
    assert found.regret_against_own_best[-1] > found.regret[-1] + 0.1  # 1.1 above, here


def test_expected_and_realised_losses_agree_within_monte_carlo_error() -> None:
    results = simulate(WORLDS["stochastic"], bw.LCTsallisINF(tuning="matched"), horizon=2000, replications=200, rng=5)
    run = next(iter(results.runs.values()))
    difference = run.realised[:, -1] - run.expected[:, -1]
    assert abs(difference.mean()) <= 4.0 * difference.std() / np.sqrt(200)


def test_nature_reports_the_corruption_it_spent() -> None:
    results = simulate(WORLDS["corrupted"], bw.LCTsallisINF(tuning="matched"), horizon=5000, replications=3)
    assert next(iter(results.runs.values())).corruption == pytest.approx(10.0)


def test_results_survive_files_and_become_tables(tmp_path: Path) -> None:
    algorithms = {"one": bw.LCTsallisINF(tuning="paper"), "two": bw.LCTsallisINF(tuning="matched")}
    results = simulate(WORLDS["stochastic"], algorithms, horizon=300, replications=3, checkpoints=[10, 100])
    results.save(tmp_path / "run.npz")
    again = load_results(tmp_path / "run.npz")
    assert again.checkpoints.tolist() == [10, 100, 300]
    assert again["two"].paths.tobytes() == results["two"].paths.tobytes()
    assert again["one"].final["theta"].shape == (3, 3)
    assert again.manifest == results.manifest
    assert {"seed", "versions", "run"} <= set(again.manifest)
    table = results.to_pandas()
    assert len(table) == 6
    assert table.query("algorithm == 'two' and t == 300").regret.iloc[0] == results["two"].regret[-1]
    with pytest.raises(KeyError, match="there is no run 'three'"):
        results["three"]
    (tmp_path / "run.npz").write_bytes(b"PK")
    with pytest.raises(ValueError, match="damaged"):
        load_results(tmp_path / "run.npz")
    with pytest.raises(ValueError, match=r"must end with \.npz"):
        results.save(tmp_path / "run.csv")


def test_progress_counts_every_round() -> None:
    seen: list[int] = []
    simulate(WORLDS["stochastic"], bw.LCTsallisINF(tuning="paper"), horizon=500, replications=4, progress=seen.append)
    assert sum(seen) == 2000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"horizon": 0}, "horizon"),
        ({"horizon": 10, "replications": 0}, "replications"),
        ({"horizon": 10, "delay": -1}, "delay"),
        ({"horizon": 10, "batch": 0}, "batch"),
        ({"horizon": 10, "checkpoints": [0, 5]}, "a checkpoint must be"),
        ({"horizon": 10, "checkpoints": [2, 11]}, "checkpoints must lie between 1 and the horizon 10; got 11"),
        ({"horizon": 10, "checkpoints": [2.5]}, "a checkpoint must be a whole number"),
        ({"horizon": 10, "checkpoints": 10**9}, "at most 1,000,000"),
        ({"horizon": 1e4}, "horizon must be a whole number of at least 1; got 10000.0"),
        ({"horizon": True}, "horizon must be a whole number"),
        ({"horizon": "10"}, "horizon must be a whole number"),
        ({"horizon": 10, "replications": 2.0}, "replications must be a whole number"),
        ({"horizon": 10, "threads": 0}, "threads must be a whole number"),
        ({"horizon": 10, "delay": 10}, "no feedback arrives within the horizon"),
        ({"horizon": 10, "delay": 10**18}, "no feedback arrives within the horizon"),
        ({"horizon": 10**18, "delay": 10**15}, "GiB for open decisions"),
        ({"horizon": 10, "algorithms": []}, "no algorithm"),
        ({"horizon": 10, "algorithms": {"x": 3}}, "not an algorithm"),
        (
            {"horizon": 10, "algorithms": [bw.LCTsallisINF(tuning="certified"), bw.LCTsallisINF(tuning="certified")]},
            "same description",
        ),
    ],
)
def test_impossible_runs_are_refused(options: dict[str, Any], words: str) -> None:
    options = {"algorithms": bw.LCTsallisINF(tuning="certified"), **options}
    with pytest.raises(ValueError, match=words):
        simulate(WORLDS["stochastic"], **options)


def test_whole_numbers_of_numpy_are_whole_numbers(tmp_path: Path) -> None:
    numbers: dict[str, Any] = {"horizon": 50, "replications": 2, "delay": 3, "batch": 2, "checkpoints": 5, "rng": 4}
    plain = simulate(WORLDS["stochastic"], {"a": bw.FixedPolicy()}, **numbers)
    same: dict[str, Any] = {name: np.int32(number) for name, number in numbers.items()}
    theirs = simulate(WORLDS["stochastic"], {"a": bw.FixedPolicy()}, **same)
    theirs.save(tmp_path / "run.npz")  # the manifest is JSON
    assert theirs["a"].realised.tobytes() == plain["a"].realised.tobytes()
    with pytest.raises(ValueError, match="replication must be a whole number of at least 0; got -1"):
        replay(WORLDS["stochastic"], bw.FixedPolicy(), horizon=5, replication=-1)


def test_a_policy_played_in_python_leaves_what_it_learnt_and_no_path() -> None:
    algorithm = bw.LCTsallisINF(tuning="paper")
    fast = replay(WORLDS["stochastic"], algorithm, horizon=40, rng=3, interpreted=False)
    setting = Setting(environment=WORLDS["stochastic"], horizon=40, checkpoints=log_spaced(40), seed=3)
    slow = play_in_python(algorithm.start, setting, 0)
    assert slow.trace.shape == (0, 2)
    assert set(slow.final) == set(fast.final)
    assert slow.final["theta"] == pytest.approx(fast.final["theta"], rel=1e-12)
    own = en.from_function(INSTANCE.problem, lambda t, pi: INSTANCE.theta)
    assert simulate(own, {"a": algorithm}, horizon=40, replications=2)["a"].final["theta"].shape == (2, 3)


def test_a_summary_is_a_table_of_all_runs() -> None:
    algorithms = {"certified": bw.LCTsallisINF(tuning="certified"), "matched": bw.LCTsallisINF(tuning="matched")}
    results = simulate(WORLDS["adaptive"], algorithms, horizon=500, replications=5, checkpoints=[100])
    title, head, *rows = results.summary().splitlines()
    assert title == "adaptive adversary, round 500, 5 replications"
    assert head.split()[:4] == ["regret", "±", "95", "%"]
    half = mean_of(results["matched"].paths[:, -1]).half  # what pages and `show` print
    assert results["matched"].half_width[-1] == pytest.approx(half)
    best = min(algorithms, key=lambda label: results[label].regret[-1])
    assert rows[0].endswith(best)  # smallest first
    run = results[best]
    numbers = [float(word.replace(",", "")) for word in rows[0].split()[:-1]]
    expected = [run.regret[-1], run.half_width[-1], *run.quantiles([0.1, 0.5, 0.9])[:, -1]]
    expected += [run.regret_against_own_best[-1], run.dynamic_regret[-1], run.realised[:, -1].mean()]
    assert numbers == pytest.approx(expected, abs=0.051)
    assert results.summary(at=100).startswith("adaptive adversary, round 100")
    with pytest.raises(ValueError, match="round 99 is not a checkpoint"):
        results.summary(at=99)
    own = run.quantiles([0.0, 1.0], own_best=True)
    assert own[0] == pytest.approx((run.expected - run.own_best).min(axis=0))
    assert own[1] == pytest.approx((run.expected - run.own_best).max(axis=0))


def test_an_array_of_parameters_must_last_for_the_horizon() -> None:
    problem = random_problem(1)
    environment = en.given(problem, np.tile(parameters(problem), (20, 1)))
    with pytest.raises(ValueError, match="for 20 rounds, not for 30"):
        simulate(environment, bw.LCTsallisINF(tuning="certified"), horizon=30)
    results = simulate(environment, bw.LCTsallisINF(tuning="certified"), horizon=20)
    assert next(iter(results.runs.values())).regret[-1] > 0.0


def test_standard_errors_are_not_too_small_against_an_adaptive_nature() -> None:
    """The comparator is estimated from the same replications; the error must not leave that out."""
    regrets, errors = [], []
    for seed in range(24):
        results = simulate(
            WORLDS["adaptive"], bw.LCTsallisINF(tuning="matched"), horizon=400, replications=10, rng=seed
        )
        run = next(iter(results.runs.values()))
        regrets.append(run.regret[-1])
        errors.append(run.standard_error[-1])
    assert np.mean(errors) >= 0.8 * np.std(regrets, ddof=1)


def test_results_of_a_users_own_algorithm_can_be_saved(tmp_path: Path) -> None:
    results = simulate(WORLDS["stochastic"], {"own": PlainAlgorithm()}, horizon=20)
    results.save(tmp_path / "own.npz")
    assert load_results(tmp_path / "own.npz")["own"].regret == pytest.approx(results["own"].regret)


def test_learners_that_break_the_rules_are_stopped() -> None:
    class Half(Plain):
        def probabilities(self) -> Any:
            return 0.5 * super().probabilities()

    class Outside(Plain):
        def act(self, x: int) -> Any:
            return type("Choice", (), {"arm": -1})

    for learner, words in ((Half, "sum to 0.5"), (Outside, "not offered")):
        algorithm = type(
            "A", (), {"start": staticmethod(lambda problem, rng, learner=learner: learner(problem, rng))}
        )()
        with pytest.raises((ValueError, UserCodeError), match=words):
            simulate(WORLDS["stochastic"], {"bad": algorithm}, horizon=5)


def test_sums_do_not_drift_over_long_horizons() -> None:
    """The oracle's regret is zero up to rounding, even after a million rounds."""
    world = WORLDS["stochastic"]
    oracle = bw.FixedPolicy.always(world.comparator, 3, label="oracle")
    run = simulate(world, {"oracle": oracle}, horizon=1_000_000, checkpoints=2)["oracle"]
    assert abs(run.regret[-1]) <= 1e-8
