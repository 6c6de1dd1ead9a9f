"""Common first mistakes: early rewards, rewards of other types, repeated rows, tables in another order."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.evaluation import Logged, evaluate
from bothworlds.logs import Log, LogLearner, Reward, Row, from_records, health, joined, read, row_of, write
from bothworlds.logs import log_learner as learner_text

PROBLEM = bw.Problem.from_sample(["mobile", "desktop"], arms=["red", "blue"], reward_range=(0, 1))


def answers(found: Any) -> tuple[int, float]:
    """Return the number of rewards in a health report, and their sum."""
    return sum(arm.answers for arm in found.arms), sum(arm.mean * arm.answers for arm in found.arms if arm.answers)


def decided(count: int, log: Log, *, early: Any = ()) -> bw.Policy:
    """Return a policy after logging decisions of its plan, some of them after their rewards."""
    policy = bw.LCTsallisINF().start(PROBLEM, rng=1, interpreted=True)
    policy.save("start.npz")
    plan = policy.plan()
    for i in range(count):
        made = plan.act(i % 2, id=f"visit {i}")
        records = [row_of(made, plan, time=1.0), Reward(id=made.id, time=2.0, reward=float(i % 3 == 0))]
        log.append(*(reversed(records) if i in early else records))
    return policy


@pytest.mark.parametrize("early", [(), range(20), range(0, 20, 2)])
def test_rewards_before_their_decisions_are_learned_and_reproduced(early: Any) -> None:
    log = Log("visits.jsonl")
    policy = decided(20, log, early=early)
    learner = LogLearner(policy, log, batch_size=7)
    assert [learner.step() for _ in range(4)] == [7, 7, 6, 0]
    assert learner.waiting == 0
    again: Any = bw.load("start.npz", interpreted=True)
    assert LogLearner(again, log).step() == 0
    assert again.plan().digest == policy.plan().digest
    assert (policy.updates, again.updates) == (20, 20)


@pytest.mark.parametrize(("room", "learnt"), [(1 << 24, 3), (600, 1), (10, 0)])
def test_early_rewards_are_kept_for_a_while_and_reproduced(
    room: int, learnt: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This depends on positions in the log only, not on what was learned before."""
    monkeypatch.setattr(learner_text, "EARLY_BYTES", room)
    log = Log("visits.jsonl")
    policy: Any = bw.LCTsallisINF().start(PROBLEM, rng=1, interpreted=True)
    policy.save("start.npz")
    plan, learner = policy.plan(), LogLearner(policy, log)
    made = [plan.act("mobile", id=f"visit {i}") for i in range(3)]
    log.append(*(Reward(id=one.id, time=1.0, reward=1.0) for one in made))
    between = [plan.act("mobile", id=f"other {i}") for i in range(3)]
    for one in between if room > 600 else []:
        log.append(row_of(one, plan, time=1.0), Reward(id=one.id, time=1.0, reward=0.0))
    more = learner.step()
    policy.save("later.npz")
    log.append(*(row_of(one, plan, time=2.0) for one in made[::-1]))
    assert learner.step() == learnt
    for file in ("start.npz", "later.npz"):
        again: Any = bw.load(file, interpreted=True)
        assert LogLearner(again, log).step() == 0
        assert (again.updates, again.plan().digest) == (more + learnt, policy.plan().digest)


@pytest.mark.parametrize("order", ["drrd", "drdr", "rdrd", "rrdd", "ddrr"])
def test_repeated_records_are_learned_once(order: str) -> None:
    log = Log("visits.jsonl")
    policy = bw.LCTsallisINF().start(PROBLEM, rng=1, interpreted=True)
    plan = policy.plan()
    made = plan.act("mobile")
    records: Any = {"d": row_of(made, plan, time=1.0), "r": Reward(id=made.id, time=1.0, reward=1.0)}
    log.append(*(records[kind] for kind in order))
    learner = LogLearner(policy, log)
    assert [learner.step(), learner.step(), policy.updates] == [1, 0, 1]


def test_of_early_rewards_the_first_valid_one_counts() -> None:
    log = Log("visits.jsonl")
    policy = bw.LCTsallisINF().start(PROBLEM, rng=1, interpreted=True)
    plan = policy.plan()
    made = plan.act("mobile")
    log.append(
        *(Reward(id=made.id, time=1.0, reward=reward) for reward in (5.0, 1.0, 0.0)), row_of(made, plan, time=2.0)
    )
    assert LogLearner(policy, log).step() == 1
    assert answers(policy.health()) == (1, 1.0)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, int, float, np.bool_, bool])
