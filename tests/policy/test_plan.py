"""Plans: the same decisions as the policy's, in threads, in files, and computed again."""

import copy
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import bothworlds as bw
from bothworlds.kernels.random import ARM, draw, two_uniforms
from bothworlds.policy.ids import KeyedRandom
from support.problems import TUNINGS, play, random_problem
from support.soak import size

ALGORITHMS: list[Any] = [
    *(bw.LCTsallisINF(tuning=tuning) for tuning in TUNINGS),  # type: ignore[arg-type]
    bw.LCTsallisINF(tuning="paper", covariance=bw.MGR(samples=9)),
    bw.LinTS(),
    bw.DLinUCB(),
    bw.SWLinUCB(),
    bw.SquareCB(),
    bw.PerContextTsallisINF(),
    bw.BoBWLinearEXP4(horizon=1000),
]
NAMES: dict[str, Any] = {"contexts": ["morning", "noon", "evening", "night"], "arms": ["red", "blue", "green"]}


def make(tuning: Any = "matched", **options: Any) -> bw.Policy:
    problem = random_problem(3, **{**NAMES, **options})
    policy = bw.LCTsallisINF(tuning=tuning).start(problem, rng=7)
    play(policy, 20)
    return policy


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda made: type(made).__name__)
def test_a_plan_decides_what_its_policy_would(algorithm: Any, tmp_path: Path) -> None:
    """With the same random numbers: the arm, and all that the decision carries, bit for bit; and so from a file."""
    policy = algorithm.start(random_problem(3, S=9), rng=7, interpreted=True)
    play(policy, 12)
    plan = policy.plan()
    plan.save(tmp_path / "plan.npz")
    read = bw.load_plan(tmp_path / "plan.npz", interpreted=True)
    assert (read.version, read.digest, plan.version) == (12, plan.digest, policy.updates)
    assert plan.probabilities().tobytes() == policy.probabilities().tobytes() == read.probabilities().tobytes()
    decisions = [plan.act(i % 9, id=f"visit {i}") for i in range(20)]
    for i, made in enumerate(decisions):
        direction, baseline = np.empty(len(made.direction)), np.empty(policy._spec.carried[1])
        lot = KeyedRandom(plan.secret).key_and_time(made.id)
        arm = policy._spec.entries.act(
            *policy._learner_state.body, policy._learner_state.side, i % 9, *lot, direction, baseline
        )
        assert (arm, direction.tobytes()) == (made.arm, made.direction.tobytes())
        assert made.baseline is None or made.baseline.tobytes() == baseline.tobytes()
        assert made.propensity == policy.probabilities(i % 9)[made.arm]
        assert read.confirms(made)
    columns = plan.redecide_batch([i % 9 for i in range(20)], [made.id for made in decisions])
    assert [columns.arms.tolist(), columns.propensities.tolist()] == [
        [made.arm for made in decisions],
        [made.propensity for made in decisions],
    ]
    assert columns.directions.tobytes() == b"".join(made.direction.tobytes() for made in decisions)
    assert not policy._spec.has_baseline or columns.baselines.tobytes() == b"".join(
        made.baseline.tobytes() for made in decisions if made.baseline is not None
    )
    policy.update(decisions, loss=[0.5] * 20)
    assert not any(policy.accepts(made) for made in decisions)


@pytest.mark.parametrize("count", [1, 5, 40])
def test_columns_are_learnt_as_decisions_are(count: int, tmp_path: Path) -> None:
    policy = make()
    policy.save(tmp_path / "policy.npz")
    other = bw.load(tmp_path / "policy.npz")
    plan, ids = policy.plan(), [f"visit {i}" for i in range(count)]
    losses = np.linspace(-1.0, 1.0, count).tolist()
    policy.learn([plan.act(i % 4, id=name) for i, name in enumerate(ids)], loss=losses)
    columns = plan.redecide_batch([i % 4 for i in range(count)], ids)
    damaged = columns._replace(propensities=np.full(count, 2.0))
    with pytest.raises(ValueError, match="of decision 0 of the batch is damaged; nothing was learned"):
        other.learn(damaged, loss=losses)
    with pytest.raises(ValueError, match="one for each value, must have shapes"):
        other.learn(columns, loss=[*losses, 0.0])
    for off in (-1, 99):
        for name in ("contexts", "arms"):
            with pytest.raises(ValueError, match="must be numbers from 0 to"):
                other.learn(columns._replace(**{name: np.full(count, off)}), loss=losses)
    other.learn(columns, loss=losses)
    assert (other.version, other.digest) == (policy.version, policy.digest)
    assert str(other.health()) == str(policy.health())


