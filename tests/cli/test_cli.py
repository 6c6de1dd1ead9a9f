"""The command line: help, exit codes, JSON, suggestions, and what a person sees."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

import bothworlds as bw
from bothworlds.algorithms.registry import algorithms
from bothworlds.cli import common, main
from bothworlds.cli.group import FILES
from bothworlds.cli.reference import reference
from bothworlds.kernels.jit import telling
from bothworlds.simulation import progress
from bothworlds.simulation.study import WORLDS

TINY = ["--horizon", "300", "--replications", "2", "--contexts", "3", "--arms", "2", "--dimension", "2"]
FEW = ["--algorithms", "certified,uniform", "--regimes", "stochastic,ad fatigue"]
COMMANDS = list(FILES)


def called(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), env=env)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "comparison"
    done = called("compare", *TINY, *FEW, "--output", str(folder), "--threads", "1")
    assert done.exit_code == 0, done.output
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_examples(name: str) -> None:
    for flag in ("-h", "--help"):
        done = called(name, flag)
        assert done.exit_code == 0
        assert "Examples:" in done.output
        assert f"bothworlds {name}" in done.output


def test_the_commands_that_were_promised() -> None:
    assert {"new", "run", "report", "compare", "design", "bounds", "list", "show", "check", "warm"} <= set(COMMANDS)


def test_the_reference_is_not_stale() -> None:
    path = Path(__file__).parents[2] / "docs" / "command-line.md"
    assert path.read_text(encoding="utf-8") == reference(), "python -m bothworlds.cli.reference > docs/command-line.md"


def test_compare_ends_in_a_table_and_a_page(results: Path) -> None:
    done = called("compare", *TINY, *FEW, "--output", str(results))
    assert done.exit_code == 0
    assert "LC-Tsallis-INF certified" in done.stdout
    assert "ad fatigue*" in done.stdout
    assert done.stderr.endswith(f"report: {results / 'report.html'}\n")
    assert (results / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert bw.Study.from_toml(results / "study.toml").name == "LC-Tsallis-INF and its rivals"


def test_compare_resumes_and_speaks_json(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bothworlds.simulation.runner.simulate", None)
    done = called("compare", *TINY, *FEW, "--output", str(results), "--json")
    content = json.loads(done.stdout)
    assert content["report"] == str(results / "report.html")
    assert [regime["regime"] for regime in content["regimes"]] == ["stochastic", "ad fatigue"]
    assert content["study"]["horizon"] == 300
    fatigue = content["regimes"][1]
    assert fatigue["reacts"]
    assert "best fixed mixture, replayed" in fatigue["replayed"]
    assert fatigue["algorithms"][0]["total_reward"]["mean"] > 0


def test_compare_says_how_to_go_on_when_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bothworlds.cli.compare.run_study", stop)
    done = called("compare", *TINY, *FEW, "--output", str(tmp_path / "out"))
    assert done.exit_code == 130
    assert "the same command goes on" in done.stderr
    monkeypatch.setattr("bothworlds.cli.show.read_folder", stop)
    assert called("show", str(tmp_path)).exit_code == 130


def test_output_that_cannot_be_written(tmp_path: Path, results: Path) -> None:
    (tmp_path / "file").write_text("")
    done = called("compare", *TINY, *FEW, "--output", str(tmp_path / "file" / "inside"))
    assert done.exit_code == 1
    assert "file" in done.stderr
    done = called("report", str(results), "--output", str(tmp_path / "file" / "page.html"))
    assert done.exit_code == 1
    assert "Traceback" not in done.output


def test_run_shows_total_reward_where_regret_does_not_tell(results: Path, tmp_path: Path) -> None:
    done = called("run", str(results / "study.toml"), "--output", str(results))
    assert done.exit_code == 0
    assert "[not policy regret]" in done.stdout
    assert "regret is not policy regret" in done.stdout
    for words in ("best fixed mixture, replayed", "uniform, replayed", "best arm at the start, replayed"):
        assert words in done.stdout
    content = json.loads(called("run", str(results / "study.toml"), "--output", str(results), "--json").stdout)
    assert len(content["regimes"]) == 2


def test_show(results: Path) -> None:
    done = called("show", str(results))
    assert done.exit_code == 0
    assert "stochastic: regret, both axes logarithmic" in done.stdout
    assert "ad fatigue: Nature reacts" in done.stdout
    only = called("show", str(results), "--regime", "stochastic", "--no-plot").stdout
    assert "Nature reacts" not in only
    assert "logarithmic" not in only
    assert json.loads(called("show", str(results), "--json").stdout)["scores"]
    wrong = called("show", str(results), "--regime", "stochastc")
    assert wrong.exit_code == 2
    assert "did you mean 'stochastic'?" in wrong.stderr
    far = called("show", str(results), "--regime", "corrupted")
    assert far.exit_code == 2
    assert "which has 'stochastic', 'ad fatigue'" in " ".join(far.stderr.split())
    assert "did you mean" not in far.stderr


def test_a_page_made_with_other_options_is_not_written_over(results: Path) -> None:
    page = results / "report.html"
    before, study = page.read_bytes(), (results / "study.toml").read_bytes()
    other = ["compare", *TINY, *FEW, "--seed", "8", "--output", str(results)]
    done = called(*other)
    assert done.exit_code == 1
    assert "report.html was made with other options" in done.stderr
    assert "--output" in done.stderr
    assert "--force" in done.stderr
    assert (page.read_bytes(), (results / "study.toml").read_bytes()) == (before, study)
    assert called(*other, "--force").exit_code == 0
    assert page.read_bytes() != before
    assert called(*other).exit_code == 0  # the page is its own now
    assert called("compare", *TINY, *FEW, "--output", str(results), "--force").exit_code == 0


def test_a_closed_pipe_is_no_error(results: Path) -> None:
    for command in (["show", str(results)], ["list"], ["run", str(results / "study.toml"), "--output", str(results)]):
        with subprocess.Popen([sys.executable, "-m", "bothworlds", *command], stdout=-1, stderr=-1) as program:
            assert program.stdout is not None
            program.stdout.close()
            talk = program.stderr.read().decode() if program.stderr is not None else ""
        assert program.returncode == 0, talk
        assert "rror" not in talk


def test_tables_speak_one_language(results: Path) -> None:
    for command in (["show", str(results)], ["run", str(results / "study.toml"), "--output", str(results)]):
        text = called(*command).stdout
        assert "±" in text
        assert " +- " not in text
    assert "``" not in called("list").stdout
    assert "``" not in called("list", "--json").stdout


def test_a_small_terminal_and_no_colour(results: Path) -> None:
    done = called("show", str(results), env={"COLUMNS": "25", "NO_COLOR": "1"})
    assert done.exit_code == 0
    assert "\x1b[" not in done.stdout
    assert "stochastic" in done.stdout


def test_report_of_an_unfinished_run(results: Path, tmp_path: Path) -> None:
    part = tmp_path / "part"
    shutil.copytree(results, part)
    study = bw.Study.from_toml(part / "study.toml")
    cells = list(study.cells())
    (part / "cells" / f"{cells[0].key}.npz").unlink()
    (part / "cells" / f"{cells[1].key}.npz").write_bytes(b"damaged")
    done = called("report", str(part), "--output", str(tmp_path / "page.html"))
    assert done.exit_code == 0
    assert "warning: uniform in stochastic" in done.stderr
    assert "2 cells are not finished" in done.stderr
    assert "2 cells are not finished" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert done.stdout.strip() == str(tmp_path / "page.html")


def test_report_with_figures_and_json(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bothworlds.report.files.has_matplotlib", lambda: False)
    done = called("report", str(results), "--figures", str(tmp_path / "figures"), "--json")
    assert len(json.loads(done.stdout)["curves"]) == 4
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".svg"}
    assert "9 figures" in done.stderr
    assert "pip install 'bothworlds[report]'" in done.stderr


@pytest.mark.parametrize("command", ["report", "show"])
def test_folders_without_results(command: str, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        done = called(command, str(path))
        assert done.exit_code == 3
        assert "is not a folder of results" in done.stderr


def test_new_writes_a_study_that_is_right(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "mine.toml"
    first = called("new", str(path))
    assert first.exit_code == 0
    assert f"made the folder {path.parent}" in first.stderr
    assert "made the folder" not in called("new", str(tmp_path / "here.toml")).stderr
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


OWN = """
import bothworlds as bw
Good = bw.FixedPolicy
class Bad:
    def act(self, context): ...
class Needy:
    def __init__(self, width): ...
"""


def test_check_an_own_algorithm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "own_parts_of_a_test.py"
    path.write_text(OWN)
    done = called("check", f"{path}:Good", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout) == {"target": f"{path}:Good", "ok": True, "findings": []}
    bad = called("check", f"{path}:Bad")
    assert bad.exit_code == 1
    assert "it has no method start" in bad.stdout
    assert "good" in called("check", "own_parts_of_a_test:Good").stdout  # a module of the present folder
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
    assert text.strip() == str(policy.health())
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
    option = next(one for one in compare.params if one.name == "algorithms")
    items = option.shell_complete(click.Context(compare), "uniform,mat")
    assert [item.value for item in items] == ["uniform,matched"]


def test_plain_lines_where_there_is_no_terminal(
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
    assert "uniform, compiled if need be" in done.stderr
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


def test_long_work_says_what_it_has_cost(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with common.accounted():
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(common, "LONG", 0.0)
    with common.accounted():
        telling._spent.append(41.4)
    assert capsys.readouterr().err == "took 0 s, 41 of them compiling, once for this machine\n"
