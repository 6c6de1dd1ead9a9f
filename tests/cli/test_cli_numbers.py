"""Numbers that are not finite: refused in options, and never written to JSON."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

import bothworlds as bw
from bothworlds.report import page, summary_of
from bothworlds.studies.folder import read_folder
from support.command_line import called
from support.report_study import embedded

ENDLESS = """
horizon = 20
replications = 2
sizes = { contexts = 2, arms = 2, dimension = 2, margin = inf }
environments.calm = { kind = "stochastic" }
algorithms.even = { kind = "uniform" }
"""


def strict(text: str) -> object:
    """Parse JSON as other languages do, without Infinity and NaN."""

    def refuse(word: str) -> NoReturn:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("number", ["inf", "-inf", "nan", "1e999"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["service", "token", "me", "--scope", "admin", "--rate"],
        ["evaluate", "log.jsonl", "--policy", "uniform", "--by"],
        ["evaluate", "log.jsonl", "--policy", "uniform", "--alpha"],
        ["evaluate", "log.jsonl", "--policy", "uniform", "--tolerance"],
        ["health", "policy.npz", "--alpha"],
        ["report", "results", "--font-size"],
        ["bounds", "--corruption"],
        ["bounds", "--rarity"],
        ["compare", "--gap"],
    ],
    ids=lambda arguments: " ".join(arguments[:1] + arguments[-1:]),
)
def test_options_that_are_not_finite_are_refused(arguments: list[str], number: str) -> None:
    done = called(*arguments, number)
    assert done.exit_code == 2
    assert "is not a finite number" in done.stderr or "not in the range" in done.stderr


@pytest.mark.parametrize("number", ["0", "-1"])
def test_the_rate_of_a_token_is_positive(number: str) -> None:
    done = called("service", "token", "me", "--scope", "admin", "--rate", number)
    assert done.exit_code == 2
    assert "not in the range" in done.stderr


def test_a_missing_reward_is_a_finite_number() -> None:
    bw.Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], reward_range=(0, 1)).save("ads.json")
    Path("log.csv").write_text("arm,p,click\n0,0.5,1\n", encoding="utf-8")
    columns = ["--column", "arm=arm", "--column", "propensity=p", "--column", "reward=click"]
    for number in ("nan", "inf"):
        options = ["--problem", "ads.json", "--policy", "uniform", *columns, "--missing", number]
        done = called("evaluate", "log.csv", *options)
        assert (done.exit_code, "--missing must be a number or 'drop'" in done.stderr) == (2, True), done.output


def test_infinity_in_a_study_is_null_in_json() -> None:
    Path("endless.toml").write_text(ENDLESS, encoding="utf-8")
    done = called("run", "endless.toml", "--json", "--quiet")
    assert done.exit_code == 0, done.output
    data = strict(done.stdout)
    assert isinstance(data, dict)
    assert data["study"]["sizes"]["margin"] == [None]
    for command in ("show", "report"):
        strict(called(command, "endless-results", "--json").stdout)
    text = page(summary_of(read_folder("endless-results")))
    strict(embedded(text, "results.json"))
    assert "margin = inf" in embedded(text, "study.toml")  # TOML has infinity


def test_json_is_escaped_for_a_terminal_without_unicode() -> None:
    Path("日本.toml").write_text(ENDLESS, encoding="utf-8")
    command = [sys.executable, "-m", "bothworlds", "check", "日本.toml", "--json"]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"target": "日本.toml", "kind": "study", "ok": True, "findings": []}