def test_rewards_are_numbers_of_any_type(kind: Any) -> None:
    log = Log("clicks.jsonl")
    log.append(Reward(id="a", time=5, reward=kind(1)))
    [(record, _)] = log.read()
    assert record == Reward(id="a", time=5.0, reward=1.0)


@pytest.mark.parametrize("reward", [None, "1", 1j, [1.0]])
def test_rewards_that_are_not_numbers_are_refused(reward: Any) -> None:
    with pytest.raises(ValueError, match="the reward of 'a' must be a number; got"):
        Reward(id="a", time=5.0, reward=reward)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": 5}, "the id of a reward must be a text with at least one character; got 5"),
        ({"id": ""}, "the id of a reward must be a text with at least one character; got ''"),
        ({"id": None}, "the id of a reward must be a text"),
        ({"time": float("nan")}, "the time of 'a' must be a finite number; got nan"),
        ({"time": 10**400}, "the time of 'a' must be a finite number; got inf"),
    ],
)
def test_a_reward_with_an_invalid_id_or_time_is_refused(changes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Reward(**{"id": "a", "time": 5.0, "reward": 1.0, **changes})


@pytest.mark.parametrize("strange", ['"id": 5, "time": 1.0', '"id": "", "time": 1.0', '"id": "visit 0", "time": NaN'])
@pytest.mark.parametrize("piece", [b"", b'{"schema": "bothworlds-log-1", "kind": "rew'])
def test_invalid_rewards_are_ignored_unless_strict(strange: str, piece: bytes) -> None:
    """Other programs may write such lines."""
    log = Log("visits.jsonl")
    line = f'{{"schema": "bothworlds-log-1", "kind": "reward", {strange}, "reward": 0.5}}\n'
    log.path.write_bytes(piece + line.encode())
    policy = decided(4, log)
    assert LogLearner(policy, log).step() == 4
    assert Logged.from_log(PROBLEM, log).rows == 4
    with pytest.raises(ValueError, match=r"visits.jsonl, row 1: (the (id|time) of|a fragment of a line)"):
        list(read(log.path))


def test_a_decision_must_be_converted_to_a_row() -> None:
    made: Any = bw.LCTsallisINF().start(PROBLEM, rng=1, interpreted=True).act("mobile")
    with pytest.raises(ValueError, match=r"got Decision; bothworlds.logs.row_of\(decision, plan\) makes a row"):
        Log("visits.jsonl").append(made)
    assert not Path("visits.jsonl").exists()


def test_health_counts_the_learned_reward() -> None:
    log = Log("visits.jsonl")
    policy = bw.LCTsallisINF().start(PROBLEM, rng=1, interpreted=True)
    plan = policy.plan()
    made = [plan.act(i % 2, id=f"visit {i}") for i in range(20)]
    log.append(*(row_of(one, plan, time=1.0) for one in made), Reward(id="visit 3", time=2.0, reward=5.0))
    log.append(*(Reward(id=one.id, time=2.0, reward=i % 2) for i, one in enumerate(made)))
    with pytest.warns(UserWarning, match=r"5.0 is outside \[0, 1\]"):
        assert LogLearner(policy, log).step() == 20
    assert answers(policy.health()) == answers(health(log, PROBLEM)) == (20, 10.0)
    rows = list(joined((record for record, _ in log.read()), reward_range=(0, 1)))
    assert bw.Prior.from_rows(PROBLEM, rows).rounds == 20


def logged_rows(count: int) -> list[Row]:
    rng = np.random.default_rng(1)
    return [
        Row(id=str(i), context="mobile", arm=str(rng.choice(["red", "blue"])), propensity=0.5, reward=float(i % 2))
        for i in range(count)
    ]


def test_a_log_is_evaluated_since_the_last_change() -> None:
    """A server that has not loaded the change still decides on the earlier problem."""
    log = Log("visits.jsonl")
    policy = decided(10, log)
    learner = LogLearner(policy, log)
    learner.catch_up()
    stale = policy.plan()
    problem = bw.Problem.from_sample(["mobile", "desktop"], arms=["blue", "green"], reward_range=(0, 1))
    learner.change(problem)
    log.append(row_of(stale.act("mobile", id="stale"), stale, time=1.0))
    plan = policy.plan()
    for i in range(6):
        made = plan.act(i % 2, id=f"later {i}")
        log.append(row_of(made, plan, time=1.0), Reward(id=made.id, time=1.0, reward=1.0))
    found = Logged.from_log(policy.problem, log)
    assert found.rows == 6
    assert evaluate(found, {"logging": plan})["logging"].value == pytest.approx(1.0, abs=0.5)


def test_of_several_rewards_the_last_in_the_range_is_evaluated() -> None:
    log = Log("visits.jsonl")
    decided(3, log)
    log.append(*(Reward(id="visit 1", time=3.0, reward=reward) for reward in (0.25, 7.0, -3.0)))
    assert Logged.from_log(PROBLEM, log).reward.tolist() == [1.0, 0.25, 0.0]
    write([replace(row, reward=0.5) for row in logged_rows(2)], "rows.jsonl")
    rows = Log("rows.jsonl")
    rows.append(Reward(id="1", time=1.0, reward=7.0))
    assert Logged.from_log(PROBLEM, rows).reward.tolist() == [0.5, 0.5]
    write([replace(row, reward=None) for row in logged_rows(2)], "rows.jsonl")
    rows.append(Reward(id="1", time=1.0, reward=7.0))
    for missing in ("refuse", 0):
        with pytest.raises(ValueError, match=r"row '1': reward 7.0 is not in \[0, 1\]"):
            Logged.from_log(PROBLEM, rows, missing=missing)


def test_rows_that_do_not_fit_the_problem_are_named_by_their_ids() -> None:
    first, second = logged_rows(2)
    for changes, message in (
        ({"context": "noon"}, "row '1': unknown context 'noon'"),
        ({"reward": 3.0}, "row '1': rew"),
    ):
        with pytest.raises(ValueError, match=message):
            Logged.from_rows(PROBLEM, [first, replace(second, **changes)])


def test_a_decision_counts_once() -> None:
    rows = logged_rows(50)
    assert Logged.from_rows(PROBLEM, rows).rows == 50
    with pytest.raises(ValueError, match="id '0' occurs twice"):
        Logged.from_rows(PROBLEM, rows * 2)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pd.DataFrame({"arm": ["red"]}), r"rows must be bothworlds\.logs\.Row.*got str"),
        ([{"arm": "red"}], "got dict"),
        ([Row(id="1", arm="red", propensity=0.5)], "row '1' has no context"),
        ([Row(id="1", arm="red", propensity=0.5, features=((1.0,),))], "row '1' has features and no context"),
        (
            [Row(id="1", context="mobile", arm="red", propensity=0.5, offered=("red", "blue"), probabilities=(0.5,))],
            "row '1' has 1 probabilities for 2 arms offered",
        ),
    ],
)
def test_objects_that_are_not_valid_rows_are_refused(rows: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Logged.from_rows(PROBLEM, rows)


def test_named_tables_are_matched_by_name() -> None:
    """A pivot table has them in alphabetical order."""
    long: Any = pd.DataFrame({"device": ["mobile", "desktop"], "arm": ["red", "blue"], "p": [1.0, 1.0]})
    table = long.pivot_table(index="device", columns="arm", values="p", fill_value=0.0)
    assert list(table.columns) == ["blue", "red"]
    assert bw.FixedPolicy(table).start(PROBLEM, rng=1).probabilities("mobile").tolist() == [1.0, 0.0]
    logged = Logged.from_rows(PROBLEM, logged_rows(400))
    found = evaluate(logged, {"named": table, "placed": [[1.0, 0.0], [0.0, 1.0]]})
    assert found["named"].value == found["placed"].value
    with pytest.raises(ValueError, match="each column of the table is the name of one arm; 'green' is no arm"):
        evaluate(logged, {"named": table.rename(columns={"red": "green"})})
    with pytest.raises(ValueError, match="each row of the table is the name of one context; 'desktop' is missing"):
        bw.FixedPolicy(table.rename(index={"desktop": "mobile"})).start(PROBLEM, rng=1)


def test_a_multiindex_names_contexts_and_a_plain_integer_index_does_not() -> None:
    sample = pd.DataFrame({"device": ["m", "d"], "country": ["fr", "de"]})
    problem = bw.Problem.from_sample(sample, arms=["red", "blue"], reward_range=(0, 1))
    long: Any = sample.assign(red=[1.0, 0.0], blue=[0.0, 1.0]).set_index(["device", "country"]).sort_index()
    for table in (long, long.iloc[::-1].set_axis([7, 3], axis=0), long.iloc[::-1].set_axis([7, 3], axis=0).to_numpy()):
        assert bw.FixedPolicy(table).start(problem, rng=1).probabilities(("m", "fr")).tolist() == [1.0, 0.0]


def test_a_default_index_does_not_name_contexts() -> None:
    """Even if contexts are named 0, 1 and 5."""
    problem = bw.Problem.from_sample([0, 1, 5], arms=["red", "blue"], reward_range=(0, 1))
    table: Any = pd.DataFrame([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]])
    assert bw.FixedPolicy(table).start(problem, rng=1).probabilities().tolist() == table.to_numpy().tolist()


