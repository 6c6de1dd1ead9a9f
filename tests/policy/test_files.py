"""Policies as files: they go on bit for bit, keep their options, and other files are refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.problem.file_format import read_arrays, write_arrays
from support.named_policies import make, snapshot
from support.problems import TUNINGS, play, random_problem


def test_a_spec_with_other_bits_starts_a_new_version(tmp_path: Path) -> None:
    """As on another machine: earlier decisions, with the fingerprint in the file, still take feedback."""
    policy = make("certified")
    decision = policy.act(0)
    policy.save(tmp_path / "p.npz")
    header, arrays = read_arrays(tmp_path / "p.npz")
    write_arrays(tmp_path / "p.npz", {**header, "fingerprint": "0" * 32, "short_fingerprint": "0" * 12}, arrays)
    loaded = bw.load(tmp_path / "p.npz")
    assert loaded.version == policy.version + 1
    loaded.update(decision._replace(fingerprint="0" * 12), loss=0.5)
    assert loaded.updates == policy.updates + 1


def test_late_feedback_of_a_file_and_of_what_it_has_lost(tmp_path: Path) -> None:
    """Saved at 50, decided to 100, loaded: nobody's feedback is taken for another's, and none is refused."""
    policy = make("matched")
    first = policy.act([i % 4 for i in range(50)])
    policy.save(tmp_path / "p.npz")
    lost = policy.act([i % 4 for i in range(50)])
    again, fresh = bw.load(tmp_path / "p.npz"), bw.load(tmp_path / "p.npz", stream="new")
    new = again.act([i % 4 for i in range(50)])
    assert [made.arm for made in new] == [made.arm for made in lost]  # bit for bit as they would have been
    assert [made.arm for made in fresh.act([i % 4 for i in range(50)])] != [made.arm for made in lost]
    assert not {made.id for made in new} & {made.id for made in (*first, *lost)}
    again.update([*lost, *first, *new], loss=[0.5] * 150)
    assert (again.updates, again.open_rounds) == (150, 0)
    for made in (lost[0], first[0], new[0]):
        with pytest.raises(ValueError, match="each decision takes feedback once"):
            again.update(made, loss=0.5)
    with pytest.raises(ValueError, match="stream must be 'same' or 'new'"):
        bw.load(tmp_path / "p.npz", stream="other")  # type: ignore[call-overload]


@pytest.mark.parametrize("tuning", TUNINGS)
def test_a_saved_policy_continues_bit_for_bit(tuning: str, tmp_path: Path) -> None:
    policy = make(tuning)
    play(policy, 37)
    waiting = policy.act("noon")
    path = tmp_path / "ads.npz"
    policy.save(path)
    line = json.dumps(waiting.to_dict())
    again = bw.load(path)
    assert snapshot(again) == snapshot(policy)
    assert again.algorithm == policy.algorithm
    assert again.problem == policy.problem
    for continued in (policy, again):
        continued.update(bw.Decision.from_dict(json.loads(line)), loss=0.125)
    assert play(policy, 50, seed=5) == play(again, 50, seed=5)
    assert snapshot(again) == snapshot(policy)


def test_saving_keeps_own_designs_resampling_and_options(tmp_path: Path) -> None:
    problem = random_problem(3)
    explore = bw.Design.of(problem, np.tile([0.5, 0.3, 0.2], (4, 1)))
    algorithm = bw.LCTsallisINF(alpha=0.4, tuning="paper", covariance=bw.MGR(samples=9), design=explore)
    policy = algorithm.start(problem, rng=1)
    play(policy, 5)
    policy.save(tmp_path / "p.npz")
    again = bw.load(tmp_path / "p.npz")
    assert play(policy, 20) == play(again, 20)
    assert isinstance(again.algorithm, bw.LCTsallisINF)
    assert again.algorithm.covariance == bw.MGR(samples=9)


@pytest.mark.parametrize(
    "algorithm",
    [
        bw.LCTsallisINF(alpha=np.float32(0.25), tuning=bw.Certified(c=np.float32(0.1), batch=np.int64(2))),  # type: ignore[arg-type]
        bw.LCTsallisINF(tuning="paper", covariance=bw.MGR(samples=np.int64(5))),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_numpy_numbers_as_options_survive_a_file(algorithm: bw.LCTsallisINF, tmp_path: Path) -> None:
    policy = algorithm.start(random_problem(3), rng=1)
    policy.save(tmp_path / "p.npz")
    assert bw.load(tmp_path / "p.npz").algorithm == algorithm


def test_badly_conditioned_features_with_rewards_survive_a_file(tmp_path: Path) -> None:
    phi = random_problem(6, S=8, K=4, d=3).features
    for off in (1e-8, 3e-10):
        wide = np.concatenate([phi, phi[:, :, :1] + off * np.random.default_rng(1).normal(size=(8, 4, 1))], axis=2)
        problem = bw.Problem(features=wide, probabilities=np.full(8, 1 / 8), reward_range=(0, 1))
        assert problem.with_probabilities(problem.probabilities) == problem
        policy = bw.LCTsallisINF(tuning="certified").start(problem, rng=1)
        policy.save(tmp_path / "p.npz")
        assert bw.load(tmp_path / "p.npz").problem == problem


def test_files_that_are_not_policies_are_refused(tmp_path: Path) -> None:
    policy = make()
    good = tmp_path / "good.npz"
    policy.save(good)
    cut = tmp_path / "cut.npz"
    cut.write_bytes(good.read_bytes()[:200])
    text = tmp_path / "text.npz"
    text.write_text("hello")
    problem = tmp_path / "problem.npz"
    policy.problem.save(problem)
    for path in (cut, text, problem):
        with pytest.raises(ValueError, match=str(path.name)):
            bw.load(path)
    with pytest.raises(FileNotFoundError, match="no such file"):
        bw.load(tmp_path / "none.npz")
    with pytest.raises(ValueError, match=r"saved as \.npz"):
        policy.save(tmp_path / "policy.pkl")


def test_files_of_another_kind_are_called_by_their_name(tmp_path: Path) -> None:
    policy = make()
    policy.save(tmp_path / "policy.npz")
    for name in ("ads.json", "ads.npz"):
        policy.problem.save(tmp_path / name)
        with pytest.raises(ValueError, match=rf"{name} holds a problem: read it with Problem\.load"):
            bw.load(tmp_path / name)
        with pytest.raises(ValueError, match="holds a problem"):
            bw.load_results(tmp_path / name)
    with pytest.raises(ValueError, match=r"holds a policy: read it with bothworlds\.load"):
        bw.Problem.load(tmp_path / "policy.npz")
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match="not a file written by this library"):
        bw.load(tmp_path / "other.json")
    (tmp_path / "ads.sqlite").write_bytes(b"SQLite format 3\0")
    with pytest.raises(ValueError, match=r"ads\.sqlite is not a file written .* the store of a service is read by"):
        bw.load(tmp_path / "ads.sqlite")


def edited(path: Path, arrays: dict[str, Any], **header: Any) -> Path:
    """Write a file of ours with other entries in its header, None for none, and other arrays."""
    with np.load(path) as archive:
        kept = {name: archive[name] for name in archive.files}
    told = {**json.loads(str(kept["header"])), **header}
    told = {name: value for name, value in told.items() if value is not None}
    changed = path.with_name("changed.npz")
    np.savez(changed, **{**kept, "header": np.array(json.dumps(told)), **arrays})
    return changed


READERS: dict[str, Callable[[Path], Any]] = {
    "policy.npz": lambda path: bw.load(path, interpreted=True),
    "plan.npz": lambda path: bw.load_plan(path, interpreted=True),
    "problem.npz": bw.Problem.load,
}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    problem = bw.Problem.from_sample(["day", "night"], arms=["red", "blue"], reward_range=(0, 1))
    policy = bw.FixedPolicy().start(problem, rng=1, interpreted=True)
    policy.save(tmp_path / "policy.npz")
    policy.plan().save(tmp_path / "plan.npz")
    problem.save(tmp_path / "problem.npz")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "header", "arrays"),
    [
        ("policy.npz", {"key": "x"}, {}),
        ("policy.npz", {"key": -1}, {}),
        ("policy.npz", {"rounds": []}, {}),
        ("policy.npz", {"session": 5}, {}),
        ("policy.npz", {"algorithm": "x"}, {}),
        ("policy.npz", {"lookup": 5}, {}),
        ("policy.npz", {}, {"open": np.array(3.0)}),
        ("policy.npz", {}, {"header": np.array("5")}),
        ("plan.npz", {"algorithm": 1.5}, {}),
        ("plan.npz", {"lookup": [[1]]}, {}),
        ("plan.npz", {}, {"header": np.array("[]")}),
        ("problem.npz", {"rows": 5}, {}),
        ("problem.npz", {}, {"header": np.array("null")}),
    ],
)
def test_files_with_what_cannot_stand_there_are_refused_in_a_sentence(
    name: str, header: dict[str, Any], arrays: dict[str, Any], saved: Path
) -> None:
    READERS[name](saved / name)
    with pytest.raises(ValueError, match=r"changed\.npz is (damaged|not a file written|not a complete problem)"):
        READERS[name](edited(saved / name, arrays, **header))


@pytest.mark.parametrize("part", ["digest", "policy", "version"])
def test_a_plan_is_not_renewed_from_half_a_file(part: str, saved: Path) -> None:
    plan = bw.load_plan(saved / "plan.npz", interpreted=True)
    with pytest.raises(ValueError, match=f"is incomplete: '{part}' is missing"):
        plan.renewed(edited(saved / "plan.npz", {}, **{part: None}))


def test_an_array_of_numpy_is_no_file_of_ours(saved: Path) -> None:
    with (saved / "array.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    for read in READERS.values():
        with pytest.raises(ValueError, match="is not a file written by this library"):
            read(saved / "array.npz")
