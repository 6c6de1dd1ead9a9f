"""Figures for papers, results in notebooks, curves from elsewhere, pages of single simulations."""

import base64
import gzip
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.cli import main
from bothworlds.report import Look, Summary, page, summary_from, write_figures, write_report
from bothworlds.report.data import curves_csv
from bothworlds.report.export import matplotlib_figure
from bothworlds.report.figure_style import check_labels
from bothworlds.report.figures import all_charts, linear_chart
from bothworlds.report.overlay_curves import for_regimes, of_csv, read_overlays
from bothworlds.report.theorems import theorem_bounds
from bothworlds.simulation.results import Results, load_results
from support.report_study import EVIL, Nesting, made_summary
from support.report_study import summary_from as ran

FEW = {
    "name": "few",
    "horizon": 50,
    "replications": 2,
    "environments": {"calm": {"kind": "stochastic"}},
    "algorithms": {"even": {"kind": "uniform"}, "same": {"kind": "uniform"}},
}


@pytest.fixture
def summary() -> Summary:
    return made_summary()


@pytest.fixture(scope="module")
def results() -> Results:
    world = en.stochastic(en.random_instance(contexts=2, arms=2, dimension=2, gap=0.3))
    players = {"ours": bw.LCTsallisINF(tuning="paper"), "even": bw.FixedPolicy()}
    return bw.simulate(world, players, horizon=300, replications=3, rng=1)


def test_letters_are_embedded_as_truetype_and_the_width_is_kept(summary: Summary, tmp_path: Path) -> None:
    look = Look(width="column", font_size=8.0, algorithms=["uniform", "eager"], labels={"eager": "ours"})
    files, _ = write_figures(all_charts(summary)[1:2], tmp_path, look=look)
    content = next(file for file in files if file.suffix == ".pdf").read_bytes()
    assert b"/Type3" not in content
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", content)
    assert box is not None
    assert float(box[1]) == pytest.approx(72 * 3.25)
    drawn = next(file for file in files if file.suffix == ".svg").read_text(encoding="utf-8")
    assert re.findall(r'class="name">([^<]*)<', drawn) == ["uniform", "ours"]
    again, _ = write_figures(all_charts(summary)[1:2], tmp_path / "again", look=look)
    assert next(file for file in again if file.suffix == ".pdf").read_bytes() == content  # no date in it


def test_regimes_are_named_and_no_label_is_cut_off(summary: Summary) -> None:
    chart = all_charts(summary)[0]
    figure = matplotlib_figure(chart)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == list(chart.x_names)
    for label in (axes.yaxis.label, *axes.get_xticklabels()):
        box = label.get_window_extent()
        assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1


def test_grey_figures_have_no_colour(summary: Summary, tmp_path: Path) -> None:
    from matplotlib import image

    files, _ = write_figures(all_charts(summary)[1:3], tmp_path, look=Look(grey=True))
    for file in files:
        if file.suffix == ".png":
            pixels = image.imread(file)[:, :, :3]
            assert np.abs(pixels - pixels.mean(axis=2, keepdims=True)).max() < 0.01


def test_looks_are_checked(summary: Summary) -> None:
    for wrong, words in (
        ({"width": "wide"}, "one of column, page"),
        ({"width": 0.1}, "inches"),
        ({"font_size": 0}, "font"),
    ):
        with pytest.raises(ValueError, match=words):
            Look(**wrong)
    with pytest.raises(ValueError, match="no algorithm 'nobody'"):
        check_labels(Look(algorithms=["nobody"]), summary.labels)


def test_curves_from_elsewhere_are_laid_over(summary: Summary, tmp_path: Path) -> None:
    ran(
        {
            "name": "other",
            "horizon": 50,
            "replications": 2,
            "environments": {"calm": {"kind": "stochastic"}},
            "algorithms": {"even": {"kind": "uniform"}},
        },
        tmp_path / "other",
    )
    mine = tmp_path / "mine.csv"
    mine.write_text("regime,algorithm,t,regret\ncalm,mine,1,0.5\ncalm,mine,600,20\n", encoding="utf-8")
    saved = tmp_path / "curves.csv.gz"
    saved.write_bytes(gzip.compress(curves_csv(summary).encode()))
    overlays = read_overlays([mine, tmp_path / "other"])
    charts = {chart.name: chart for chart in all_charts(summary, overlays=overlays)}
    for name in ("calm-log-x", "calm-log-log"):
        lines = charts[name].lines
        assert [line.label for line in lines[-2:]] == ["mine", "even (other)"]
        assert len({line.number for line in lines}) == len(lines) == len({line.style for line in lines}) == 5
        assert lines[-2].low is None
        assert lines[-1].low is not None
    assert len(charts["hit-log-x"].lines) == 3
    text = page(summary, overlays=overlays)
    numbers = {line.label: line.number for line in charts["calm-log-x"].lines}
    for label in ("mine", "even (other)"):  # a button in that regime, and lines in both of its charts
        assert len(re.findall(rf'<button [^>]*data-algorithm="{numbers[label]}">', text)) == 1
        assert len(re.findall(rf'<g [^>]*data-algorithm="{numbers[label]}"', text)) == 2
    Nesting.of(text)
    again = of_csv(saved)["calm"]
    assert [curve.label for curve in again] == summary.labels
    assert again[0].regret == pytest.approx(summary.panels[0].entries[0].run.regret, rel=1e-6)
    for content, words in (
        ("a,b\n1,2\n", "no column 'regime'"),
        ("regime,algorithm,t,regret\nc,m,5,1\nc,m,2,1\n", "rising"),
        ("regime,algorithm,t,regret\nc,m,x,1\n", "column t"),
    ):
        mine.write_text(content, encoding="utf-8")
        with pytest.raises(ValueError, match=words):
            of_csv(mine)


