"""Files of the user's own that are edited while a study plays: all cells play the version that was read."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import bothworlds as bw
from bothworlds import user_code
from bothworlds.studies import executors, runner
from bothworlds.studies.folder import read_folder

PLAYER = """
import bothworlds as bw

class Player:
    def __init__(self, number=1):
        self.number = number

    def start(self, problem, *, rng):
        return bw.FixedPolicy.always([ARM] * problem.n_contexts, problem.n_arms).start(problem, rng=rng)
"""
OLD, NEW = (PLAYER.replace("ARM", arm) for arm in "01")


@pytest.fixture
def player(tmp_path: Path) -> Path:
    path = tmp_path / "player.py"
    path.write_text(OLD)
    return path


def study_of(path: Path) -> bw.Study:
    return bw.Study.from_dict(
        {
            "horizon": 20,
            "replications": 2,
            "sizes": {"contexts": 2, "arms": 2, "dimension": 2},
            "environments": {"calm": {"kind": "stochastic"}},
            "algorithms": {"mine": {"kind": f"{path}:Player", "number": [1, 2, 3]}},
        }
    )


def losses_of(done: list[Any]) -> list[list[float]]:
    return [results[cell.algorithm].expected[:, -1].tolist() for cell, results in done]


def test_a_file_edited_while_a_study_plays_changes_no_cell(
    player: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = losses_of(bw.run_study(study_of(player), tmp_path / "still", quiet=True))
    assert expected[0] == expected[1] == expected[2]
    play, study = runner._run, study_of(player)
    keys = [cell.key for cell in study.cells()]

    def and_edit(cell: Any, **how: Any) -> Any:
        done = play(cell, **how)
        player.write_text(NEW)
        return done

    monkeypatch.setattr(runner, "_run", and_edit)
    done = bw.run_study(study, tmp_path / "out", quiet=True)
    assert losses_of(done) == expected
    assert [cell.key for cell, _ in done] == keys
    assert [results.manifest["own"] for _, results in done] == [{"player.py": user_code._hash(OLD.encode(), {})}] * 3
    [copy] = (tmp_path / "out" / "own").iterdir()
    assert copy.read_text() == OLD
    assert losses_of(read_folder(tmp_path / "out").cells) == expected
    monkeypatch.undo()
    again = bw.run_study(study_of(player), tmp_path / "out", quiet=True)  # read again, it is another study
    assert not set(losses_of(again)[0]) & set(expected[0])
    assert not {cell.key for cell, _ in again} & set(keys)


def test_a_worker_that_finds_another_text_refuses_to_play_it(player: Path) -> None:
    cell = next(study_of(player).cells())
    player.write_text(NEW)
    user_code._import_file.cache_clear()  # as in another process
    with pytest.raises(ValueError, match="was edited after the study was read"):
        executors.play_slice(cell, 0, 1, 1, executors.versions())


def test_a_file_edited_before_the_study_begins_is_told_of(player: Path, tmp_path: Path) -> None:
    study = study_of(player)
    player.write_text(NEW)
    with pytest.raises(ValueError, match="was edited after the study was read"):
        bw.run_study(study, tmp_path / "out", quiet=True)


def test_the_file_is_read_once_for_all_keys(player: Path) -> None:
    cells = list(study_of(player).cells())
    player.unlink()
    assert len({cell.key for cell in cells}) == 3


def test_an_edit_of_the_same_size_in_the_same_second_is_seen(player: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    os.utime(player, (1e9, 1e9))
    before = user_code.load_object(f"{player}:Player")
    player.write_text(NEW)
    os.utime(player, (1e9, 1e9))
    after = user_code.load_object(f"{player}:Player")
    problem = bw.Problem(features=[[[1, 0], [0, 1]]], probabilities=[1])
    assert [made().start(problem, rng=1).act(0).arm for made in (before, after)] == [0, 1]


BESIDE = """
from dataclasses import dataclass

import arm_to_play
from parts.many import always

@dataclass(frozen=True)
class Player:
    def start(self, problem, *, rng):
        return always(arm_to_play.ARM, problem).start(problem, rng=rng)
"""
MANY = """
import bothworlds as bw

def always(arm, problem):
    return bw.FixedPolicy.always([arm] * problem.n_contexts, problem.n_arms)
"""


def written(folder: Path, arm: int) -> Path:
    """Write a file that imports a file and a package beside it."""
    (folder / "parts").mkdir(parents=True, exist_ok=True)
    (folder / "parts" / "__init__.py").write_text("")
    (folder / "parts" / "many.py").write_text(MANY)
    (folder / "arm_to_play.py").write_text(f"ARM = {arm}\n")
    (folder / "not_imported.py").write_text("ARM = 3\n")
    (folder / "player.py").write_text(BESIDE)
    return folder / "player.py"


def test_what_a_file_imports_from_its_folder_goes_along(tmp_path: Path) -> None:
    def study(path: Path) -> bw.Study:
        user_code = {"mine": {"kind": f"{path}:Player"}}
        sizes = {"contexts": 2, "arms": 2, "dimension": 2}
        worlds = {"calm": {"kind": "stochastic"}}
        return bw.Study.from_dict({"horizon": 20, "sizes": sizes, "environments": worlds, "algorithms": user_code})

    losses, keys = [], []
    for arm in (0, 1):  # an edited companion is another algorithm, with a cell and a copy of its own
        done = bw.run_study(study(written(tmp_path / "mine", arm)), tmp_path / "out", quiet=True)
        losses += losses_of(done)
        keys += [cell.key for cell, _ in done]
    assert losses[0] != losses[1]
    assert keys[0] != keys[1]
    shutil.rmtree(tmp_path / "mine")
    user_code._import_file.cache_clear()  # as in another process
    for name in ("arm_to_play", "parts", "parts.many"):
        sys.modules.pop(name)
    found = read_folder(tmp_path / "out")
    assert losses_of(found.cells) == losses[1:]
    assert not list((tmp_path / "out").rglob("not_imported.py"))
    again = bw.Study.from_toml(tmp_path / "out" / "study.toml")
    assert [cell.key for cell in again.cells()] == keys[1:]
    bw.run_study(again, tmp_path / "out", quiet=True)
    assert len(list((tmp_path / "out" / "own").iterdir())) == 2
