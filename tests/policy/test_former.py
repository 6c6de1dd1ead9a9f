"""Policies that the adaptive tuning has left in files: it is gone, and the matched one goes on with them.

tests/shared/saved has a policy of that tuning under a second law of contexts, with a holdout and ten decisions that
wait, the lines of those and of one of its plan, the plan, and a policy with another alpha.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.policy.footing import section
from bothworlds.problem.storage import read_arrays, write_arrays
from bothworlds.service.experiment import restored
from bothworlds.service.exporting import Epochs
from bothworlds.service.records import Frame, Snapshot
from bothworlds.service.sqlite import SQLiteStore

SAVED = Path(__file__).parents[1] / "shared" / "saved"
FILE = SAVED / "adaptive-today.npz"
SAYS = "was saved with the adaptive tuning, which is gone: the matched tuning goes on with what it has learnt"


def waiting() -> list[bw.Decision]:
    lines = (SAVED / "adaptive-today.jsonl").read_text(encoding="utf-8").splitlines()
    return [bw.Decision.from_dict(json.loads(line)) for line in lines]


def loaded(path: Path = FILE) -> bw.Policy:
    with pytest.warns(UserWarning, match=SAYS) as told:
        policy = bw.load(path, interpreted=True)
    assert [Path(one.filename).name for one in told] == [Path(__file__).name]
    return policy


def test_it_goes_on_with_what_was_learnt() -> None:
    header, arrays = read_arrays(FILE)
    learnt, policy = section(arrays, "learnt"), loaded()
    assert policy.algorithm == bw.LCTsallisINF()
    for name in ("t", "theta", "ridge", "response", "start", "start_rate"):
        np.testing.assert_array_equal(policy.learnt()[name], learnt[name])
    assert (policy.name, policy.updates, policy.rounds) == (header["name"], header["updates"], 60)
    assert policy.version == header["version"] + 1  # another plan than the one of that version
    assert policy.problem.probabilities.tolist() == [0.5, 0.3, 0.2]
    assert sum(rate.decisions for rate in policy.health().arms) == 60 - 11  # those held out are counted apart


def test_the_learning_rate_is_the_one_of_the_last_plan() -> None:
    """eta = 1.2 K^(1/4)/sqrt(d) (1 + n)^-0.6, with the options of the file."""
    noisy = float(read_arrays(FILE)[1]["learnt.noisy"][0])
    eta = 1.2 * 3.0**0.25 / 3.0 * (1.0 + noisy) ** -0.6
    assert noisy > 1.0
    assert loaded().state.rates[0] == pytest.approx(eta, rel=1e-12)


def test_its_rounds_count_as_far_as_they_had_not_faded() -> None:
    """That tuning had its estimates fade: Theta is what was left of the rounds."""
    header, arrays = read_arrays(FILE)
    learnt = loaded().learnt()
    left = (float(arrays["learnt.t"][0]) - 1.0) / (1.0 + header["algorithm"]["tuning"]["recency"])
    assert 0.0 < left < float(learnt["t"][0]) - 1.0
    assert learnt["counted"][0] == pytest.approx(left)
    assert loaded().prior().rounds == pytest.approx(left)


def test_decisions_that_wait_are_learnt_with_what_they_carry() -> None:
    """Theta by hand: of each the estimate, with the direction and the prediction of its moment."""
    policy, z = loaded(), loaded()._machine.known.z
    first, theta = policy._books.history.epochs[0], policy.state.theta.copy()
    assert (policy.open_rounds, len(first.matrix)) == (10, 9)
    for made in waiting():
        policy.update(made, reward=1)
        if made.holdout:
            continue
        assert made.baseline is not None
        matrix = first.matrix if made.footing == first.footing else np.eye(9)
        m, direction = made.baseline @ matrix, made.direction @ matrix
        residual = policy.problem.loss_of(1.0) - z[made.context, made.arm] @ m
        theta = theta + m + direction * residual
    assert policy.state.theta == pytest.approx(theta, rel=1e-9)
    assert (policy.open_rounds, policy.updates) == (0, 50)
    with pytest.raises(ValueError, match="each decision takes feedback once"):
        policy.update(waiting()[0], reward=1)


def test_it_is_saved_as_what_it_is_now(tmp_path: Path) -> None:
    policy = loaded()
    policy.update(policy.act(["mobile"] * 3), reward=[0, 1, 1])
    policy.save(tmp_path / "policy.npz")
    again = bw.load(tmp_path / "policy.npz", interpreted=True)
    assert again.digest == policy.digest
    again.change(again.problem.without_arms(["green"]))
    again.update(waiting(), reward=[1.0] * 11)
    assert again.open_rounds == 0


def test_a_file_without_its_frame(tmp_path: Path) -> None:
    header, arrays = read_arrays(FILE)
    for name in ("algorithm", "contexts", "arms", "reward_range", "lookup", "holdout"):
        header.pop(name)
    shared = ("features", "probabilities", "available")
    small = {name: array for name, array in arrays.items() if name not in shared and not name.startswith("frame.")}
    write_arrays(tmp_path / "small.npz", header, small)
    with pytest.warns(UserWarning, match=SAYS):
        policy = bw.load(tmp_path / "small.npz", frame=FILE, interpreted=True)
    assert policy.digest == loaded().digest


def test_files_of_before_there_were_versions() -> None:
    policy = loaded(SAVED / "adaptive.npz")
    assert (policy.updates, policy.version) == (15, 16)
    policy.update(policy.act(0), loss=0.5)


def test_another_alpha_and_plans_are_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"adaptive-alpha.npz was saved with the adaptive tuning.*alpha = 1/2 alone"):
        bw.load(SAVED / "adaptive-alpha.npz")
    with pytest.raises(ValueError, match="is a plan of the adaptive tuning, which is gone"):
        bw.load_plan(SAVED / "adaptive-plan.npz")
    with pytest.raises(ValueError, match="unknown tuning 'adaptive'; choose one of paper, certified, matched"):
        bw.LCTsallisINF(tuning="adaptive")  # type: ignore[arg-type]


def test_a_store_is_refused_in_a_sentence_and_can_be_exported(tmp_path: Path) -> None:
    header, content = read_arrays(FILE)[0], FILE.read_bytes()
    store = SQLiteStore(tmp_path / "store.sqlite")
    number = store.experiment("ads")
    snapshot = Snapshot(number, header["version"], 0, "digest", header["footing"], content)
    store.append([], snapshots=[snapshot], frames=[Frame(header["footing"], content)])
    with pytest.raises(ValueError, match=r"no snapshot in the store .* adaptive tuning, which is gone"):
        restored(store, number)
    epochs = Epochs(store, number)
    assert (epochs.policy, epochs.problem.arms) == (header["name"], ("red", "blue", "green"))
    store.close()
