"""Instances: seeds as an axis of a study, and their results pooled."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.report import summary_of
from bothworlds.simulation.results import Results, load_results
from bothworlds.studies import runner
from bothworlds.studies.comparison import comparison
from bothworlds.studies.folder import CELLS, read_folder
from bothworlds.studies.instances import by_instances, common_seeds, pooled
from bothworlds.studies.toml import to_toml

SMALL: dict[str, Any] = {
    "horizon": 60,
    "replications": 2,
    "references": True,
    "sizes": {"contexts": 3, "arms": 2, "dimension": 2},
    "environments": {"calm": {"kind": "stochastic"}, "ads": {"kind": "ad-fatigue"}},
    "algorithms": {"LinUCB": {"kind": "LinUCB"}, "even": {"kind": "uniform"}},
}


def test_instances_and_lists_of_seeds_are_the_same_grid(tmp_path: Path) -> None:
    counted = bw.Study.from_dict({**SMALL, "seed": 7, "instances": 3})
    listed = bw.Study.from_dict({**SMALL, "seed": [7, 8, 9]})
    assert counted == listed
    assert counted.seeds == (7, 8, 9)
    cells = list(counted.cells())
    assert len(cells) == len({cell.key for cell in cells}) == 12
    assert [cell.settings["seed"] for cell in cells[:3]] == [7, 8, 9]
    alone = list(bw.Study.from_dict({**SMALL, "seed": 8}).cells())
    assert alone[0].key == cells[1].key  # an instance is the same with and without others
    for study in (counted, bw.Study.from_dict({**SMALL, "seed": [9, 2]})):
        path = tmp_path / "study.toml"
        path.write_text(to_toml(study), encoding="utf-8")
        assert bw.Study.from_toml(path) == study


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"instances": 0}, "instances must be a whole number of at least 1"),
        ({"instances": 10**9}, "instances must be at most"),
        ({"seed": [1, 2], "instances": 2}, "not both"),
        ({"seed": []}, "list of seeds is empty"),
        ({"seed": [3, 3]}, "a seed occurs twice"),
        ({"seed": [3, -1]}, "seed must be a whole number of at least 0"),
    ],
)
def test_mistakes_about_seeds_are_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bw.Study.from_dict({**SMALL, **change})


def test_pooled_results_have_a_row_for_each_instance(tmp_path: Path) -> None:
    study = bw.Study.from_dict({**SMALL, "seed": 7, "instances": 3})
    done = bw.run_study(study, tmp_path, threads=1, quiet=True)
    summary = summary_of(read_folder(tmp_path))
    for panel in summary.panels:
        assert (panel.instances, panel.unit) == (3, "instances")
        for entry in panel.entries:
            alone = [r[entry.label] for c, r in done if (c.environment, c.algorithm) == (panel.name, entry.label)]
            means = [run.regret for run in alone]
            np.testing.assert_allclose(entry.run.paths, means, atol=1e-12)
            assert entry.regret.value == pytest.approx(np.mean([mean[-1] for mean in means]))
            assert panel.ratios_by_instance[entry.label].shape == (3,)
            assert (panel.ratios_by_instance[entry.label] >= 1.0).all()
        assert {len(run.expected) for run in panel.references.values()} == {3}
    ads = summary.panels[1]
    assert {len(run.expected) for run in ads.replayed.values()} == {3}
    only = next(results for _, results in done)
    assert pooled([only]) is only


def test_only_instances_that_all_algorithms_have_are_pooled(tmp_path: Path) -> None:
    study = bw.Study.from_dict({**SMALL, "seed": 7, "instances": 3})
    bw.run_study(study, tmp_path, threads=1, quiet=True)
    gone = next(cell for cell in study.cells() if cell.settings["seed"] == 8)
    (tmp_path / CELLS / f"{gone.key}.npz").unlink()
    summary = summary_of(read_folder(tmp_path))
    calm, ads = summary.panels
    assert [entry.label for entry in calm.entries] == ["LinUCB", "even"]
    assert (calm.instances, ads.instances) == (2, 3)
    assert len(summary.missing) == 1
    assert common_seeds({"a": [1], "b": [2, 3]}) == (["b"], [2, 3])


def test_instances_run_side_by_side_give_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = bw.Study.from_dict({**SMALL, "seed": 7, "instances": 4, "replications": 1})
    beside: list[int] = []
    play = runner._side_by_side

    def noted(cells: Any, *rest: Any) -> Any:
        beside.append(len(cells))
        return play(cells, *rest)

    monkeypatch.setattr(runner, "_side_by_side", noted)
    several = bw.run_study(study, tmp_path / "several", threads=3, quiet=True)
    assert beside
    assert set(beside) == {3}  # the first instance runs alone and compiles
    beside.clear()
    single = bw.run_study(study, tmp_path / "single", threads=1, quiet=True)
    assert not beside
    for (cell, one), (_, other) in zip(several, single, strict=True):
        np.testing.assert_array_equal(one[cell.algorithm].expected, other[cell.algorithm].expected)


def test_stopping_stops_what_runs_side_by_side(tmp_path: Path) -> None:
    """Closing the generator, as Ctrl-C does, waits for no cell that is still running."""
    study = bw.Study.from_dict({**SMALL, "instances": 6, "environments": {"calm": {"kind": "stochastic"}}})
    cells = [cell for cell in study.cells() if cell.algorithm == "even"]
    stopped: list[bool] = []

    def run(cell: Any, advance: Any) -> Results | Exception:
        if cell is cells[0]:
            return ValueError("the first one is through")
        try:
            while True:
                advance(0)
        except InterruptedError as error:
            stopped.append(True)
            return error

    class Silent:
        def advance(self, rounds: int) -> None:
            """Show nothing."""

    found = runner._side_by_side(cells, tmp_path / CELLS, run, Silent(), 3)  # type: ignore[arg-type]
    next(found)
    found.close()
    assert stopped


def test_groups_are_cells_that_differ_only_in_the_seed() -> None:
    groups = by_instances(bw.Study.from_dict({**SMALL, "seed": [4, 9]}).cells())
    assert [[cell.settings["seed"] for cell in group] for group in groups] == [[4, 9]] * 4
    assert all(len({(cell.environment, cell.algorithm) for cell in group}) == 1 for group in groups)


def test_the_comparison_trades_replications_for_instances() -> None:
    chosen: dict[str, Any] = {"algorithms": ["uniform"], "regimes": ["stochastic"], "horizon": 50}
    for instances, expected in ((None, 1), (20, 1), (4, 4), (1, 16)):
        study = comparison(instances=instances, **chosen)
        assert len(study.seeds) == (instances or 20)
        assert study.settings["replications"] == expected
    assert comparison(instances=5, replications=2, **chosen).settings["replications"] == 2


def test_files_know_nothing_of_other_instances(tmp_path: Path) -> None:
    """A study that is extended by instances plays only the new ones."""
    few = bw.Study.from_dict({**SMALL, "instances": 1})
    bw.run_study(few, tmp_path, threads=1, quiet=True)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / CELLS).glob("*.npz")}
    bw.run_study(bw.Study.from_dict({**SMALL, "instances": 2}), tmp_path, threads=1, quiet=True)
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    assert len(list((tmp_path / CELLS).glob("*.npz"))) == 2 * len(before)
    assert isinstance(load_results(next(iter(before))), Results)
