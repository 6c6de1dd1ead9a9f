"""Studies: error messages, resuming, and the command line."""

import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bothworlds as bw
from bothworlds.cli import main
from bothworlds.environments.registry import WORLDS, make_environment
from bothworlds.report.statistics import mean_of
from bothworlds.studies.folder import read_folder
from support.soak import size

SMALL: dict[str, Any] = {
    "horizon": 200,
    "replications": 2,
    "sizes": {"contexts": [2, 3], "arms": 2, "dimension": 2},
    "environments": {"calm": {"kind": "stochastic"}, "hit": {"kind": "corrupted", "budget": 5}},
    "algorithms": {"paper": {"kind": "LCTsallisINF", "tuning": "paper"}},
}
KERNEL = """
horizon = {horizon}
replications = 2
[sizes]
contexts = 3
arms = 2
dimension = 2
[environments.calm]
kind = "stochastic"
[environments.storm]
kind = "growing-phases"
[algorithms.certified]
kind = "LCTsallisINF"
tuning = {{ kind = "certified", c = 0.125 }}
[algorithms.paper]
kind = "LCTsallisINF"
tuning = "paper"
"""


def test_a_study_is_the_product_of_its_parts() -> None:
    cells = list(bw.Study.from_dict(SMALL).cells())
    assert len(cells) == 4
    assert len({cell.key for cell in cells}) == 4
    assert cells[0].name == "paper in calm (contexts 2, arms 2, dimension 2, gap 0.2)"