def test_a_function_is_refused_as_a_policy() -> None:
    with pytest.raises(ValueError, match="is a function; a policy to evaluate is a table"):
        evaluate(Logged.from_rows(PROBLEM, logged_rows(10)), {"mine": len})


def test_a_table_may_be_a_data_frame() -> None:
    frame: Any = pd.DataFrame({"device": ["mobile"], "banner": ["red"], "click": [1], "p": [0.25]})
    [row] = from_records(frame, context="device", arm="banner", reward="click", propensity="p")
    assert (row.context, row.arm, row.reward, row.propensity) == ("mobile", "red", 1.0, 0.25)
    with pytest.raises(ValueError, match="two columns are called 'banner'"):
        list(from_records(pd.concat([frame, frame[["banner"]]], axis=1), arm="banner", propensity="p"))


@pytest.mark.parametrize("kind", [bool, "boolean", object])
def test_a_click_may_be_true_or_false(kind: Any) -> None:
    frame: Any = pd.DataFrame({"banner": ["red", "blue"], "click": pd.Series([True, False], dtype=kind), "p": 0.5})
    assert [row.reward for row in from_records(frame, arm="banner", reward="click", propensity="p")] == [1.0, 0.0]
    with pytest.raises(ValueError, match=r"True is not a number"):
        list(from_records([{"banner": "red", "p": True}], arm="banner", propensity="p"))


