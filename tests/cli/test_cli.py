"""The command line around a folder of results: compare, run, show and report, their JSON and exit codes."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import bothworlds as bw
from bothworlds.cli.group import FILES
from bothworlds.cli.reference import reference
from commands import called

TINY = ["--horizon", "300", "--replications", "2", "--contexts", "3", "--arms", "2", "--dimension", "2"]
FEW = ["--algorithms", "certified,uniform", "--regimes", "stochastic,ad fatigue"]
COMMANDS = list(FILES)


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