@pytest.mark.parametrize("kind", WORLDS)
def test_every_kind_of_environment_can_be_made_and_played(kind: str) -> None:
    numbers = {"seed": 3, "horizon": 60}
    sizes = {"contexts": 4, "arms": 3, "dimension": 3, "gap": 0.2, "rarity": 20.0, "margin": None}
    environment = make_environment({"kind": kind}, sizes, numbers)
    results = bw.simulate(environment, bw.LCTsallisINF(tuning="paper"), horizon=60)
    assert np.isfinite(next(iter(results.runs.values())).regret).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"horzion": 5}, "did you mean 'horizon'"),
        ({"sizes": {"context": 3}}, "did you mean 'contexts'"),
        ({"environments": {}}, "no environments"),
        ({"algorithms": {}}, "no algorithms"),
        ({"environments": {"x": {}}}, "has no kind"),
        ({"environments": {"x": {"kind": "stochastik"}}}, "did you mean 'stochastic'"),
        ({"environments": {"x": {"kind": "stochastic", "nois": "none"}}}, "unexpected keyword argument 'nois'"),
        ({"algorithms": {"x": {"kind": "LinUBC"}}}, "did you mean 'LinUCB'"),
        ({"algorithms": {"x": {"kind": "LCTsallisINF", "tuning": "papr"}}}, "unknown tuning"),
        ({"algorithms": {"x": {"kind": "LCTsallisINF", "tuning": {"kind": "certified", "d": 1}}}}, "keyword argument"),
        ({"sizes": {"gap": -1.0}}, "gap must lie"),
        ({"horizon": -5}, "horizon must be a whole number of at least 1; got -5"),
        ({"horizon": 1.9}, "horizon must be a whole number"),
        ({"horizon": True}, "horizon must be a whole number"),
        ({"replications": 0}, "replications must be"),
        ({"seed": -1}, "seed must be"),
        ({"sizes": 5}, "sizes must be a table"),
        ({"sizes": {"contexts": []}}, "is empty"),
        ({"sizes": {"contexts": "five"}}, "contexts must be a whole number"),
        ({"sizes": {"arms": 1}}, "arms must be a whole number of at least 2"),
        ({"sizes": {"contexts": 10**9}}, "too large"),
        ({"sizes": {"rarity": "x"}}, "rarity must be a number"),
        ({"environments": "x"}, "no environments"),
        ({"environments": {"x": "stochastic"}}, "must be a table"),
        ({"environments": {"x": {"kind": "growing-phases", "growth": float("inf")}}}, "growth must lie"),
        ({"environments": {"x": {"kind": "alternating", "every": float("inf")}}}, "every must be a whole number"),
        ({"environments": {"x": {"kind": "moving-level", "level": float("nan")}}}, "level must be finite"),
        ({"environments": {"x": {"kind": "moving-level", "level": 0.9}}}, "allows a level of at most 0.7388"),
        (
            {"environments": {"x": {"kind": "clicks", "contexts": 3, "gap": 0.1}}},
            "clicks does not use contexts, gap; its sizes are arms, rarity",
        ),
        ({"environments": {"x": {"kind": "lower-bound", "gap": 0.1}}}, "does not use gap; its sizes are arms"),
        ({"environments": {"x": {"kind": "ad-fatigue", "margin": 1.0}}}, "ad-fatigue does not use margin"),
        ({"delay": 10**15}, "no feedback arrives within the horizon"),
        ({"batch": 201}, "no feedback arrives within the horizon"),
    ],
)
def test_mistakes_are_named_before_any_work_starts(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bw.Study.from_dict({**SMALL, **change})


@pytest.mark.parametrize("seed", range(5))
def test_a_moving_level_in_a_study_keeps_the_gaps_and_uses_the_room(seed: int) -> None:
    sizes = {"contexts": 6, "arms": 4, "dimension": 3, "gap": 0.2, "rarity": None, "margin": None}
    numbers = {"seed": seed, "horizon": 100}
    still, moving = (make_environment({"kind": kind}, sizes, numbers) for kind in ("stochastic", "moving-level"))
    assert moving.gaps == pytest.approx(still.gaps, abs=1e-12)
    assert moving.gap == pytest.approx(0.2, rel=1e-9)
    level = moving.constants[0]
    assert 0.1 <= level <= 0.3
    largest = np.abs(moving.tables[0]).max() + level
    assert largest <= 1.0 + 1e-9
    assert level == pytest.approx(0.3) or largest == pytest.approx(1.0)  # all the room there is


def test_finished_cells_are_never_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = bw.Study.from_dict(SMALL)
    first = bw.run_study(study, tmp_path)
    monkeypatch.setattr("bothworlds.studies.runner.simulate", None)
    again = bw.run_study(study, tmp_path)
    for (cell, one), (_, two) in zip(first, again, strict=True):
        assert one[cell.algorithm].expected.tobytes() == two[cell.algorithm].expected.tobytes()


def test_another_algorithm_changes_no_other_number(tmp_path: Path) -> None:
    wider = {
        **SMALL,
        "algorithms": {"certified": {"kind": "LCTsallisINF", "tuning": "certified"}, **SMALL["algorithms"]},
    }
    alone = {cell.key: results for cell, results in bw.run_study(bw.Study.from_dict(SMALL), tmp_path / "a")}
    beside = {cell.key: results for cell, results in bw.run_study(bw.Study.from_dict(wider), tmp_path / "b")}
    for key, results in alone.items():
        assert results["paper"].expected.tobytes() == beside[key]["paper"].expected.tobytes()


def test_a_damaged_cell_is_run_again_and_the_others_are_kept(tmp_path: Path) -> None:
    study = bw.Study.from_dict(SMALL)
    cells = [cell for cell, _ in bw.run_study(study, tmp_path)]
    damaged = tmp_path / "cells" / f"{cells[1].key}.npz"
    good = damaged.read_bytes()
    damaged.write_bytes(good[:100])
    with pytest.warns(UserWarning, match="is run again"):
        bw.run_study(study, tmp_path)
    assert damaged.read_bytes() == good


def test_labels_may_change_and_repeat_without_running_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bw.run_study(bw.Study.from_dict(SMALL), tmp_path)
    monkeypatch.setattr("bothworlds.studies.runner.simulate", None)
    options = SMALL["algorithms"]["paper"]
    renamed = bw.Study.from_dict({**SMALL, "algorithms": {"one": options, "two": options}})
    done = bw.run_study(renamed, tmp_path)
    assert [cell.algorithm for cell, _ in done] == ["one", "two"] * 4
    assert all(np.isfinite(results[cell.algorithm].regret).all() for cell, results in done)


def test_flipped_bytes_never_stop_a_study(tmp_path: Path) -> None:
    """Whatever is damaged, the cell is read as it was, or run again with a warning."""
    study = bw.Study.from_dict({**SMALL, "sizes": {"contexts": 2, "arms": 2, "dimension": 2}})
    cells = [cell for cell, _ in bw.run_study(study, tmp_path)]
    path = tmp_path / "cells" / f"{cells[0].key}.npz"
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(40):
        spoilt = bytearray(good)
        for place in rng.integers(len(good), size=4):
            spoilt[place] = int(rng.integers(256))
        path.write_bytes(bytes(spoilt))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert len(bw.run_study(study, tmp_path)) == 2
        path.write_bytes(good)


def test_the_command_runs_a_study_and_shows_a_table(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(KERNEL.format(horizon=300))
    done = CliRunner().invoke(main, ["run", str(path), "--threads", "1"])
    assert done.exit_code == 0, done.output
    assert "certified in storm (contexts 3, arms 2" in done.output
    assert len(list((tmp_path / "small-results" / "cells").glob("*.npz"))) == 4


def test_the_table_has_the_half_widths_that_are_shown_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(KERNEL.format(horizon=300))
    done = CliRunner().invoke(main, ["run", str(path), "--threads", "1"])
    head, row = done.output.splitlines()[:2]
    assert head.split() == ["regret", "±", "95", "%", "cell"]
    cell, results = next(one for one in read_folder(tmp_path / "small-results").cells if one[0].name in row)
    assert row.split()[1] == f"{mean_of(results[cell.algorithm].paths[:, -1]).half:.1f}"


def test_a_cell_is_called_by_the_sizes_of_its_world() -> None:
    own = {"kind": "stochastic", "gap": 0.7, "rarity": "none"}
    study = bw.Study.from_dict({**SMALL, "sizes": {"rarity": 30, "gap": 0.2}, "environments": {"own": own}})
    names = {cell.name for cell in study.cells()}
    assert all("gap 0.7)" in name for name in names), names


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        ("horizon = ", 3, "not valid TOML"),
        ("horizon = 5", 3, "no environments"),
        (None, 3, "no such file"),
    ],
)
def test_the_command_refuses_bad_files(tmp_path: Path, content: str | None, code: int, words: str) -> None:
    path = tmp_path / "bad.toml"
    if content is not None:
        path.write_text(content)
    done = CliRunner().invoke(main, ["run", str(path)])
    assert done.exit_code == code
    assert words in done.output


