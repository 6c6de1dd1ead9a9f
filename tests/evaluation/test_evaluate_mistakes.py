"""`bothworlds evaluate` with mistakes and failures: reported before the work, or without losing it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import bothworlds as bw
from bothworlds.cli import main

STATE = Path("evaluation.html.state")


@pytest.fixture(autouse=True)
def _log() -> None:
    """A log as a table, and its problem, in the current folder."""
    bw.Problem.from_sample(["day", "night"], arms=["a", "b"], reward_range=(0, 1)).save("ads.json")
    lines = "day,a,0.5,1\nnight,b,0.5,0\n" * 20
    Path("log.csv").write_text(f"when,arm,p,click\n{lines}", encoding="utf-8")


def called(*arguments: str, propensity: str = "p") -> Result:
    fields = ["context=when", "arm=arm", f"propensity={propensity}", "reward=click"]
    columns = [word for field in fields for word in ("--column", field)]
    done = CliRunner().invoke(main, ["evaluate", "log.csv", "--problem", "ads.json", "--quiet", *columns, *arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--policy", "uniform", "--against", "always a", "--promote", "unifrom"], "among the policies: 'uniform'"),
        (["--policy", "uniform", "--against", "uniform", "--promote", "uniform"], "are the same policy"),
        (["--policy", "=plan.npz"], "has no name"),
        (["--policy", ""], "has no name"),
        (["--policy", "uniform", "--output", "./log.csv"], "give the page another name"),
        (["--policy", "uniform", "--output", "ads.json"], "give the page another name"),
    ],
)
def test_wrong_names_are_refused_before_any_work(arguments: list[str], words: str) -> None:
    done = called(*arguments)
    assert (done.exit_code, words in done.stderr) == (2, True), done.output
    assert not Path("evaluation.html").exists()
    assert not STATE.exists()


@pytest.mark.parametrize("words", [["--policy", "always red"], ["--policy", "uniform", "--against", "the others"]])
def test_unknown_policies_are_refused_before_the_log_is_read(words: list[str]) -> None:
    done = called(*words)
    assert done.exit_code == 3
    assert done.stderr.startswith("unknown ")
    assert not STATE.exists()


def stopped(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_interrupted_while_reading_it_says_that_it_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bothworlds.cli.log_source.Logged.from_rows", stopped)
    done = called("--policy", "uniform")
    assert done.exit_code == 130
    assert not STATE.exists()
    assert "the same command starts again" in done.stderr


def test_interrupted_while_evaluating_it_says_where_it_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as changed:
        changed.setattr("bothworlds.cli.evaluate.evaluate_log", stopped)
        done = called("--policy", "uniform")
    assert done.exit_code == 130
    assert f"finished parts are in {STATE.absolute()}; the same command resumes" in done.stderr
    (STATE / "columns" / "source.json").write_text("{", encoding="utf-8")  # an unreadable index is rebuilt
    again = called("--policy", "uniform", "--json")
    assert again.exit_code == 0
    assert json.loads(again.stdout)["rows"] == 40
    assert not STATE.exists()


def test_a_page_that_cannot_be_written_loses_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError("cannot write evaluation.html: No space left on device")

    with monkeypatch.context() as changed:
        changed.setattr("bothworlds.report.evaluation_page.write_bytes", full)
        done = called("--policy", "uniform")
    assert (done.exit_code, done.stderr) == (1, "cannot write evaluation.html: No space left on device\n")
    assert "resuming from" in called("--policy", "uniform").stderr


def test_a_number_that_is_not_finite_names_a_column() -> None:
    text = Path("log.csv").read_text(encoding="utf-8")
    Path("log.csv").write_text(text.replace(",p,", ",nan,"), encoding="utf-8")
    assert called("--policy", "uniform", propensity="nan").exit_code == 0
    done = called("--policy", "uniform", propensity="inf")
    assert (done.exit_code, "no column 'inf'" in done.stderr) == (3, True), done.output
