"""Charts: marks, axes, bands, colours, and the files they become."""

import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from bothworlds.report import Summary, write_figures
from bothworlds.report.chart import Chart, Line, Mark, ticks
from bothworlds.report.figures import Bounds, all_charts, corruption_marks
from bothworlds.report.palette import KNOWN, Style, styles
from bothworlds.report.svg import standalone, svg
from support.report_study import CONTENT, EVIL, made_summary, summary_from


@pytest.fixture
def summary() -> Summary:
    return made_summary()


def test_corruption_that_depends_on_the_learner_is_marked_for_each(tmp_path: Path) -> None:
    world = {"hit": {"kind": "corrupted", "budget": 5, "placement": "adaptive"}}
    players = {"paper": CONTENT["algorithms"][EVIL], "optimist": {"kind": "LinUCB"}, "uniform": {"kind": "uniform"}}
    content = {**CONTENT, "environments": world, "algorithms": players, "references": False}
    (panel,) = summary_from(content, tmp_path).panels
    marks = corruption_marks(panel)
    spent = [entry for entry in panel.entries if entry.run.spent[-1] > 0.0]
    assert [mark.colour for mark in marks] == [entry.style.colour for entry in spent]
    assert len(spent) > 1
    assert "uniform" not in [entry.label for entry in spent]  # it is never sure
    assert all(mark.start == mark.end for mark in marks)
    first = min(marks, key=lambda mark: mark.start)
    assert [mark for mark in marks if mark.text] == [first]  # said once, or words would hide the curves
    assert first.text == "corruption spent (C up to 5)"


def test_figures_are_written_in_three_kinds(summary: Summary, tmp_path: Path) -> None:
    charts = all_charts(summary)[:2]
    files, note = write_figures(charts, tmp_path)
    assert note == ""
    assert sorted(file.suffix for file in files) == [".pdf", ".pdf", ".png", ".png", ".svg", ".svg"]
    assert all(file.stat().st_size > 1000 for file in files)
    for file in tmp_path.glob("*.svg"):
        ElementTree.parse(file)


def test_figures_without_matplotlib(summary: Summary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    files, note = write_figures(all_charts(summary)[:1], tmp_path)
    assert [file.suffix for file in files] == [".svg"]
    assert "pip install '.[report]'" in note


def test_colours_belong_to_algorithms() -> None:
    many: list[dict[str, Any]] = [{"kind": "LinUCB"}, *({"kind": f"own {i}"} for i in range(20)), {"kind": "LinUCB"}]
    found = styles(many)
    assert found[0] == styles([{"kind": "OFUL"}, {"kind": "LinUCB"}])[1]
    assert len(set(found)) == len(many)
    assert len(set(KNOWN.values())) == len(KNOWN)
    known: list[dict[str, Any]] = [{"kind": "OFUL"}, {"kind": "LinUCB"}, {"kind": "uniform"}]
    others: list[dict[str, Any]] = [{"kind": f"own {i}"} for i in range(4)]
    assert len({style.colour for style in styles([*known, *others])}) == 7  # colours are shared last of all


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (-3.0, 1234.5), (0.0, 1e-3), (1e-4, 2e4), (0.1, 0.3), (5.0, 5e8)]
)
def test_ticks_lie_within_and_are_few(low: float, high: float) -> None:
    for log in (False, True):
        if log and low <= 0.0:
            continue
        found = ticks(low, high, log=log)
        assert 1 <= len(found) <= 9
        assert all(low <= tick <= high * (1 + 1e-9) for tick in found)


def test_curves_that_are_not_positive_are_broken_on_a_logarithmic_axis() -> None:
    y = np.array([1.0, 2.0, -1.0, 3.0, np.nan, 4.0])
    line = Line(label="a", number=0, style=Style(0, ""), x=np.arange(1.0, 7.0), y=y)
    options: dict[str, Any] = {"name": "a", "title": "a", "description": "a", "x_label": "t", "y_label": "y"}
    drawn = svg(Chart(**options, lines=[line], y_log=True), ident="a")
    path = re.search(r'class="line" d="([^"]*)"', drawn)
    assert path is not None
    assert path[1].count("M") == 3
    assert "nan" not in drawn


def chart_of(line: Line, *, y_log: bool, **options: Any) -> Chart:
    words: dict[str, Any] = {"name": "a", "title": "a", "description": "a", "x_label": "t", "y_label": "y"}
    return Chart(**words, lines=[line], y_log=y_log, **options)


def test_a_band_below_zero_leaves_the_chart_at_the_bottom_and_one_often_below_is_left_out() -> None:
    t, mean = np.arange(1.0, 11.0), np.full(10, 5.0)
    for negative, drawn in ((0, True), (2, True), (3, False)):
        low = np.where(t <= negative, -1.0, 2.0)
        line = Line(label="a", number=0, style=Style(0, ""), x=t, y=mean, low=low, high=mean + 1.0)
        chart = chart_of(line, y_log=True)
        band = chart.band(line)
        assert (band is not None) == drawn
        assert svg(chart, ident="a").count('class="band"') == drawn
        if band is not None:
            assert (band[0] > 0.0).all()
            assert (band[0][t <= negative] < chart.y_range[0]).all()
        assert svg(chart_of(line, y_log=False), ident="a").count('class="band"') == 1


@pytest.mark.parametrize(("start", "anchor"), [(20.0, ""), (900.0, 'text-anchor="end"')])
def test_words_of_a_mark_stay_within_the_chart(start: float, anchor: str) -> None:
    line = Line(label="a", number=0, style=Style(0, ""), x=np.array([10.0, 1000.0]), y=np.array([1.0, 2.0]))
    mark = Mark(start=start, end=start, text="t0 & co")
    drawn = svg(chart_of(line, y_log=False, marks=[mark]), ident="a")
    words = re.search(r'<text ([^>]*) class="note">t0 &amp; co</text>', drawn)
    assert words is not None
    assert anchor in words[1]
    assert words[1].endswith('y="39"')
    outside = Mark(start=5000.0, end=6000.0, text="too late")
    assert "too late" not in svg(chart_of(line, y_log=False, marks=[outside]), ident="a")


def test_figures_name_every_line(summary: Summary, tmp_path: Path) -> None:
    """Bounds stand in the legend of a figure, after the algorithms."""
    bounds: Bounds = {"eager": lambda _, t: 10.0 * np.sqrt(t)}
    chart = next(c for c in all_charts(summary, bounds) if c.name == "calm-log-log")
    names = re.findall(r'class="name">([^<]*)<', standalone(chart))
    assert len(names) == len(chart.lines) == 4
    assert [name.startswith("bound for") for name in names] == [False, False, False, True]
    files, _ = write_figures([chart], tmp_path)
    assert {file.suffix for file in files} == {".svg", ".pdf", ".png"}