def test_help_and_version() -> None:
    for arguments in (["-h"], ["run", "-h"], ["--version"]):
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 0
        assert "bothworlds" in done.output


@pytest.mark.soak
@pytest.mark.parametrize("attempt", range(size(1, 12)))
def test_killed_and_resumed_equals_uninterrupted(attempt: int, tmp_path: Path) -> None:
    """kill -9 in the middle of a study, the same command again: the arrays are byte for byte the same."""
    path = tmp_path / "long.toml"
    path.write_text(KERNEL.format(horizon=150_000))
    command = [sys.executable, "-m", "bothworlds", "run", str(path), "--threads", "1", "--output"]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    subprocess.run([*command, str(whole)], check=True, capture_output=True)
    process = subprocess.Popen([*command, str(broken)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        if any((broken / "cells").glob("*.npz")):
            break
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    left = len(list((broken / "cells").glob("*.npz")))
    assert 1 <= left < 4
    subprocess.run([*command, str(broken)], check=True, capture_output=True)
    files = sorted(p.name for p in (whole / "cells").glob("*.npz"))
    assert len(files) == 4
    for name in files:
        assert (whole / "cells" / name).read_bytes() == (broken / "cells" / name).read_bytes()


def heed_interrupts() -> None:
    """Undo what a shell does to jobs in the background: they ignore Ctrl-C, and so do their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path) -> None:
    """Ctrl-C: exit code 130, a sentence, and what was finished is kept."""
    path = tmp_path / "long.toml"
    path.write_text(KERNEL.format(horizon=300_000_000))
    command = [
        sys.executable,
        "-m",
        "bothworlds",
        "run",
        str(path),
        "--threads",
        "2",
        "--output",
        str(tmp_path / "out"),
    ]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, preexec_fn=heed_interrupts, **pipes)
    for _ in range(2400):
        if (tmp_path / "out" / "cells").exists():
            break
        time.sleep(0.05)
    assert (tmp_path / "out" / "cells").exists()  # on a busy machine the imports alone may take long
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=180)  # compilation cannot be interrupted on the spot
    # Where the signal meets text that numba executes, Python ends by the signal itself; to a shell both are 130.
    assert process.returncode in (130, -signal.SIGINT)
    assert "the same command resumes" in talk


@pytest.mark.skipif(shutil.which("script") is None, reason="needs the command script to make a terminal")
def test_progress_moves_on_a_terminal(tmp_path: Path) -> None:
    """In a terminal the run shows rounds per second; elsewhere stderr stays clean."""
    path = tmp_path / "small.toml"
    path.write_text(KERNEL.format(horizon=20_000))
    command = f"{sys.executable} -m bothworlds run {path} --output {tmp_path / 'out'}"
    shown = subprocess.run(
        ["script", "-qec", command, "/dev/null"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TERM": "xterm"},
    )
    assert "rounds/s" in shown.stdout
    quiet = subprocess.run(
        [*command.split(), "--output", str(tmp_path / "b")], capture_output=True, text=True, check=True
    )
    assert "rounds/s" not in quiet.stderr
