"""How much is explored: curves of what was recorded, beside schedules, and what is left where nothing was recorded."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.report import Summary, page, summary_of
from bothworlds.report.data import curves_csv, headline_data
from bothworlds.report.figures import all_charts, exploration_chart, shown
from bothworlds.report.statistics import interval_of, mean_of, sum_between
from bothworlds.studies.folder import read_folder
from support.report_study import Nesting

CONTENT: dict[str, Any] = {
    "horizon": 400,
    "replications": 5,
    "checkpoints": 50,
    "sizes": {"contexts": 3, "arms": 2, "dimension": 2},
    "environments": {"calm": {"kind": "stochastic"}},
    "algorithms": {
        "paper": {"kind": "LCTsallisINF", "tuning": "paper"},
        "certified": {"kind": "LCTsallisINF", "tuning": "certified"},
        "matched": {"kind": "LCTsallisINF"},
        "rival": {"kind": "RealFTRL"},
        "LinUCB": {"kind": "LinUCB"},
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("explored")
    bw.run_study(bw.Study.from_dict(CONTENT), where, threads=1, quiet=True)
    return where


@pytest.fixture(scope="module")
def summary(folder: Path) -> Summary:
    return summary_of(read_folder(folder))


def test_every_recorded_rate_has_a_curve(summary: Summary) -> None:
    (panel,) = summary.panels
    chart = exploration_chart(panel)
    lines = {line.label: line for line in chart.lines}
    assert list(lines) == ["paper", "certified", "limit for certified", "matched", "rival"]
    kept = shown(panel.entries[0].rounds)
    for entry in panel.entries[:-1]:
        rates, line = entry.run.exploration_rate, lines[entry.label]
        assert rates is not None
        np.testing.assert_array_equal(line.x, entry.rounds[kept])
        np.testing.assert_allclose(line.y, rates.mean(axis=0)[kept])
        assert (line.low is None) == bool((interval_of(rates) <= 1e-3).all())  # too narrow to be seen
    assert lines["paper"].low is None
    entry = next(entry for entry in panel.entries[:-1] if lines[entry.label].low is not None)
    line, rates = lines[entry.label], entry.run.exploration_rate
    at = int(np.argmax(line.y))
    assert rates is not None
    value, half = mean_of(rates[:, kept[at]])
    low, high = line.low, line.high
    assert low is not None
    assert high is not None
    assert [low[at], high[at]] == pytest.approx([max(0.0, value - half), value + half])
    assert (low >= 0.0).all()
    assert chart.y_range[0] == 0.0 < max(line.y.max() for line in chart.lines) < chart.y_range[1]
    assert chart.name in [one.name for one in all_charts(summary)]


def test_curves_of_schedules_are_the_schedules(summary: Summary) -> None:
    (panel,) = summary.panels
    lines = {line.label: line for line in exploration_chart(panel).lines}
    for label, name in (("paper", "paper"), ("certified", "limit for certified")):
        algorithm = bw.LCTsallisINF(tuning="paper" if label == "paper" else "certified")
        problem = panel.environment.problem
        schedule = algorithm.schedule_for(problem, algorithm.design_for(problem))
        expected = [schedule.exploration_rate(float(t)) for t in lines[name].x]
        np.testing.assert_allclose(lines[name].y, expected, rtol=1e-12)
    assert lines["limit for certified"].thin
    assert (lines["certified"].y <= lines["limit for certified"].y * (1 + 1e-12)).all()


def test_what_the_page_says_of_exploration(summary: Summary) -> None:
    text = page(summary)
    Nesting.of(text)
    assert "How much is explored" in text
    assert "Fine dots: the largest rate that the schedule of that colour allows" in text
    charts = json.loads(re.findall(r'id="charts">(.*?)</script>', text)[0])
    assert [line["label"] for line in charts["calm-exploration"]["lines"]][3] == "matched"
    assert charts["calm-exploration"]["x"] is not None  # said once for all curves
    rows = [part.entry.label for part in summary.panels[0].exploration]
    assert rows == ["paper", "certified", "matched", "rival"]


def test_numbers_of_exploration(summary: Summary) -> None:
    (panel,) = summary.panels
    told = {row["algorithm"]: row.get("exploration") for row in headline_data(summary)["regimes"][0]["algorithms"]}
    rates = {entry.label: entry.run.exploration_rate for entry in panel.entries}
    assert told["LinUCB"] is None
    for label, rate in rates.items():
        if rate is not None:
            assert told[label]["rate_at_the_end"] == pytest.approx(rate[:, -1].mean(), rel=1e-7)
    rows = list(csv.DictReader(io.StringIO(curves_csv(summary))))
    mine = [row["exploration_rate"] for row in rows if row["algorithm"] == "matched"]
    assert rates["matched"] is not None
    np.testing.assert_allclose([float(one) for one in mine], rates["matched"].mean(axis=0), rtol=1e-7)
    assert {row["exploration_rate"] for row in rows if row["algorithm"] == "LinUCB"} == {""}


def test_explored_rounds_from_checkpoints() -> None:
    """Exact where every round is one; else close where rates change slowly, as those of the paper do."""
    world = bw.environments.stochastic(
        bw.environments.random_instance(contexts=3, arms=2, dimension=2, gap=0.2, seed=1)
    )
    players = {"paper": bw.LCTsallisINF(tuning="paper"), "matched": bw.LCTsallisINF()}
    every = bw.simulate(world, players, horizon=1500, replications=16, checkpoints=range(1, 1501))
    some = bw.simulate(world, players, horizon=1500, replications=16, checkpoints=60)
    for label in players:
        rates, few = every[label].exploration_rate, some[label].exploration_rate
        assert rates is not None
        assert few is not None
        assert sum_between(every.checkpoints, rates.mean(axis=0)) == pytest.approx(rates.mean(axis=0).sum(), rel=1e-12)
        if label == "paper":
            near = sum_between(some.checkpoints, few.mean(axis=0))
            assert near == pytest.approx(rates.mean(axis=0).sum(), rel=2e-3)  # measured: 5e-4


def test_intervals_are_those_of_single_columns() -> None:
    paths = np.random.default_rng(3).normal(size=(6, 4))
    expected = [mean_of(column).half for column in paths.T]
    assert interval_of(paths).tolist() == pytest.approx(expected)
    assert interval_of(paths[:1]).tolist() == [0.0] * 4


def test_players_without_rates_make_a_page_without_exploration(tmp_path: Path) -> None:
    content = {**CONTENT, "algorithms": {"LinUCB": {"kind": "LinUCB"}, "even": {"kind": "uniform"}}}
    bw.run_study(bw.Study.from_dict(content), tmp_path, threads=1, quiet=True)
    summary = summary_of(read_folder(tmp_path))
    assert summary.panels[0].exploration == []
    assert "explored" not in page(summary)


def test_what_paths_have_cost_by_their_own_account(summary: Summary, tmp_path: Path) -> None:
    """On the page and in the numbers, with what it bounds; not where answers are late, for nothing is proved then."""
    (panel,) = summary.panels
    matched = next(entry for entry in panel.entries if entry.label == "matched")
    account = matched.run.account
    assert account is not None
    assert account.mean() > matched.regret.value
    html = page(summary)
    assert html.count("paths’ account") == 1
    assert "a single path may exceed its own" in html
    (regime,) = headline_data(summary)["regimes"]
    found = {row["algorithm"]: row.get("account") for row in regime["algorithms"]}
    assert found["matched"]["mean"] == pytest.approx(account.mean(), rel=1e-6)
    assert [label for label, one in found.items() if one is not None] == ["matched"]
    late = {**CONTENT, "delay": 3, "algorithms": {"matched": {"kind": "LCTsallisINF"}}}
    bw.run_study(bw.Study.from_dict(late), tmp_path / "late", threads=1, quiet=True)
    assert "paths’ account" not in page(summary_of(read_folder(tmp_path / "late")))
