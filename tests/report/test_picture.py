"""The main picture: which worlds and algorithms it shows, what it says, and that its labels do not overlap."""

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

import bothworlds as bw
from bothworlds.cli import main
from bothworlds.report import Look, Summary, page, summary_of, write_figures
from bothworlds.report.chart import Picture
from bothworlds.report.data import all_data, chart_data
from bothworlds.report.export import matplotlib_figure
from bothworlds.report.figure_style import select
from bothworlds.report.figures import all_figures, strip_chart
from bothworlds.report.picture import chosen, is_default, picture, sentences
from bothworlds.report.svg import IN_PICTURE, standalone_picture
from bothworlds.report.tables import number
from bothworlds.studies.folder import read_folder
from support.report_study import Nesting

CONTENT: dict[str, Any] = {
    "horizon": 400,
    "replications": 1,
    "instances": 4,
    "seed": 3,
    "checkpoints": 30,
    "references": True,
    "sizes": {"contexts": 3, "arms": 2, "dimension": 2},
    "environments": {"calm": {"kind": "stochastic"}, "hostile": {"kind": "adaptive-adversary"}},
    "algorithms": {
        "ours": {"kind": "LCTsallisINF"},
        "certified": {"kind": "LCTsallisINF", "tuning": "certified"},
        "LinUCB": {"kind": "LinUCB"},
        "OFUL": {"kind": "OFUL"},
        "even": {"kind": "uniform"},
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("picture") / "results"
    bw.run_study(bw.Study.from_dict(CONTENT), place, threads=1, quiet=True)
    return place


@pytest.fixture(scope="module")
def summary(folder: Path) -> Summary:
    return summary_of(read_folder(folder))


def main_picture(summary: Summary) -> Picture:
    found = picture(summary)
    assert found is not None
    return found


def test_two_worlds_on_linear_axes_from_round_zero(summary: Summary) -> None:
    main_one = main_picture(summary)
    assert [chart.title for chart in main_one.charts] == ["The world stays as it is", "The world reacts to you"]
    for chart, panel in zip(main_one.charts, summary.panels, strict=True):
        assert not chart.x_log
        assert not chart.y_log
        assert [line.label for line in chart.lines] == ["ours", "certified", "LinUCB", "OFUL"]
        assert [line.short for line in chart.lines] == ["default rule", "certified", "LinUCB", "OFUL"]
        low, high = chart.y_range
        for line, entry in zip(chart.lines, panel.entries, strict=False):
            assert (line.x[0], line.y[0]) == (0.0, 0.0)
            np.testing.assert_allclose(line.y[1:], entry.run.regret)
            band = np.quantile(entry.run.paths, [0.1, 0.9], axis=0)
            assert line.low is not None
            assert line.high is not None
            np.testing.assert_allclose([line.low[1:], line.high[1:]], band)
            assert low <= line.low.min() <= line.high.max() <= high
    assert main_one.title == (
        "Lines: mean regret over 4 random instances, bands: the middle 80 % of them. Lower is better."
    )


def test_the_users_own_algorithm_is_in_the_picture() -> None:
    kinds = ("OFUL", "uniform", "RealFTRL", "LinUCB", "RealLinExp3", "mine.py:Greedy", "LCTsallisINF")
    assert chosen({kind: {"kind": kind} for kind in kinds}) == [
        "LinUCB",
        "RealLinExp3",
        "mine.py:Greedy",
        "LCTsallisINF",
    ]
    assert chosen({kind: {"kind": kind} for kind in ("uniform", "OFUL")}) == ["uniform", "OFUL"]
    assert is_default({"kind": "LCTsallisINF", "tuning": "matched"})
    assert not is_default({"kind": "LCTsallisINF", "alpha": 0.3})
    assert not is_default({"kind": "LCTsallisINF", "tuning": {"kind": "matched", "gain": 0.5}})


def test_the_sentences_are_those_of_the_table(summary: Summary) -> None:
    calm, hostile = ({entry.label: entry.regret.value for entry in panel.entries} for panel in summary.panels)
    cost, worth = sentences(summary)
    rival = min(("LinUCB", "OFUL"), key=calm.__getitem__)
    assert rival in cost
    assert rival in worth
    assert f"regret {number(calm['ours'])} after 400 rounds" in cost
    assert f"{rival} has regret {number(hostile[rival])}, and ours has {number(hostile['ours'])}" in worth
    difference = calm["ours"] - calm[rival]
    if difference > 0.0:
        share = difference / calm["even"]
        assert f"{number(difference)} more than {rival}" in cost
        assert f"loses in {400 * share:,.0f} rounds, " in cost
    others = replace(summary, study=replace(summary.study, algorithms={"x": {"kind": "LinUCB"}}))
    assert sentences(others) == []


def test_a_study_without_these_worlds_has_no_picture(summary: Summary) -> None:
    assert picture(replace(summary, panels=[])) is None
    (only,) = main_picture(replace(summary, panels=summary.panels[1:])).charts
    assert only.title == "The world reacts to you"
    assert sentences(replace(summary, panels=summary.panels[1:])) == []


def test_labels_at_the_ends_do_not_overlap(summary: Summary) -> None:
    drawn = standalone_picture(main_picture(summary))
    ElementTree.fromstring(drawn)
    assert "prefers-color-scheme:dark" in drawn
    panels = drawn.split("<g transform=")[1:]
    assert len(panels) == 2
    for panel in panels:
        heights = sorted(float(y) for y in re.findall(r'<text class="end[^>]* y="([\d.]+)"', panel))
        assert len(heights) == 4
        assert min(np.diff(heights)) >= IN_PICTURE.apart - 0.11


@pytest.mark.parametrize("font", ["sans", "serif", "tex"])
@pytest.mark.parametrize("width", ["column", "page"])
def test_no_text_leaves_the_figure(summary: Summary, font: str, width: str) -> None:
    look = Look(width=width, font_size=8.0, font=font)
    for chart in (main_picture(summary), strip_chart(summary)):
        figure = matplotlib_figure(chart, look)
        figure.draw_without_rendering()
        for axes in figure.axes:
            texts = [axes.yaxis.label, axes.xaxis.label, axes.title, *axes.texts, *axes.get_xticklabels()]
            for text in [one for one in texts if one.get_text()]:
                box = text.get_window_extent()
                assert figure.bbox.x0 - 1 <= box.x0 <= box.x1 <= figure.bbox.x1 + 1, text
                assert figure.bbox.y0 - 1 <= box.y0 <= box.y1 <= figure.bbox.y1 + 1, text
            boxes = sorted((text.get_window_extent() for text in axes.texts), key=lambda box: float(box.y0))
            assert all(upper.y0 >= lower.y1 - 2.0 for lower, upper in itertools.pairwise(boxes))
    with pytest.raises(ValueError, match="font must be one of sans, serif, tex"):
        Look(font="comic")


def test_the_strip_has_a_dot_for_every_instance(summary: Summary) -> None:
    chart = strip_chart(summary)
    assert len(chart.lines) == 5
    for line in chart.lines:
        assert not line.joined
        assert line.spots is not None
        assert line.spots.shape == (2, 4)
        assert chart.y_range[1] >= line.spots.max()
    assert len({round(float(line.x[0]), 6) for line in chart.lines}) == 5
    assert "spots" in json.dumps(chart_data(chart))
    row = all_data(summary)["regimes"][0]["algorithms"][0]
    assert len(row["ratios_by_instance"]) == 4


def test_the_page_opens_with_the_picture(summary: Summary) -> None:
    text = page(summary)
    Nesting.of(text)
    assert (
        text.index("The world stays as it is</p>")
        < text.index("The world reacts to you</p>")
        < text.index('data-chart="strip"')
    )
    assert sentences(summary)[0] in text
    assert "4 random instances of every regime (seeds 3 to 6), 1 replication of each" in text
    assert "small dots: single instances" in text
    assert "Bands: the middle 80 % of instances" in text


def test_selected_figures_with_table_and_curves(folder: Path, summary: Summary, tmp_path: Path) -> None:
    target = tmp_path / "paper"
    arguments = ["report", str(folder), "--figures", str(target), "--only", "comparison,strip", "--font", "serif"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    names = {"comparison", "strip"}
    assert {path.stem for path in target.glob("*.svg")} == names
    assert (target / "table.tex").read_text(encoding="utf-8").startswith("% study: regret at the horizon")
    assert len((target / "curves.csv").read_text(encoding="utf-8").splitlines()) > 100
    assert "Georgia" in (target / "comparison.svg").read_text(encoding="utf-8")
    for wrong, code, words in (
        (["--figures", str(target), "--only", "stripe"], 3, "did you mean 'strip'?"),
        (["--only", "strip"], 2, "need --figures"),
        (["--figures", str(target), "--font", "comic"], 2, "comic"),
    ):
        failed = CliRunner().invoke(main, ["report", str(folder), *wrong])
        assert (failed.exit_code, words in failed.stderr) == (code, True), failed.output
    assert [figure.name for figure in select(all_figures(summary), None)][:2] == ["comparison", "strip"]


def test_a_selection_of_algorithms_applies_to_the_picture(summary: Summary, tmp_path: Path) -> None:
    look = Look(algorithms=["LinUCB", "ours"], labels={"ours": "mine"})
    write_figures([main_picture(summary)], tmp_path, look=look)
    drawn = (tmp_path / "comparison.svg").read_text(encoding="utf-8")
    assert re.findall(r'<text class="end[^>]*>([^<]*)<', drawn) == ["LinUCB", "mine"] * 2
    files, _ = write_figures([main_picture(summary)], tmp_path / "none", look=Look(algorithms=["even"]))
    assert files == []
