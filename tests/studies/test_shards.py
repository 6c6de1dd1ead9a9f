"""Parts of a study on one folder: disjoint, complete, and safe side by side."""

import multiprocessing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import bothworlds as bw
from bothworlds.cli import main
from bothworlds.studies.folder import read_folder
from bothworlds.studies.toml import to_toml

CONTENT: dict[str, Any] = {
    "horizon": 200,
    "replications": 3,
    "references": True,
    "sizes": {"contexts": 2, "arms": 2, "dimension": 2, "gap": [0.1, 0.2]},
    "environments": {"calm": {"kind": "stochastic"}, "ads": {"kind": "ad-fatigue"}},
    "algorithms": {"even": {"kind": "uniform"}, "LinUCB": {"kind": "LinUCB", "width": [0.25, 0.5]}},
}


def files(folder: Path) -> dict[str, bytes]:
    """Return the arrays of all cells; manifests also say when and how fast."""
    return {path.name: path.read_bytes() for path in (folder / "cells").glob("*.npz")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    bw.run_study(bw.Study.from_dict(CONTENT), folder, threads=1, quiet=True)
    return folder


def test_parts_are_disjoint_and_together_the_study(whole: Path, tmp_path: Path) -> None:
    study, seen = bw.Study.from_dict(CONTENT), 0
    for part in (1, 2, 3):
        done = bw.run_study(study, tmp_path, threads=1, quiet=True, shard=(part, 3))
        new = len(files(tmp_path)) - seen
        assert new > 0
        seen += new
        assert (len(done) == len(list(study.cells()))) == (part == 3)
    assert files(tmp_path) == files(whole)
    alone = [tmp_path / "first", tmp_path / "second"]
    for part, folder in enumerate(alone, start=1):
        bw.run_study(study, folder, threads=1, quiet=True, shard=(part, 2))
    assert sum(len(files(folder)) for folder in alone) == seen  # none is in two parts


def test_a_part_that_is_none_is_refused(tmp_path: Path) -> None:
    for shard in ((0, 3), (4, 3)):
        with pytest.raises(ValueError, match="i from 1 to n"):
            bw.run_study(bw.Study.from_dict(CONTENT), tmp_path, quiet=True, shard=shard)


def run(folder: str) -> None:
    bw.run_study(bw.Study.from_dict(CONTENT), folder, threads=1, quiet=True)


def test_two_runs_on_one_folder_at_the_same_time(whole: Path, tmp_path: Path) -> None:
    """Both end well, every file is whole, and the numbers are those of a single run."""
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=run, args=(str(tmp_path),)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(300)
    assert [one.exitcode for one in both] == [0, 0]
    assert files(tmp_path) == files(whole)
    found = read_folder(tmp_path)
    assert found.missing == []
    assert not list(tmp_path.rglob("*.part"))


def test_the_command_line_takes_parts(whole: Path, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(to_toml(bw.Study.from_dict(CONTENT)), encoding="utf-8")
    folder = tmp_path / "out"
    for part in ("1/2", "2/2"):
        done = CliRunner().invoke(main, ["run", str(study), "--output", str(folder), "--quiet", "--shard", part])
        assert done.exit_code == 0, done.output
        assert ("left to other parts" in done.stderr) == (part == "1/2")
    assert files(folder) == files(whole)
    for wrong in ("3/2", "0/2", "1", "a/b", "1/0"):
        done = CliRunner().invoke(main, ["run", str(study), "--shard", wrong])
        assert done.exit_code == 2
        assert "is not I/N" in done.stderr