def test_curves_for_a_regime_that_is_not_there_are_told_of(summary: Summary, tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_text("regime,algorithm,t,regret\nstorm,mine,1,0.5\ncalm,mine,1,0.5\n", encoding="utf-8")
    overlays = read_overlays([mine])
    for drawn in (page, all_charts):
        with pytest.raises(ValueError, match="curves for 'storm', but the regimes here are 'calm', 'hit'"):
            drawn(summary, overlays=overlays)
    kept, others = for_regimes(overlays, ["calm", "hit"])
    assert (list(kept), others) == (["calm"], ["storm"])
    folder = tmp_path / "results"
    ran(FEW, folder)
    said = CliRunner().invoke(main, ["report", str(folder), "--with", str(mine)])
    assert said.exit_code == 0
    assert "does not have: storm" in said.stderr
    assert ">mine<" in (folder / "report.html").read_text(encoding="utf-8")
    mine.write_text("regime,algorithm,t,regret\nstorm,mine,1,0.5\n", encoding="utf-8")
    said = CliRunner().invoke(main, ["report", str(folder), "--with", str(mine)])
    assert said.exit_code == 3
    assert "curves for 'storm', but the regimes here are 'calm'" in said.stderr


def test_the_command_line_says_how_figures_look(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    ran(FEW, folder)
    base = ["report", str(folder), "--figures", str(tmp_path / "figures")]
    look = ["--width", "page", "--font-size", "8", "--grey", "--algorithms", "same", "--label", "same=mine"]
    done = CliRunner().invoke(main, [*base, *look])
    assert done.exit_code == 0, done.output
    drawn = (tmp_path / "figures" / "calm-log-x.svg").read_text(encoding="utf-8")
    assert re.findall(r'class="name">([^<]*)<', drawn) == ["mine"]
    for wrong, code, words in (
        (["report", str(folder), "--grey"], 2, "need --figures"),
        ([*base, "--label", "same"], 2, "is not of the form OLD=NEW"),
        ([*base, "--algorithms", "nobody"], 3, "no algorithm 'nobody'"),
        ([*base, "--with", str(tmp_path / "gone.csv")], 3, "no such file"),
    ):
        failed = CliRunner().invoke(main, wrong)
        assert (failed.exit_code, words in failed.stderr) == (code, True), failed.output


def test_results_in_a_notebook(results: Results) -> None:
    figure = results.plot(width=5.0, log=True, labels={"ours": "mine"})
    assert figure.get_size_inches()[0] == 5.0
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["mine", "even"]
    text = results._repr_html_()
    Nesting.of(text)
    assert text.index("<td>ours</td>") < text.index("<td>even</td>")  # smallest regret first
    picture = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', text)
    assert picture is not None
    ElementTree.fromstring(base64.b64decode(picture[1]).decode())
    with pytest.raises(ValueError, match="no algorithm 'x'"):
        results.plot(algorithms=["x"])


def test_a_page_of_a_simulation(results: Results, tmp_path: Path) -> None:
    path = write_report(results, tmp_path / "one.html")
    text = path.read_text(encoding="utf-8")
    Nesting.of(text)
    assert "bw.simulate(world, algorithms, horizon=300, replications=3" in text
    assert "worst ratio" not in text  # nobody to be measured by
    summary = summary_from(results)
    assert list(theorem_bounds(summary)) == ["ours"]
    assert [line.baseline for line in linear_chart(summary.panels[0]).lines] == [False, True]
    assert summary.panels[0].exploration[0].exact
    results.save(tmp_path / "kept.npz")
    with pytest.raises(ValueError, match="do not contain their world"):
        page(load_results(tmp_path / "kept.npz"))


def test_awkward_names_stay_in_their_place(summary: Summary) -> None:
    assert Look(labels={EVIL: "x"}).of(all_charts(summary)[1]).lines[0].label == "x"
