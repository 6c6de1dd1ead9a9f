"""Packages that only some of the library needs: who lacks one is told which extra brings it."""

import importlib
import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bothworlds as bw
from bothworlds.cli import main
from bothworlds.errors import MissingPackageError
from bothworlds.simulation.results import Results

ROOT = Path(__file__).parents[1]
TEXTS = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.py"), *ROOT.glob("src/**/*.py")]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
STUDY = """
horizon = 10
replications = 1
[sizes]
contexts = 1
arms = 2
dimension = 2
[environments.calm]
kind = "stochastic"
[algorithms.even]
kind = "uniform"
"""


def test_every_extra_that_is_named_is_one() -> None:
    named = {(path.name, extra) for path in TEXTS for extra in _named(path.read_text(encoding="utf-8"))}
    assert {extra for _, extra in named} == set(EXTRAS)


def _named(text: str) -> list[str]:
    return re.findall(r"(?:bothworlds|'\.)\[(\w+)\]", text) + re.findall(r'not_installed\(.*"(\w+)"\)', text)


def test_the_module_for_gymnasium_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "bothworlds.simulation.gymnasium", raising=False)
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(MissingPackageError, match=r"pip install '\.\[gym\]'"):
        importlib.import_module("bothworlds.simulation.gymnasium")


def test_a_command_that_lacks_a_package_has_failed_and_its_file_is_not_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("study.toml").write_text(STUDY)
    Path("log.parquet").write_bytes(b"")
    bw.Problem.from_sample(["all"], arms=["red", "blue"], reward_range=(0, 1)).save("ads.json")
    commands = {
        "distributed": ["run", "study.toml", "--engine", "dask"],
        "pyarrow": ["evaluate", "log.parquet", "--problem", "ads.json", "--policy", "uniform"],
    }
    for package, command in commands.items():
        monkeypatch.setitem(sys.modules, package, None)
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 1, done.output
        assert "which is not installed; from a clone of the repository: pip install '.[" in done.output


def test_a_table_of_results_without_pandas_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    results = Results(environment="calm", checkpoints=np.array([1]), runs={}, manifest={})
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackageError, match="to_pandas needs pandas, which is not installed: pip install pandas"):
        results.to_pandas()
