"""Names that are long, have lines, or move a terminal; and rewards that are not positive."""

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.report import Summary, html_parts, summary_from, write_figures
from bothworlds.report.figures import linear_chart
from bothworlds.report.summary import Panel, slug
from bothworlds.report.tables import latex_table
from bothworlds.report.terminal import aligned, table_text
from support.report_study import made_summary

ODD = "two\nlines \x1b[2J\x00 \u202eover"


@pytest.fixture(scope="module")
def odd() -> Summary:
    world = en.stochastic(en.random_instance(contexts=2, arms=2, dimension=2, gap=0.3))
    return summary_from(bw.simulate(world, {ODD: bw.FixedPolicy()}, horizon=30, replications=2, rng=1))


def test_odd_names_are_spelt_where_they_would_do_harm(odd: Summary, tmp_path: Path) -> None:
    for text in (table_text(odd), aligned([["name"], [ODD]]), latex_table(odd)):
        assert not re.search("[\x00\x1b\u202e]", text)
    assert aligned([["name"], [ODD]]).count("\n") == 2
    assert "two\\textbackslash{}nlines" in latex_table(odd)
    files, _ = write_figures([linear_chart(odd.panels[0])], tmp_path)
    ElementTree.fromstring(files[0].read_text(encoding="utf-8"))


def test_a_long_name_makes_a_short_file() -> None:
    assert slug("long " * 100) == "-".join(["long"] * 16)


def with_rewards(values: list[float]) -> Panel:
    """Return a panel with a learner and two fixed policies, and the total rewards that are asked for."""
    panel = next(panel for panel in made_summary().panels if panel.environment.reacts)
    runs = {}
    for name, value in zip("abc", values, strict=True):
        run = panel.entries[0].run
        T = panel.horizon
        runs[name] = replace(run, expected=np.full_like(run.expected, T - 2.0 * value))  # rewards are in [0, 1]
    results = replace(panel.entries[0].results, runs={panel.entries[0].label: runs.pop("a")})
    return replace(panel, entries=[replace(panel.entries[0], results=results)], replayed=runs)


def test_shares_of_the_best_are_of_what_is_positive() -> None:
    assert re.findall(r"<td>([\d.]+%)</td>", html_parts.rewards(with_rewards([50.0, 100.0, 0.0]))) == [
        "100.0%",
        "50.0%",
        "0.0%",
    ]


@pytest.mark.parametrize("values", [[-50.0, 100.0, -200.0], [-50.0, -10.0, -200.0], [0.0, 0.0, 0.0]])
def test_rewards_that_are_not_positive_have_differences(values: list[float]) -> None:
    text = html_parts.rewards(with_rewards(values))
    assert "%</td>" not in text
    assert "of the best" not in text
    assert "below the best" in text
    rows = re.findall(r"<tr>(.*?)</tr>", text)[1:]
    told = [float(re.findall(r"<td>([^<]*)</td>", row)[-1].replace(",", "")) for row in rows]
    assert told == sorted(max(values) - value for value in values)
