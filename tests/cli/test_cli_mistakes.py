"""The command line under difficulties: mistyped options, no GPU, wrong files, small terminals, an early Ctrl-C."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import bothworlds as bw
from bothworlds.algorithms.registry import algorithms
from bothworlds.simulation import gpu
from bothworlds.studies import progress
from bothworlds.studies.comparison import REGIMES, comparison
from support.command_line import called

SMALL = ["--horizon", "6", "--instances", "1", "--replications", "2"]
SMALL += ["--contexts", "3", "--arms", "2", "--dimension", "2"]

# The simulator reports no memory, so free memory is replaced; everything else is the real command.
ON_A_SIMULATED_GPU = """
import sys
from bothworlds.cli import main
from bothworlds.simulation.gpu import launcher
launcher.free_memory = lambda: 10**6
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["comapre"], "Did you mean 'compare'?"),
        (["xyzzy"], "The commands are "),
        (["compare", "--algorithms", "mached"], "did you mean 'matched'?"),
        (["compare", "--algorithms", "LinUBC"], "did you mean 'LinUCB'?"),
        (["compare", "--regimes", "stochastik"], "did you mean 'stochastic'?"),
        (["compare", "--horizn", "5"], "--horizon"),
        (["compare", "--horizon", "0"], "0 is not in the range"),
        (["compare", "--gap", "7"], "gap must lie"),
        (["bounds", "--gap", "7"], "gap must lie"),
        (["bounds", "--corruption", "-1"], "corruption is a total"),
        (["bounds", "--name", "Tsalis"], "the names are"),
        (["list", "algorithm"], "algorithms"),
        (["completion", "tcsh"], "bash"),
    ],
)
def test_mistakes_in_usage_get_a_suggestion(arguments: list[str], words: str) -> None:
    done = called(*arguments)
    assert done.exit_code == 2
    assert words in done.output