def test_the_draw_is_that_of_the_id() -> None:
    plan = make().plan()
    for i in range(50):
        made = plan.act("noon", id=f"visit {i}")
        u, _ = two_uniforms(*KeyedRandom(plan.secret).key_and_time(f"visit {i}"), ARM, 0)
        assert made.arm == draw(plan.probabilities("noon"), u)


@pytest.mark.parametrize("given", [True, False])
def test_arms_are_drawn_with_their_propensities(given: bool) -> None:
    plan = make("certified").plan()
    names = [f"visit {i}" if given else None for i in range(5000)]
    counts = np.bincount([plan.act(1, id=name).arm for name in names], minlength=3)
    found = chisquare(counts, 5000 * plan.probabilities(1)).pvalue
    assert found > (0.01 if given else 1e-9)  # 0.4 with these ids; made ones are random, so that it may be anything


def test_a_plan_does_not_change_while_its_policy_learns() -> None:
    policy = make()
    plan = policy.plan()
    assert policy.plan() is plan
    before, made = plan.probabilities(), plan.act("noon", id="visit")
    play(policy, 50, seed=9)
    assert plan.probabilities().tobytes() == before.tobytes() != policy.probabilities().tobytes()
    assert plan.confirms(made)
    assert (plan.version, policy.plan().version) == (20, 70)
    with pytest.raises(ValueError, match="the decision is of version 20 of policy"):
        policy.plan().confirms(made)
    assert not plan.confirms(made._replace(arm=(made.arm + 1) % 3))
    with pytest.raises(AttributeError):
        plan.version = 3  # type: ignore[misc]
    plan.probabilities()[...] = 0.0
    assert plan.probabilities().tobytes() == before.tobytes()


def test_small_files_and_their_frame(tmp_path: Path) -> None:
    policy = make()
    policy.plan().save(tmp_path / "plan.npz")
    server = bw.load_plan(tmp_path / "plan.npz")
    play(policy, 5, seed=4)
    policy.plan().save(tmp_path / "newest.npz", frame=False)
    assert (tmp_path / "newest.npz").stat().st_size < (tmp_path / "plan.npz").stat().st_size
    newer = server.renewed(tmp_path / "newest.npz")
    assert (newer.version, newer.digest) == (25, policy.digest)
    assert newer.renewed(tmp_path / "newest.npz") is newer
    assert newer.probabilities().tobytes() == policy.probabilities().tobytes()
    assert bw.load_plan(tmp_path / "newest.npz", frame=tmp_path / "plan.npz").digest == policy.digest
    with pytest.raises(ValueError, match="saved without its frame"):
        bw.load_plan(tmp_path / "newest.npz")
    make("paper").plan().save(tmp_path / "other.npz")
    with pytest.raises(ValueError, match="is not the frame of"):
        bw.load_plan(tmp_path / "newest.npz", frame=tmp_path / "other.npz")
    with pytest.raises(ValueError, match="a plan for another problem or algorithm"):
        server.renewed(tmp_path / "other.npz")
    with pytest.raises(ValueError, match=r"saved as \.npz"):
        server.save(tmp_path / "plan.json")
    policy.save(tmp_path / "policy.npz", frame=False)
    again = bw.load(tmp_path / "policy.npz", frame=tmp_path / "plan.npz")
    assert again.digest == policy.digest
    with pytest.raises(ValueError, match="holds a plan: read it with"):
        bw.load(tmp_path / "plan.npz")


def test_a_plan_is_renewed_by_those_of_its_policy(tmp_path: Path) -> None:
    policy = make()
    server = policy.plan()
    policy.renumber(policy.version + 5)
    policy.plan().save(tmp_path / "later.npz", frame=False)
    later = server.renewed(tmp_path / "later.npz")
    assert (later.version, later.digest) == (server.version + 5, server.digest)
    assert later.renewed(tmp_path / "later.npz") is later
    other = policy.copy()  # which has learnt the same
    for frame in (False, True):
        other.plan().save(tmp_path / "other.npz", frame=frame)
        with pytest.raises(ValueError, match=f"a plan of policy '{other.name}', but this is a plan of '{policy.name}'"):
            server.renewed(tmp_path / "other.npz")


def test_a_damaged_plan_is_refused(tmp_path: Path) -> None:
    plan = make().plan()
    damaged = plan.learnt()
    damaged["theta"][0] += 1e-9
    with np.load(_saved(plan, tmp_path)) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(tmp_path / "damaged.npz", **{**arrays, "learnt.theta": damaged["theta"]})
    with pytest.raises(ValueError, match=r"damaged\.npz is damaged"):
        bw.load_plan(tmp_path / "damaged.npz")


def _saved(plan: bw.Plan, folder: Path) -> Path:
    plan.save(folder / "saved.npz")
    return folder / "saved.npz"


