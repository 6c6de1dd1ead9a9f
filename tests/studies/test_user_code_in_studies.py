"""A user's own algorithms and worlds in studies and comparisons, and grids over options."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import bothworlds as bw
from bothworlds.cli import main
from bothworlds.report import page, summary_of
from bothworlds.studies.comparison import comparison
from bothworlds.studies.folder import has_another_study, read_folder
from bothworlds.studies.option_grid import spread
from bothworlds.user_code import hash_of, is_user_kind, load_object

GREEDY = '''
import numpy as np

class Decision:
    def __init__(self, arm, propensity):
        self.arm, self.propensity = arm, propensity

class Learner:
    def __init__(self, problem, seed, epsilon):
        self.rng, self.problem, self.epsilon = np.random.default_rng(seed), problem, epsilon

    def probabilities(self):
        return np.full(self.problem.available.shape, 1.0 / self.problem.n_arms)

    def act(self, context):
        return Decision(int(self.rng.integers(self.problem.n_arms)), 1.0 / self.problem.n_arms)

    def update(self, decision, *, loss):
        pass

class Greedy:
    """Plays evenly, in plain Python."""

    def __init__(self, epsilon=0.1, arms: list | None = None):
        self.epsilon, self.arms = epsilon, arms

    def start(self, problem, *, rng):
        return Learner(problem, rng, self.epsilon)

    def __repr__(self):
        return f"Greedy({self.epsilon})"

ready = Greedy(0.5)
nothing = 3
'''
WORLD = '''
from bothworlds import environments as en

def weekly(instance, horizon, days=7):
    """Good on some days, bad on others."""
    def theta(t, pi):
        return instance.theta if t % days < 5 else -instance.theta
    return en.from_function(instance.problem, theta, name=f"weekly of {horizon}")

def no_world():
    return 3
'''


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A folder with a study that names files beside it."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "my_alg.py").write_text(GREEDY)
    (tmp_path / "mine" / "my_world.py").write_text(WORLD)
    study = """
