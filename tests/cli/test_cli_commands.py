"""Commands that need no results: new, check, list, health, design, completion, warm and bounds."""

import json
import sys
import time
from pathlib import Path

import click
import numpy as np
import pytest

import bothworlds as bw
from bothworlds.algorithms.registry import algorithms
from bothworlds.cli import common, main
from bothworlds.environments.registry import WORLDS
from bothworlds.kernels.jit import compile_notice
from bothworlds.report.regime_descriptions import sentence_of
from bothworlds.studies import progress
from bothworlds.studies.comparison import known_regimes
from support.command_line import called


def test_new_writes_a_valid_study(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "mine.toml"
    first = called("new", str(path))
    assert first.exit_code == 0
    assert f"created the folder {path.parent}" in first.stderr
    assert "created the folder" not in called("new", str(tmp_path / "here.toml")).stderr
    text = path.read_text(encoding="utf-8")
    assert all(kind in text for kind in [*WORLDS, *algorithms()])
    assert max(len(line) for line in text.replace(str(path), "mine.toml").splitlines()) <= 120
    checked = called("check", str(path))
    assert checked.exit_code == 0
    assert "9 cells" in checked.stdout
    again = called("new", str(path))
    assert again.exit_code == 1
    assert "--force" in again.stderr
    assert called("new", str(path), "--force").exit_code == 0


def test_check_refuses_bad_studies(tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text("horzion = 5")
    for path, words in ((bad, "did you mean 'horizon'"), (tmp_path / "none.toml", "no such file")):
        done = called("check", str(path))
        assert done.exit_code == 3
        assert words in done.stderr


ALGORITHMS = """
import bothworlds as bw
Good = bw.FixedPolicy
class Bad:
    def act(self, context): ...
class Needy:
    def __init__(self, width): ...
"""


def test_check_a_users_algorithm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "algorithms_of_a_test.py"
    path.write_text(ALGORITHMS)
    done = called("check", f"{path}:Good", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout) == {"target": f"{path}:Good", "kind": "algorithm", "ok": True, "findings": []}
    bad = called("check", f"{path}:Bad")
    assert bad.exit_code == 1
    assert "it is neither an algorithm nor an environment: an algorithm has a method start" in bad.stdout
    assert "good" in called("check", "algorithms_of_a_test:Good").stdout  # a module of the current folder
    for name, words in (("Goot", "did you mean 'Good'?"), ("Needy", "without arguments")):
        wrong = called("check", f"{path}:{name}")
        assert wrong.exit_code == 3
        assert words in wrong.stderr
    for target, words in (
        ("nowhere.py:X", "cannot be read"),
        ("no.such.module:X", "cannot be imported"),
        ("just-a-word", "neither"),
    ):
        wrong = called("check", target)
        assert wrong.exit_code == 3
        assert words in wrong.stderr
    monkeypatch.delitem(sys.modules, path.stem, raising=False)


WORLDS_OF_A_TEST = """
import bothworlds as bw
from bothworlds import environments as en

def calm(instance, *, gap, level=0.0):
    assert gap == 0.2
    return en.stochastic(instance)

def wild(instance, horizon, seed):
    return en.from_function(instance.problem, lambda t, pi: (1 + horizon * t) * instance.theta)

flat = en.lower_bound(arms=2, horizon=100)
nothing = 7
"""


def test_check_a_users_environment() -> None:
    Path("worlds_of_a_test.py").write_text(WORLDS_OF_A_TEST, encoding="utf-8")
    for name in ("calm", "flat"):
        done = called("check", f"worlds_of_a_test.py:{name}", "--json")
        target = {"target": f"worlds_of_a_test.py:{name}", "kind": "environment"}
        assert json.loads(done.stdout) == {**target, "ok": True, "findings": []}
    assert ": good, conforms; Problem(5 contexts, " in called("check", "worlds_of_a_test.py:calm").stdout
    wild = called("check", "worlds_of_a_test.py:wild")
    assert wild.exit_code == 1
    assert "1 finding\n  rounds: theta of round 1 makes mean losses leave [-1, 1]" in wild.stdout
    nothing = called("check", "worlds_of_a_test.py:nothing")
    assert nothing.exit_code == 1
    assert "an environment is made by a function of bothworlds.environments" in nothing.stdout


def test_regimes_are_listed_with_the_sentences_of_the_page() -> None:
    found = json.loads(called("list", "regimes", "--json").stdout)
    for name, (_, options) in known_regimes().items():
        if name in found:
            assert found[name]["about"] == sentence_of(bw.environments.lower_bound(arms=2, horizon=9), options)
    assert found["margin"]["about"] != found["stochastic"]["about"]
    assert "Now and then" in found["changing clicks"]["about"]


def test_list(tmp_path: Path) -> None:
    found = json.loads(called("list", "--json").stdout)
    assert set(found["algorithms"]) == set(algorithms())
    assert set(found["environments"]) == set(WORLDS)
    assert list(found["tunings"]) == ["paper", "certified", "matched"]
    assert all(entry["about"] for part in found.values() for entry in part.values())
    assert json.loads(called("list", "algorithms", "--json").stdout) == found["algorithms"]
    assert "certified: The smallest gamma_t" in called("list", "tunings").stdout


def test_health(tmp_path: Path) -> None:
    problem = bw.Problem.from_sample(["mobile", "desktop"], arms=["red", "blue"], reward_range=(0, 1))
    policy = bw.FixedPolicy().start(problem, rng=7, interpreted=True, holdout=0.2)
    policy.update(policy.act([0, 1] * 20), reward=[0, 1] * 20)
    policy.save(tmp_path / "ads.npz")
    text = called("health", str(tmp_path / "ads.npz")).stdout
    report, note = text.rsplit("  rewards: ", 1)
    assert report.strip() == str(policy.health())
    assert "if good ones come first, they are too high" in note
    log, plan = bw.logs.Log(tmp_path / "log.jsonl"), policy.plan()
    log.append(*(bw.logs.row_of(plan.act(i % 2, id=f"visit {i}"), plan) for i in range(50)))
    done = called("health", str(tmp_path / "ads.npz"), "--log", str(log.path), "--json", "--alpha", "0.1")
    found = json.loads(done.stdout)
    assert (found["alpha"], sum(rate["decisions"] for rate in found["who"])) == (0.1, 50)
    assert found["arms"][0]["mean"] is None
    assert found["readings"]["unanswered"]["alarm"] is True
    for words in ([str(tmp_path / "none.npz")], [str(tmp_path / "ads.npz"), "--log", "none.jsonl"]):
        done = called("health", *words)
        assert (done.exit_code, "no such file" in done.stderr) == (3, True)


def test_design(tmp_path: Path) -> None:
    path = tmp_path / "ads.json"
    bw.environments.random_instance(contexts=30, arms=3, dimension=2, gap=0.2).problem.save(path)
    done = called("design", str(path), "--kind", "joint-d", "--json")
    content = json.loads(done.stdout)
    assert np.array(list(content["exploration"].values())).sum(axis=1) == pytest.approx(1.0)
    assert 0.0 < content["coverage"] <= content["coverage_limit"]
    text = called("design", str(path)).stdout
    assert "coverage lambda" in text
    assert "10 more contexts" in text
    path.write_text("{")
    assert called("design", str(path)).exit_code == 3
    assert called("design", str(tmp_path / "none.json")).exit_code == 3


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    done = called("completion", shell)
    assert done.exit_code == 0
    assert "_BOTHWORLDS_COMPLETE" in done.stdout


def test_names_are_completed_after_a_comma() -> None:
    compare = main.get_command(click.Context(main), "compare")
    assert compare is not None
    option = next(each for each in compare.params if each.name == "algorithms")
    items = option.shell_complete(click.Context(compare), "uniform,mat")
    assert [item.value for item in items] == ["uniform,matched"]


def test_progress_is_plain_lines_without_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert progress.FIRST_LINE < 5.0
    monkeypatch.setattr(progress, "FIRST_LINE", 0.01)
    with progress.shown(100.0, 2, quiet=False) as watch:
        watch.begin("one cell", 2.0)
        watch.advance(25)
        time.sleep(0.3)
    assert "simulating: 50%, cell 1 of 2 (one cell)" in capsys.readouterr().err
    with progress.shown(100.0, 2, quiet=True) as watch:
        watch.begin("one cell", 2.0)
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_warm_compiles_by_name_for_any_problem(tmp_path: Path) -> None:
    done = called("warm", "--algorithms", "uniform,LinUCB")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[0] == "ready    seconds"
    assert "compiling uniform, unless it is in the cache" in done.stderr
    path = tmp_path / "ads.json"
    bw.Problem.from_sample(["mobile", "desktop"], arms=["red", "blue"]).save(path)
    content = json.loads(called("warm", str(path), "--algorithms", "uniform", "--json").stdout)
    assert content["seconds"]["uniform"] >= 0.0
    assert called("warm", str(tmp_path / "none.json")).exit_code == 3
    wrong = called("warm", "--algorithms", "mached")
    assert wrong.exit_code == 2
    assert "did you mean 'matched'?" in wrong.stderr


def test_bounds_of_a_random_instance_and_of_a_file(tmp_path: Path) -> None:
    done = called("bounds", "--gap", "0.3", "--corruption", "50", "--horizon", "100000", "--json")
    content = json.loads(done.stdout)
    problem = bw.Study.from_dict(
        {
            "seed": 7,
            "sizes": {"contexts": 5, "arms": 4, "dimension": 4, "gap": 0.3},
            "environments": {"calm": {"kind": "stochastic"}},
            "algorithms": {"even": {"kind": "uniform"}},
        }
    )
    (cell,) = problem.cells()
    table = bw.bounds(cell.make_environment().problem, horizon=100_000, gap=0.3, corruption=50.0)
    assert content == table.select(constants_known=True).to_dict()
    path = tmp_path / "ads.json"
    ads = bw.Problem.from_sample(["mobile", "desktop", "mobile"], arms=["red", "blue"], reward_range=(0, 1))
    ads.save(path)
    done = called("bounds", str(path), "--name", "certified")
    assert done.exit_code == 0
    assert done.stdout == f"{bw.bounds(ads, horizon=40_000).select(name='certified')}\n"
    assert "stochastic" not in done.stdout  # no gap is assumed for a user's problem
    assert len(called("bounds", "--all").stdout) > len(called("bounds").stdout)
    assert called("bounds", str(path), "--arms", "3").exit_code == 2
    assert called("bounds", str(tmp_path / "none.json")).exit_code == 3


def test_long_work_reports_its_time(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with common.report_time():
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(common, "LONG", 0.0)
    with common.report_time():
        compile_notice._seconds.append(41.4)
    assert capsys.readouterr().err == "took 0 s, 41 s of it for compilation, needed once on this machine\n"