@pytest.mark.skipif(gpu.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_work_fails_with_a_message(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    assert called("new", str(study)).exit_code == 0
    out = tmp_path / "out"
    for command in (["compare", *SMALL], ["run", str(study)]):
        done = called(*command, "--device", "gpu", "--output", str(out))
        assert done.exit_code == 1  # as without a package: the input is good
        assert "needs an NVIDIA GPU" in done.stderr
        assert not out.exists()  # nothing was started
    done = called("compare", *SMALL, "--algorithms", "LinUCB", "--device", "auto", "--output", str(out))
    assert done.exit_code == 0
    both = called("run", str(study), "--device", "auto", "--engine", "dask")
    assert both.exit_code == 2
    assert "give one of them" in both.stderr
    with pytest.raises(ValueError, match="executor"):
        bw.run_study(bw.Study.from_toml(study), out, executor=object(), device="gpu")  # type: ignore[arg-type]


def on_a_simulated_gpu(arguments: list[str]) -> str:
    command, environment = [sys.executable, "-c", ON_A_SIMULATED_GPU], {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_a_study_on_a_simulated_gpu_has_the_same_numbers(tmp_path: Path) -> None:
    arguments = ["compare", *SMALL, "--algorithms", "LinUCB", "--regimes", "stochastic,ad fatigue"]
    regimes = {}
    for device in ("gpu", "cpu"):
        out = tmp_path / device
        command = [*arguments, "--device", device, "--output", str(out), "--json"]
        content = json.loads(on_a_simulated_gpu(command) if device == "gpu" else called(*command).stdout)
        for regime in content["regimes"]:
            for row in regime["algorithms"]:
                del row["microseconds_per_round"]
        regimes[device] = content["regimes"]
        study = bw.Study.from_toml(out / "study.toml")
        manifests = [
            json.loads((out / "cells" / f"{cell.key}.json").read_text(encoding="utf-8")) for cell in study.cells()
        ]
        assert {tuple(manifest["run"]["device"].values()) for manifest in manifests} == {(device,)}
        page = (out / "report.html").read_text(encoding="utf-8")
        assert ("played on a GPU" in page) == (device == "gpu")
    assert regimes["gpu"] == regimes["cpu"]


@pytest.mark.parametrize("kind", algorithms())
@pytest.mark.filterwarnings("ignore:the features depend on the arm")
def test_every_algorithm_can_be_compared_by_its_name(kind: str) -> None:
    """Algorithms that need the horizon get it."""
    study = comparison(algorithms=[kind], regimes=["stochastic"], horizon=50)
    (options,) = study.algorithms.values()
    assert options.get("horizon", 50) == 50


def test_real_ftrl_gets_the_horizon_of_its_theorem() -> None:
    assert comparison(horizon=70, regimes=["stochastic"]).algorithms["RealFTRL"] == {"kind": "RealFTRL", "horizon": 70}


def test_a_warning_is_printed_once(tmp_path: Path) -> None:
    done = called("compare", *SMALL, "--algorithms", "RobustLinExp3,FTRLLC", "--output", str(tmp_path))
    assert done.exit_code == 0
    assert done.stderr.count("warning: the features depend on the arm") == 1


@pytest.mark.parametrize(("text", "code"), [("1e2", 0), ("1_00", 0), ("1.5", 2), ("1e-2", 2), ("inf", 2), ("1e999", 2)])
def test_integers_may_have_exponents_and_underscores(text: str, code: int) -> None:
    done = called("bounds", "--horizon", text, "--json")
    assert done.exit_code == code
    if code == 0:
        assert done.stdout == called("bounds", "--horizon", "100", "--json").stdout


@pytest.mark.parametrize("option", ["--algorithms", "--regimes"])
def test_an_empty_list_of_names_is_refused(option: str) -> None:
    done = called("compare", option, " , ")
    assert done.exit_code == 2
    assert "has no names" in done.stderr


def test_files_without_a_problem(tmp_path: Path) -> None:
    text, folder = tmp_path / "text.npz", tmp_path / "folder"
    text.write_text("x")
    folder.mkdir()
    for path, words in ((text, "not a file written by this library"), (folder, "is a folder")):
        done = called("design", str(path))
        assert done.exit_code == 3
        assert words in done.stderr
        assert "pickle" not in done.stderr
    assert "is a folder" in called("run", str(folder)).stderr


def test_an_error_names_the_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "busy.json").mkdir()
    with pytest.raises(OSError, match=r"cannot write .*busy\.json: Is a directory"):
        bw.Problem(features=[[[1, 0], [0, 1]]], probabilities=[1]).save(tmp_path / "busy.json")
    assert [path.name for path in tmp_path.iterdir()] == ["busy.json"]


def test_check_reports_an_error_of_machine(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(
        "import bothworlds as bw\n\nclass Broken:\n"
        "    def start(self, problem, *, rng):\n        return bw.FixedPolicy().start(problem, rng=rng)\n"
        "    def machine(self, problem, frame=None):\n        raise RuntimeError('no machine')\n"
    )
    done = called("check", f"{path}:Broken")
    assert (done.exit_code, "RuntimeError: no machine" in done.stdout) == (1, True), done.exception


def test_required_options_are_listed_as_such() -> None:
    found = json.loads(called("list", "--json").stdout)
    assert found["algorithms"]["LinearEXP4"]["required"] == ["horizon"]
    assert found["algorithms"]["RealFTRL"]["required"] == []
    assert found["environments"]["corrupted"]["set_by_study"] == ["budget"]
    text = called("list").stdout
    assert "horizon (required), policies = 'linear'" in text
    assert "budget (set by the study)" in text


def test_an_interrupt_during_the_import_ends_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bothworlds.cli.main", stop)
    with pytest.raises(SystemExit) as exit_:
        runpy.run_module("bothworlds", run_name="__main__")
    assert exit_.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_no_bar_in_a_very_small_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    shown = {}
    for columns in ("20", "60", "120"):
        monkeypatch.setenv("COLUMNS", columns)
        with progress.shown(10.0, 1, quiet=False) as watch:
            watch.begin("a cell", 1.0)
            watch.advance(10)
        shown[columns] = capsys.readouterr().err
    assert shown["20"] == ""  # a plain line would appear after some seconds
    assert "a cell" in shown["60"]
    assert "rounds/s" not in shown["60"]
    assert "rounds/s" in shown["120"]


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
def test_tables_have_intervals_at_every_width(columns: int, tmp_path: Path) -> None:
    chosen = ["--algorithms", "LinUCB,uniform", "--output", str(tmp_path), "--quiet"]
    assert called("compare", *SMALL, *chosen).exit_code == 0
    text = called("show", str(tmp_path), "--no-plot", env={"COLUMNS": str(columns)}).stdout
    lines = text.splitlines()
    table = lines[: next(i for i, line in enumerate(lines) if line.startswith("* total reward"))]
    assert max(map(len, table)) <= columns
    players = [line for line in table if line.startswith("LinUCB ")]
    assert sum(line.count(" ± ") for line in players) == len(REGIMES)
    assert (len(players) == 1) == (columns == 200)
    heads = " ".join(line for line in table if line.startswith("algorithm "))
    for regime in ("stochastic", "adversarial", "corrupted", "margin", "ad fatigue*", "rare clicks", "worst ratio  "):
        assert heads.count(regime.strip()) == 1
