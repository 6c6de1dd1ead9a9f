"""The command line around a folder of results: compare, run, show and report, their JSON and exit codes."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

import bothworlds as bw
from bothworlds.cli import main
from bothworlds.cli.root import SECTIONS, commands_of
from support.command_line import called

TINY = [
    "--horizon",
    "300",
    "--instances",
    "1",
    "--replications",
    "2",
    "--contexts",
    "3",
    "--arms",
    "2",
    "--dimension",
    "2",
]
FEW = ["--algorithms", "certified,uniform", "--regimes", "stochastic,ad fatigue"]
COMMANDS = [" ".join(path) for path, _ in commands_of(main, click.Context(main))]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "comparison"
    done = called("compare", *TINY, *FEW, "--output", str(folder), "--threads", "1")
    assert done.exit_code == 0, done.output
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_examples(name: str) -> None:
    for flag in ("-h", "--help"):
        done = called(*name.split(), flag)
        assert done.exit_code == 0
        assert "Examples:" in done.output
        assert f"bothworlds {name}" in done.output


def test_documented_commands_exist() -> None:
    assert {"new", "run", "report", "compare", "design", "bounds", "list", "show", "check", "warm"} <= set(COMMANDS)
    service = {name.removeprefix("service ") for name in COMMANDS if name.startswith("service ")}
    assert service == {"token", "verify", "export", "rollback", "erase", "copy", "set"}


@pytest.mark.parametrize("group", [[], ["service"]], ids=["bothworlds", "service"])
def test_summaries_of_commands_are_not_cut(group: list[str]) -> None:
    """At 80 columns click would end a long summary with three dots."""
    text = called(*group, "--help", env={"COLUMNS": "80"}).stdout
    lines = text.partition("Options:")[2]
    assert "..." not in lines
    assert [title for title in SECTIONS if f"\n{title}:\n" not in lines] == [] or group == ["service"]


def test_compare_ends_in_a_table_and_a_page(results: Path) -> None:
    done = called("compare", *TINY, *FEW, "--output", str(results))
    assert done.exit_code == 0
    assert "LC-Tsallis-INF certified" in done.stdout
    assert "ad fatigue*" in done.stdout
    assert done.stderr.endswith(f"report: {results / 'report.html'}\n")
    assert (results / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert bw.Study.from_toml(results / "study.toml").name == "LC-Tsallis-INF and its rivals"


def test_compare_resumes_and_prints_json(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bothworlds.studies.runner.simulate", None)
    done = called("compare", *TINY, *FEW, "--output", str(results), "--json")
    content = json.loads(done.stdout)
    assert content["report"] == str(results / "report.html")
    assert [regime["regime"] for regime in content["regimes"]] == ["stochastic", "ad fatigue"]
    assert content["study"]["horizon"] == 300
    fatigue = content["regimes"][1]
    assert fatigue["reacts"]
    assert "best fixed mixture, replayed" in fatigue["replayed"]
    assert fatigue["algorithms"][0]["total_reward"]["mean"] > 0


def test_an_interrupted_compare_says_how_to_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bothworlds.cli.compare.run_study", stop)
    done = called("compare", *TINY, *FEW, "--output", str(tmp_path / "out"))
    assert done.exit_code == 130
    assert "the same command resumes" in done.stderr
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


def test_run_shows_total_rewards_of_environments_that_react(results: Path, tmp_path: Path) -> None:
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


def test_a_page_of_other_options_is_not_overwritten(results: Path) -> None:
    page = results / "report.html"
    before, study = page.read_bytes(), (results / "study.toml").read_bytes()
    other = ["compare", *TINY, *FEW, "--seed", "8", "--output", str(results)]
    done = called(*other)
    assert done.exit_code == 1
    assert "has the results of a study with other options" in done.stderr
    assert "--output" in done.stderr
    assert "--force" in done.stderr
    assert (page.read_bytes(), (results / "study.toml").read_bytes()) == (before, study)
    assert called(*other, "--force").exit_code == 0
    assert page.read_bytes() != before
    assert called(*other).exit_code == 0  # the page is now of these options
    assert called("compare", *TINY, *FEW, "--output", str(results), "--force").exit_code == 0


def test_a_comparison_with_other_options_has_a_folder_of_its_own() -> None:
    first = ["compare", *TINY, "--algorithms", "uniform", "--regimes", "stochastic"]
    for options, folder, words in (
        ([], "comparison", ""),
        (["--seed", "8"], "comparison-2", "comparison has other results; using comparison-2\n"),
        (["--seed", "9"], "comparison-3", "comparison has other results; using comparison-3\n"),
        (["--seed", "8"], "comparison-2", "comparison has other results; using comparison-2\n"),
        ([], "comparison", ""),
    ):
        done = called(*first, *options, "--quiet")
        assert (done.exit_code, done.stderr) == (0, f"{words}report: {Path(folder) / 'report.html'}\n")
    assert sorted(path.name for path in Path().iterdir()) == ["comparison", "comparison-2", "comparison-3"]
    assert called(*first, "--seed", "10", "--force", "--quiet").stderr == "report: comparison/report.html\n"


def test_a_study_with_another_name_has_a_folder_of_its_own(results: Path) -> None:
    text = (results / "study.toml").read_text(encoding="utf-8").replace("300", "20")
    for name, words in (
        ("a", "4 cells in mine-results;"),
        ("b", "4 cells in mine-results-2;"),
        ("a", "in mine-results;"),
    ):
        Path("mine.toml").write_text(text.replace("LC-Tsallis-INF and its rivals", name), encoding="utf-8")
        done = called("run", "mine.toml", "--quiet")
        assert done.exit_code == 0, done.output
        assert words in done.stderr, name
        assert ("mine-results has other results" in done.stderr) == (name == "b")


def test_a_closed_pipe_is_not_an_error(results: Path) -> None:
    for command in (["show", str(results)], ["list"], ["run", str(results / "study.toml"), "--output", str(results)]):
        with subprocess.Popen([sys.executable, "-m", "bothworlds", *command], stdout=-1, stderr=-1) as program:
            assert program.stdout is not None
            program.stdout.close()
            messages = program.stderr.read().decode() if program.stderr is not None else ""
        assert program.returncode == 0, messages
        assert "rror" not in messages


def test_tables_use_the_same_signs(results: Path) -> None:
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
    assert "left out 2 cells that are not finished" in done.stderr
    assert "2 cells are not finished" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert done.stdout.strip() == str(tmp_path / "page.html")


def test_report_with_figures_and_json(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bothworlds.report.export.has_matplotlib", lambda: False)
    done = called("report", str(results), "--figures", str(tmp_path / "figures"), "--json")
    assert len(json.loads(done.stdout)["curves"]) == 4
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".svg", ".tex", ".csv"}
    assert "10 figures, table.tex and curves.csv" in done.stderr
    assert "pip install '.[report]'" in done.stderr


@pytest.mark.parametrize("command", ["report", "show"])
def test_folders_without_results(command: str, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        done = called(command, str(path))
        assert done.exit_code == 3
        assert "is not a results folder" in done.stderr
