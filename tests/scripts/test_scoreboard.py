"""The scoreboard in small: cells, the file of results and its resumption, ratios and tables."""

from pathlib import Path

import numpy as np
import pytest

import bothworlds as bw
from board import page, players, records, table, worlds
from bothworlds.report.scores import ratios, slack

CONDITIONS = records.Conditions("tuning", 40, 2)
PLAYERS = {"uniform": bw.FixedPolicy(), "LinUCB": bw.LinUCB()}


def some_cells() -> list[worlds.Cell]:
    return [cell for cell in worlds.cells(40, 2) if cell.size == (4, 3, 3)]


def test_ratios_are_one_for_the_best_and_negative_regret_counts_as_none() -> None:
    found = ratios(np.array([[-5.0, 10.0], [10.0, 40.0]]), np.array([10.0, 20.0]))
    assert found.tolist() == [[1.0, 1.0], [2.0, 2.0]]
    assert [score.cell for score in table.worst_cells(np.array([[1.0, 3.0], [4.0, 2.0]]))] == [1, 0]
    against = ratios(np.array([[5.0], [40.0]]), np.array([10.0]), rivals=np.array([[20.0], [30.0]]))
    assert against[:, 0].tolist() == [1.0, 50.0 / 30.0]
    assert slack(5, 20_000) == pytest.approx(31.6228, abs=1e-4)


@pytest.mark.parametrize("regime", list(worlds.makers(40)))
def test_every_regime_is_a_sound_world_and_the_families_differ(regime: str) -> None:
    for size in worlds.SIZES:
        made = [worlds.world(worlds.Cell(regime, size, 1), family, 40) for family in worlds.FAMILIES]
        assert made[0].problem.fingerprint != made[1].problem.fingerprint or not np.array_equal(
            made[0].thetas, made[1].thetas
        )
        assert np.abs(made[0].tables[:, made[0].problem.available]).max() <= 1.0 + 1e-9


def test_results_are_kept_and_a_second_run_plays_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tuning.csv"
    cells = some_cells()
    first = records.play(path, CONDITIONS, cells[:6], PLAYERS, threads=1, quiet=True)
    kept = path.read_text()
    lines = records.play(path, CONDITIONS, cells, PLAYERS, threads=1, quiet=True)
    assert path.read_text().startswith(kept)
    whole = path.read_text()
    again = records.play(path, CONDITIONS, cells, PLAYERS, threads=1, quiet=True)
    assert path.read_text() == whole
    assert len(again) == len(lines) == 2 * len(cells)
    for key, line in first.items():
        assert again[key].regret == pytest.approx(line.regret, abs=1e-4)
    with pytest.raises(ValueError, match="other conditions"):
        records.read(path, CONDITIONS._replace(replications=3))


def test_regimes_can_be_added_to_a_file_and_only_they_are_played(tmp_path: Path) -> None:
    path = tmp_path / "tuning.csv"
    old = list(worlds.cells(40, 1, regimes=["clicks"]))
    new = list(worlds.cells(40, 1, regimes=["rare clicks", "rare clicks, changing favourite"]))
    records.play(path, CONDITIONS, old, {"uniform": bw.FixedPolicy()}, threads=1, quiet=True)
    kept = path.read_text()
    records.play(path, CONDITIONS, [*old, *new], {"uniform": bw.FixedPolicy()}, threads=1, quiet=True)
    added = path.read_text().removeprefix(kept).splitlines()
    assert len(added) == len(new) == 8
    assert all("rare clicks" in line for line in added)
    with pytest.raises(ValueError, match="no regime 'rare'"):
        list(worlds.cells(40, 1, regimes=["rare"]))


def test_rare_clicks_are_rare_in_every_size_and_family() -> None:
    for family in worlds.FAMILIES:
        for cell in worlds.cells(400, 2, regimes=["rare clicks", "rare clicks, changing favourite"]):
            made = worlds.world(cell, family, 400)
            assert 500.0 * (1.0 - 1e-9) <= made.problem.rarity <= 1_500.0 * (1.0 + 1e-9)
            rates = (1.0 - made.tables) / 2.0
            assert (rates.min(), rates.max()) == pytest.approx(worlds.RARE_RATES)
            assert len(made.thetas) == (2 if "changing" in cell.regime else 1)


def test_boards_average_and_pages_keep_their_words(tmp_path: Path) -> None:
    cells = some_cells()
    lines = records.play(tmp_path / "x.csv", CONDITIONS, cells, PLAYERS, threads=1, quiet=True)
    boards = {grain: table.board(lines, list(PLAYERS), 40, grain=grain) for grain in table.GRAINS}
    found = boards["regime"]
    mine = [lines[cell, "LinUCB"].regret for cell in cells if cell.regime == "clicks"]
    assert found.regrets[1, found.cells.index(("clicks",))] == pytest.approx(np.mean(mine))
    assert found.ratios.min(axis=0) == pytest.approx(np.ones(20))
    assert boards["single instance"].regrets.shape == (2, len(cells))
    assert "LinUCB" in table.plain(found)
    target = tmp_path / "page.md"
    target.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    page.write(target, [*page.rows_of(found), *page.worst_rows(boards)])
    written = target.read_text()
    assert written.startswith("before\n")
    assert written.endswith("after\n")
    assert "old" not in written
    assert written.count("| LinUCB |") == 2


@pytest.mark.parametrize("regime", list(worlds.CHANGING))
def test_worlds_that_change_are_judged_by_dynamic_regret(regime: str, tmp_path: Path) -> None:
    cell = worlds.Cell(regime, (4, 3, 3), 1)
    made = worlds.world(cell, "tuning", 40)
    assert made.changing
    lines = records.play(tmp_path / "x.csv", CONDITIONS, [cell], PLAYERS, threads=1, quiet=True)
    runs = bw.simulate(made, PLAYERS, horizon=40, replications=2, rng=1, checkpoints=[40]).runs
    for label, run in runs.items():
        assert lines[cell, label].regret == pytest.approx(run.dynamic_regret[-1], abs=1e-4)
        assert lines[cell, label].error == pytest.approx(run.dynamic_standard_error[-1], abs=1e-4)


def test_no_other_world_is_judged_by_dynamic_regret() -> None:
    for regime in worlds.still(40):
        assert not worlds.world(worlds.Cell(regime, (4, 3, 3), 1), "tuning", 40).changing


def test_ours_and_rivals_have_labels_of_their_own() -> None:
    assert not set(players.ours()) & set(players.rivals(100))
