"""Worlds that change in tables, pages, figures and data: dynamic regret, and what is left out there."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.cli import main
from bothworlds.report import Summary, page, summary_of
from bothworlds.report.chart import Chart
from bothworlds.report.data import curves_csv, headline_data
from bothworlds.report.figures import all_figures, bounds_at_end
from bothworlds.report.notebook import chart_of, html_of
from bothworlds.report.picture import picture, sentences
from bothworlds.report.statistics import mean_of
from bothworlds.report.tables import headline_rows, latex_table, number, with_interval
from bothworlds.report.terminal import plot_text, table_text
from bothworlds.report.theorems import theorem_bounds
from bothworlds.simulation.results import Run
from bothworlds.studies.folder import read_folder

CONTENT: dict[str, Any] = {
    "horizon": 400,
    "replications": 2,
    "instances": 3,
    "seed": 3,
    "checkpoints": 30,
    "references": True,
    "sizes": {"contexts": 3, "arms": 2, "dimension": 2},
    "environments": {
        "calm": {"kind": "stochastic"},
        "hostile": {"kind": "adaptive-adversary"},
        "jumping": {"kind": "jumps"},
        "tired": {"kind": "ad-fatigue"},
    },
    "algorithms": {
        "ours": {"kind": "LCTsallisINF"},
        "certified": {"kind": "LCTsallisINF", "tuning": "certified"},
        "LinUCB": {"kind": "LinUCB"},
        "fading": {"kind": "DLinUCB", "discount": 0.95},
        "even": {"kind": "uniform"},
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("changing") / "results"
    bw.run_study(bw.Study.from_dict(CONTENT), place, threads=1, quiet=True)
    return place


@pytest.fixture(scope="module")
def summary(folder: Path) -> Summary:
    return summary_of(read_folder(folder))


def played(summary: Summary, regime: str, label: str) -> Run:
    """Return a run as it was measured, against the best fixed policy."""
    [panel] = [panel for panel in summary.panels if panel.name == regime]
    [entry] = [entry for entry in panel.entries if entry.label == label]
    return entry.results[label]


def test_tables_have_the_regret_by_which_a_regime_is_judged(summary: Summary) -> None:
    head, *rows = headline_rows(summary)
    assert head[:5] == ["algorithm", "calm", "hostile", "jumping (dynamic)", "tired (reward)"]
    for label, calm, _, jumping, *_ in rows:
        run = played(summary, "calm", label)
        assert calm == with_interval(mean_of(run.paths[:, -1]))
        run = played(summary, "jumping", label)
        assert jumping == with_interval(mean_of(run.dynamic_paths[:, -1]))
        assert run.dynamic_regret[-1] > run.regret[-1] + 5.0
    text = table_text(summary)
    assert "jumping+" in text
    assert "tired*" in text
    assert text.endswith("* total reward: larger is better\n+ dynamic regret: against the best arm of every round")
    assert "% (dynamic): against the best arm of every round\n" in latex_table(summary)
    assert "jumping (dynamic) &" in latex_table(summary)
    assert plot_text(summary.panels[2]).startswith("jumping: dynamic regret, both axes logarithmic")
    assert plot_text(summary.panels[0]).startswith("calm: regret, both axes logarithmic")


def test_ratios_and_leaders_of_a_changing_world_are_those_of_dynamic_regret(summary: Summary) -> None:
    panel = summary.panels[2]
    best = min(panel.entries, key=lambda entry: float(played(summary, "jumping", entry.label).dynamic_regret[-1]))
    assert best.label == "fading"
    assert "fading" in panel.leaders
    assert "even" not in panel.leaders
    slack = np.sqrt(2 * 400) / 10
    references = min(run.expected[:, -1].mean() - run.round_best[:, -1].mean() for run in panel.references.values())
    mine = played(summary, "jumping", "LinUCB").dynamic_regret[-1]
    assert panel.ratings["LinUCB"].value == pytest.approx((mine + slack) / (min(references, mine) + slack))


def test_data_have_both_regrets_and_say_which_one_counts(summary: Summary) -> None:
    calm, _, jumping, tired = headline_data(summary)["regimes"]
    assert [regime["measure"] for regime in (calm, jumping, tired)] == ["regret", "dynamic regret", "total reward"]
    for row in jumping["algorithms"]:
        run = played(summary, "jumping", row["algorithm"])
        assert row["regret"]["mean"] == pytest.approx(run.regret[-1])
        assert row["dynamic_regret"]["mean"] == pytest.approx(run.dynamic_regret[-1])
        assert "account" not in row
    rows = list(csv.DictReader(io.StringIO(curves_csv(summary))))
    last = {(row["regime"], row["algorithm"]): row for row in rows if row["t"] == "400"}
    for regime, measure in (("calm", "fixed_regret"), ("jumping", "dynamic_regret")):
        row, run = last[regime, "LinUCB"], played(summary, regime, "LinUCB")
        assert row["measure"] == ("regret" if regime == "calm" else "dynamic regret")
        assert row["regret"] == row[measure]
        assert float(row["fixed_regret"]) == pytest.approx(run.regret[-1])
        assert float(row["dynamic_regret"]) == pytest.approx(run.dynamic_regret[-1])


def test_no_theorem_is_drawn_where_dynamic_regret_counts(summary: Summary) -> None:
    bounds = theorem_bounds(summary)
    assert set(bounds_at_end(summary.panels[0], bounds)) >= {"ours", "certified"}
    assert bounds_at_end(summary.panels[2], bounds) == {}
    assert all(summary.panels[2].account(entry) is None for entry in summary.panels[2].entries)
    assert summary.panels[0].account(summary.panels[0].entries[0]) is not None


def test_charts_and_page_call_it_by_its_name(summary: Summary) -> None:
    figures = {figure.name: figure for figure in all_figures(summary)}
    chart = figures["jumping-log-x"]
    assert isinstance(chart, Chart)
    assert (chart.title, chart.y_label) == ("Dynamic regret, jumping: logarithmic time", "dynamic regret")
    line = next(line for line in chart.lines if line.label == "LinUCB")
    assert line.y[-1] == pytest.approx(played(summary, "jumping", "LinUCB").dynamic_regret[-1])
    text = page(summary)
    assert text.count("Learners are judged by dynamic regret:") == 1
    assert "Dynamic regret at T = 400" in text
    assert "Mean dynamic regret and its 95 % interval" in text
    assert '<th scope="col">against the best policy</th>' in text


def test_the_third_panel_of_the_picture_is_a_world_that_changes(summary: Summary) -> None:
    main_one = picture(summary)
    assert main_one is not None
    titles = ["The world stays as it is", "The world reacts to you", "The world changes"]
    assert [chart.title for chart in main_one.charts] == titles
    third = main_one.charts[2]
    assert third.y_label == "dynamic regret"
    assert {line.label for line in third.lines} == {"ours", "fading", "LinUCB", "certified"}
    for line in third.lines:
        np.testing.assert_allclose(line.y[1:], played(summary, "jumping", line.label).dynamic_regret)
    assert main_one.title.endswith("Where the world changes, regret is against the best arm of every round.")
    ours, best = (number(played(summary, "jumping", label).dynamic_regret[-1]) for label in ("ours", "fading"))
    wanted = (
        f"Where the world changes, ours has dynamic regret {ours}; the best of its rivals there, fading, has {best}."
    )
    assert sentences(summary)[-1] == wanted


def test_the_command_line_says_so(folder: Path, tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["show", str(folder), "--regime", "jumping"])
    assert shown.exit_code == 0
    assert "+ dynamic regret: against the best arm of every round" in shown.stdout
    study = tmp_path / "study.toml"
    study.write_text(
        'name = "s"\nhorizon = 60\nreplications = 2\n[sizes]\ncontexts = 2\narms = 2\ndimension = 2\n'
        '[environments.turning]\nkind = "slow-turn"\n[algorithms.LinUCB]\nkind = "LinUCB"\n'
    )
    done = CliRunner().invoke(main, ["run", str(study), "--quiet"])
    assert done.exit_code == 0, done.output
    assert "[dynamic regret]" in done.stdout
    data = json.loads(CliRunner().invoke(main, ["list", "regimes", "--json"]).stdout)
    assert {"changes at T/2", "seasons", "jumps", "slow turn"} <= set(data)
    assert all("judged by" in data[name]["about"] for name in ("changes at T/2", "seasons", "jumps", "slow turn"))


def test_results_of_a_simulation_are_ordered_by_it() -> None:
    instance = en.random_instance(contexts=3, arms=2, dimension=2, gap=0.2, seed=3)
    players = {"fading": bw.DLinUCB(discount=0.95), "even": bw.FixedPolicy(), "LinUCB": bw.LinUCB()}
    world = en.seasons(instance, horizon=400)
    results = bw.simulate(world, players, horizon=400, replications=2)
    ordered = sorted(players, key=lambda label: float(results[label].dynamic_regret[-1]))
    assert [line.split()[-1] for line in results.summary().splitlines()[2:]] == ordered
    chart = chart_of(results)
    assert chart.y_label == "dynamic regret"
    assert chart.lines[0].y[-1] == results["fading"].dynamic_regret[-1]
    assert "<th>dynamic regret</th>" in html_of(results)
    assert "Dynamic regret at T = 400" in page(results)