horizon = 20
replications = 2
sizes = { contexts = 2, arms = 2, dimension = 2 }
environments.weekly = { kind = "my_world.py:weekly", days = 6 }
algorithms.greedy = { kind = "my_alg.py:Greedy", epsilon = [0.1, 0.2] }
algorithms.even = { kind = "uniform" }
"""
    (tmp_path / "mine" / "study.toml").write_text(study)
    return tmp_path / "mine"


def test_a_study_plays_files_beside_it_and_remembers_them(parts: Path, tmp_path: Path) -> None:
    study = bw.Study.from_toml(parts / "study.toml")
    assert list(study.algorithms) == ["greedy, epsilon 0.1", "greedy, epsilon 0.2", "even"]
    done = bw.run_study(study, tmp_path / "out", quiet=True)
    assert len(done) == 3
    manifest = done[0][1].manifest
    assert manifest["own"] == {name: hash_of(parts / name) for name in ("my_world.py", "my_alg.py")}
    assert manifest["environment"]["name"] == "weekly of 20"
    saved = json.loads((tmp_path / "out" / "cells" / f"{done[0][0].key}.json").read_text())
    assert saved["own"] == manifest["own"]
    assert "own" in done[2][1].manifest  # its world is the user's
    # The folder of results stands alone: it may be moved, and the files may be gone.
    assert not has_another_study(study, tmp_path / "out")
    shutil.move(tmp_path / "out", tmp_path / "elsewhere")
    shutil.rmtree(parts)
    found = read_folder(tmp_path / "elsewhere")
    assert (len(found.cells), found.missing) == (3, [])
    text = page(summary_of(found))
    assert "hash" in text
    assert "A world of the user&#x27;s own, &#x27;weekly of 20&#x27;" in text
    again = bw.Study.from_toml(tmp_path / "elsewhere" / "study.toml")
    bw.run_study(again, tmp_path / "elsewhere", quiet=True)
    assert len(list((tmp_path / "elsewhere" / "own").iterdir())) == 2


def test_cells_are_known_by_what_is_in_the_file(parts: Path, tmp_path: Path) -> None:
    keys = [cell.key for cell in bw.Study.from_toml(parts / "study.toml").cells()]
    shutil.copytree(parts, tmp_path / "copy")
    assert [cell.key for cell in bw.Study.from_toml(tmp_path / "copy" / "study.toml").cells()] == keys
    (tmp_path / "copy" / "my_alg.py").write_text(GREEDY.replace("epsilon=0.1", "epsilon=0.3"))
    edited = [cell.key for cell in bw.Study.from_toml(tmp_path / "copy" / "study.toml").cells()]
    assert [a == b for a, b in zip(keys, edited, strict=True)] == [False, False, True]


def test_compare_takes_files(parts: Path, tmp_path: Path) -> None:
    names, worlds = f"{parts / 'my_alg.py'}:Greedy,uniform", f"{parts / 'my_world.py'}:weekly"
    sizes = ["--contexts", "2", "--arms", "2", "--dimension", "2", "--horizon", "20", "--instances", "1"]
    where = ["--output", str(tmp_path / "out"), "--quiet", "--json"]
    done = CliRunner().invoke(main, ["compare", "--algorithms", names, "--regimes", worlds, *sizes, *where])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert list(told["scores"]) == ["Greedy", "uniform"]
    assert [regime["regime"] for regime in told["regimes"]] == ["weekly"]


def test_algorithms_that_declare_a_horizon_are_told_it(tmp_path: Path) -> None:
    path = tmp_path / "timed.py"
    path.write_text(
        "from dataclasses import dataclass\nimport bothworlds as bw\n\n@dataclass(frozen=True, kw_only=True)\n"
        "class Timed(bw.Algorithm):\n    horizon: int\n"
        "    def machine(self, problem, frame=None):\n        return bw.FixedPolicy().machine(problem)\n"
    )
    study = comparison(algorithms=[f"{path}:Timed"], regimes=["stochastic"], horizon=50)
    assert study.algorithms["Timed"]["horizon"] == 50


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("my_alg.py:Gredy", {}, "did you mean 'Greedy'"),
        ("my_alg.py:nothing", {}, "is not an algorithm"),
        ("my_alg.py:ready", {"epsilon": 0.1}, "takes no options"),
        ("my_alg.py:Greedy", {"epsilonn": 0.1}, "unexpected keyword"),
        ("gone.py:Greedy", {}, "cannot be read"),
        ("no.such.module:Greedy", {}, "cannot be imported"),
    ],
)
def test_mistakes_are_named(kind: str, options: dict[str, Any], words: str, parts: Path) -> None:
    content = {"environments": {"calm": {"kind": "stochastic"}}, "algorithms": {"a": {"kind": kind, **options}}}
    with pytest.raises(ValueError, match=words):
        bw.Study.from_dict(content, folder=parts)


def test_a_world_has_to_be_one(parts: Path) -> None:
    for name, words in (("no_world", "must make an environment"), ("nobody", "has no 'nobody'")):
        content = {"environments": {"a": {"kind": f"my_world.py:{name}"}}, "algorithms": {"a": {"kind": "uniform"}}}
        with pytest.raises(ValueError, match=words):
            bw.Study.from_dict(content, folder=parts)


def test_grids_over_options() -> None:
    nested = {"A": {"kind": "LCTsallisINF", "tuning": {"kind": "certified", "c": [0.125, 0.25]}, "alpha": [0.4, 0.5]}}
    found = spread(nested, "algorithm")
    assert list(found)[:2] == ["A, c 0.125, alpha 0.4", "A, c 0.125, alpha 0.5"]
    assert found["A, c 0.25, alpha 0.5"]["tuning"] == {"kind": "certified", "c": 0.25}
    whole = {"clicks": {"kind": "clicks", "attributes": [3, 4], "changes": [10]}}
    assert spread(whole, "environment") == whole  # lists themselves
    two = spread({"hit": {"kind": "corrupted", "budget": [10, 20]}}, "environment")
    assert list(two) == ["hit, budget 10", "hit, budget 20"]
    with pytest.raises(ValueError, match="list of alpha is empty"):
        spread({"A": {"kind": "LCTsallisINF", "alpha": []}}, "algorithm")
    with pytest.raises(ValueError, match="have the label"):
        spread({"A": {"kind": "LinUCB", "width": [1, 1.0]}}, "algorithm")


def test_an_option_that_is_a_list_is_no_grid(parts: Path) -> None:
    kind = f"{parts / 'my_alg.py'}:Greedy"
    assert list(spread({"g": {"kind": kind, "arms": [1, 2]}}, "algorithm")) == ["g"]
    assert load_object(kind) is load_object(kind)
    assert [is_user_kind(word) for word in (kind, "LinUCB", None)] == [True, False, False]