def test_missing_values_of_pandas_are_missing() -> None:
    columns: Any = {"context": ["mobile"] * 2, "arm": ["red", "blue"], "propensity": [0.5, 0.5]}
    for reward in (pd.array([1, None], dtype="Int64"), pd.Series([1, pd.NA], dtype=object).to_numpy()):
        assert Logged.from_columns(PROBLEM, **columns, reward=reward, missing=0).reward.tolist() == [1.0, 0.0]
    known: Any = (pd.array([True, False], dtype="boolean"), [True, 0], np.array([1, 0]))
    for held in known:
        made = Logged.from_columns(PROBLEM, **columns, reward=[1, 0], holdout=held)
        assert made.holdout.tolist() == [True, False]
    partly: Any = (pd.array([True, None], dtype="boolean"), np.array([True, pd.NA], dtype=object), [True, None])
    for held in partly:
        with pytest.raises(ValueError, match="holdout must be true or false in every row"):
            Logged.from_columns(PROBLEM, **columns, reward=[1, 0], holdout=held)


def test_options_missing_for_a_csv_are_named() -> None:
    Path("log.csv").write_text("device;banner;p\nmobile;red;0.5\n", encoding="utf-8")
    with pytest.raises(ValueError, match="arm= is missing: name the column"):
        list(read("log.csv"))
    with pytest.raises(ValueError, match='Columns must be separated by commas: pass delimiter=";", or use'):
        list(read("log.csv", arm="banner", propensity="p"))
    assert [row.arm for row in read("log.csv", arm="banner", propensity="p", delimiter=";")] == ["red"]
    Path("log.csv").write_text("device\tbanner\tp\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r'pass delimiter="\\t"'):
        list(read("log.csv", arm="banner", propensity="p"))


def test_what_is_no_world_and_no_algorithm_is_told() -> None:
    instance: Any = en.random_instance(contexts=2, arms=2, dimension=2, gap=0.2, seed=1)
    with pytest.raises(ValueError, match=r"expected an environment, got Instance.*stochastic\(instance\)"):
        bw.simulate(instance, bw.LCTsallisINF(), horizon=10)
    rounds: Any = 5
    with pytest.raises(ValueError, match="changes must be a list of rounds"):
        en.clicks(changes=rounds)
    name: Any = "matched"
    with pytest.raises(ValueError, match=r"an algorithm is an object such as .*; got 'matched'"):
        bw.warm_up(PROBLEM, name)


def test_times_without_a_zone_say_what_a_command_needs() -> None:
    Path("log.csv").write_text("device,banner,p,at\nmobile,red,0.5,2026-01-05 12:00\n", encoding="utf-8")
    columns = {"context": "device", "arm": "banner", "propensity": "p", "time": "at"}
    with pytest.raises(ValueError, match=r"give zone='UTC' or another one \(of a command: --column zone=UTC\)"):
        list(read("log.csv", **columns))
    [row] = read("log.csv", **columns, zone="UTC")
    assert row.time == 1767614400.0