def test_the_digest_is_of_what_is_learnt_and_nothing_else() -> None:
    """Nine contexts fill two blocks of eight: what lies beyond the ninth does not count."""
    one, two = (bw.LCTsallisINF(tuning="matched").start(random_problem(3, S=9), rng=seed) for seed in (1, 2))
    decisions = one.act([0, 8, 4])
    for policy in (one, two):
        policy.learn([made._replace(policy=policy.name) for made in decisions], loss=[0.5, -0.5, 1.0])
    assert one.digest == two.digest
    two._learner_state.state.start[1, 3] = 7.0  # context 11, which there is not
    two._plan = None
    assert one.digest == two.digest
    one.learn(one.act([1]), loss=[0.5])
    assert one.digest != two.digest
    assert bw.LCTsallisINF().start(random_problem(3), rng=1).digest != bw.LinUCB().start(random_problem(3)).digest


def test_policies_are_not_copied_like_data() -> None:
    policy = make()
    for how in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=r"policy\.copy\(\)"):
            how(policy)
    with pytest.raises(TypeError, match="a plan cannot be pickled"):
        pickle.dumps(policy.plan())


def test_given_ids_in_a_policy() -> None:
    policy = make()
    made = policy.act("noon", id="visit 9")
    assert (made.id, made.round, policy.rounds, policy.open_rounds) == ("visit 9", 0, 20, 0)
    policy.update(made, loss=0.25)
    with pytest.raises(ValueError, match="decision 'visit 9' was answered; each decision takes feedback once"):
        policy.update(policy.act("noon", id="visit 9"), loss=0.25)
    with pytest.raises(ValueError, match="id= takes exactly one context"):
        policy.act(["noon"], id="visit 10")  # type: ignore[call-overload]


def decide_in_threads(threads: int, each: int) -> None:
    """Decisions of all threads while another learns; then all of them again, one after the other."""
    policy = bw.LCTsallisINF(tuning="matched").start(random_problem(1, S=20, K=6, d=6), rng=7)
    plans, found = {0: policy.plan()}, [list[bw.Decision]() for _ in range(threads)]
    deciding, has_learnt = threading.Event(), threading.Event()
    deciding.set()
    newest = [policy.plan()]

    def learn() -> None:
        rng = np.random.default_rng(3)
        while deciding.is_set():
            made = newest[0].act(int(rng.integers(20)))
            policy.update(made, loss=float(rng.uniform(-1, 1)))
            policy.update(policy.act([0, 1, 2]), loss=[0.5, -0.5, 0.25])
            newest[0] = policy.plan()
            plans[newest[0].version] = newest[0]
            has_learnt.set()

    def decide(own: list[bw.Decision], number: int) -> None:
        for i in range(each):
            if i == each // 2:
                has_learnt.wait()
            own.append(newest[0].act((number + i) % 20, id=None if i % 2 else f"{number}, {i}"))

    learner = threading.Thread(target=learn)
    workers = [threading.Thread(target=decide, args=(own, number)) for number, own in enumerate(found)]
    for thread in (learner, *workers):
        thread.start()
    for worker in workers:
        worker.join()
    deciding.clear()
    learner.join()
    everything = [made for own in found for made in own]
    assert len({made.id for made in everything}) == threads * each
    versions = {made.version for made in everything}
    assert len(versions) > 1  # it has learnt meanwhile
    for made in everything:
        assert plans[made.version].confirms(made)


def test_a_plan_in_threads() -> None:
    decide_in_threads(4, 500)


@pytest.mark.soak
def test_a_million_decisions_in_eight_threads() -> None:
    decide_in_threads(8, size(2_500, 125_000))


def test_a_policy_in_threads() -> None:
    """Nothing is lost, and what is learnt is right: without a lock 8 threads lost 16 to 227 of 2,400 updates."""
    policy = bw.LCTsallisINF(tuning="certified").start(random_problem(1, S=20, K=6, d=6), rng=7)
    taken: list[list[tuple[bw.Decision, float]]] = [[] for _ in range(8)]

    def work(own: list[tuple[bw.Decision, float]], number: int) -> None:
        for i in range(300):
            made, loss = policy.act((number + i) % 20), (-1.0) ** i
            policy.update(made, loss=loss)
            own.append((made, loss))

    threads = [threading.Thread(target=work, args=(own, number)) for number, own in enumerate(taken)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pairs = [pair for own in taken for pair in own]
    assert (policy.rounds, policy.updates, policy.open_rounds) == (2400, 2400, 0)
    assert len({made.id for made, _ in pairs}) == len({made.round for made, _ in pairs}) == 2400
    total = sum(loss * made.direction for made, loss in pairs)
    assert policy.state.theta == pytest.approx(total, rel=1e-9, abs=1e-9)
