"""Reports: well-formed, offline, escaped, and with the numbers of the results."""

import base64
import csv
import io
import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

import bothworlds as bw
from bothworlds.environments import Environment
from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.report import Summary, page, summary_of, write_figures
from bothworlds.report.chart import Chart, Line, ticks
from bothworlds.report.data import all_data
from bothworlds.report.figures import all_charts, corruption_marks
from bothworlds.report.palette import KNOWN, Style, styles
from bothworlds.report.statistics import growth_exponent, local_exponents, mean_of, scores, student_quantile
from bothworlds.report.svg import svg
from bothworlds.report.tables import latex_table
from bothworlds.report.terminal import plot_text, table_text
from bothworlds.report.theorems import covered_as, theorem_bounds
from bothworlds.simulation.folder import read_folder

EVIL = "<script>alert('x')</script> & \"paper\" 100% $x_1$"
CONTENT: dict[str, Any] = {
    "name": "names & <b>tags</b>",
    "horizon": 600,
    "replications": 4,
    "checkpoints": 40,
    "sizes": {"contexts": 3, "arms": 2, "dimension": 2},
    "environments": {
        "calm": {"kind": "stochastic"},
        "hit": {"kind": "corrupted", "budget": 20},
        "tired <i>ads</i>": {"kind": "ad-fatigue"},
    },
    "algorithms": {
        EVIL: {"kind": "LCTsallisINF", "tuning": "paper"},
        "adaptive": {"kind": "LCTsallisINF", "tuning": "adaptive"},
        "uniform": {"kind": "uniform"},
    },
}
VOID = {"meta", "link", "br", "img", "hr", "input"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("results")
    bw.run_study(bw.Study.from_dict(CONTENT), path, threads=1)
    return path


@pytest.fixture(scope="module")
def summary(folder: Path) -> Summary:
    return summary_of(read_folder(folder))


@pytest.fixture(scope="module")
def text(summary: Summary) -> str:
    return page(summary)


class Nesting(HTMLParser):
    """Checks that every element is closed by its own end tag, and collects identifiers and links."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.headings: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            self.ids += [value or ""] if name == "id" else []
            self.links += [value or ""] if name in ("href", "src") else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    @classmethod
    def of(cls, text: str) -> "Nesting":
        found = cls()
        found.feed(text)
        found.close()
        assert found.open == []
        return found


def test_the_page_is_well_formed_and_its_links_lead_somewhere(text: str) -> None:
    found = Nesting.of(text)
    assert len(found.ids) == len(set(found.ids))
    inner = [link[1:] for link in found.links if link.startswith("#")]
    assert inner
    assert set(inner) <= set(found.ids)
    drawings = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    assert len(drawings) > 9
    for drawing in drawings:
        ElementTree.fromstring(drawing)


def test_the_page_needs_no_network(text: str) -> None:
    assert not re.search(r"https?://|//cdn|@import|<iframe|<img", text)
    assert all(link.startswith(("#", "data:")) for link in Nesting.of(text).links)
    assert all(place.startswith("#") for place in re.findall(r"url\(([^)]*)\)", text))


def test_names_of_users_are_escaped(text: str) -> None:
    assert "<script>alert" not in text
    assert "<b>tags" not in text
    assert "<i>ads" not in text
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt; &amp; &quot;paper&quot;" in text


def test_every_chart_has_a_title_and_a_description(text: str) -> None:
    charts = re.findall(r'<svg viewBox="0 0 460 320".*?</svg>', text, flags=re.DOTALL)
    assert len(charts) == 12
    for chart in charts:
        assert 'role="img"' in chart
        root = ElementTree.fromstring(chart)
        assert root.findtext("title")
        assert root.findtext("desc")


def embedded(text: str, name: str) -> str:
    found = re.search(rf'download="{name}" href="data:[a-z/-]+;base64,([^"]+)"', text)
    assert found is not None
    return base64.b64decode(found[1]).decode()


def test_the_embedded_numbers_are_those_of_the_results(text: str, summary: Summary) -> None:
    rows = list(csv.DictReader(io.StringIO(embedded(text, "curves.csv"))))
    content = json.loads(embedded(text, "results.json"))
    curves = {(curve["regime"], curve["algorithm"]): curve for curve in content["curves"]}
    for panel in summary.panels:
        for entry in panel.entries:
            mine = [row for row in rows if row["regime"] == panel.name and row["algorithm"] == entry.label]
            assert [int(row["t"]) for row in mine] == entry.rounds.tolist()
            assert [float(row["regret"]) for row in mine] == pytest.approx(entry.run.regret.tolist(), rel=1e-7)
            assert curves[panel.name, entry.label]["q90"] == pytest.approx(entry.run.quantiles([0.9])[0], rel=1e-7)
    assert len(rows) == sum(len(entry.rounds) for panel in summary.panels for entry in panel.entries)


def test_the_embedded_study_is_the_study(text: str, tmp_path: Path) -> None:
    path = tmp_path / "again.toml"
    path.write_text(embedded(text, "study.toml"), encoding="utf-8")
    assert bw.Study.from_toml(path) == bw.Study.from_dict(CONTENT)


def test_what_the_page_says(text: str) -> None:
    for words in ("corruption C = 20", "not policy regret", "best fixed mixture, replayed", "growth exponent", "★"):
        assert words in text
    assert "prefers-color-scheme:dark" in text
    assert "@media print" in text


def test_a_bound_is_drawn_where_it_says_something(summary: Summary) -> None:
    def bound(environment: Environment, rounds: Ints) -> Floats | None:
        return 10.0 * np.sqrt(rounds) if environment.stochastic else None

    drawn = page(summary, bounds={"adaptive": bound})
    assert drawn.count("<title>bound for adaptive</title>") == 2  # calm and hit, not the tired ads
    assert "Dotted: the theorem" in drawn
    assert "bound for" not in page(summary)


def test_corruption_that_depends_on_the_learner_is_marked_for_each(tmp_path: Path) -> None:
    world = {"hit": {"kind": "corrupted", "budget": 5, "placement": "adaptive"}}
    bw.run_study(bw.Study.from_dict({**CONTENT, "environments": world}), tmp_path, threads=1)
    (panel,) = summary_of(read_folder(tmp_path)).panels
    marks = corruption_marks(panel)
    spent = [entry for entry in panel.entries if entry.run.spent[-1] > 0.0]
    assert [mark.colour for mark in marks] == [entry.style.colour for entry in spent]
    assert "uniform" not in [entry.label for entry in spent]  # it is never sure
    assert all(mark.start == mark.end for mark in marks)


def test_json_has_no_nan(summary: Summary) -> None:
    json.dumps(all_data(summary), allow_nan=False)


def test_latex_has_one_cell_per_column_and_no_live_commands(summary: Summary) -> None:
    latex = latex_table(summary)
    body = [line for line in latex.splitlines() if line.endswith("\\\\")]
    assert len(body) == 4
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {5}
    assert "100\\% \\$x\\_1\\$" in latex


def test_the_terminal_shows_table_and_plot(summary: Summary) -> None:
    wide, narrow = table_text(summary, width=200), table_text(summary, width=40)
    medium = table_text(summary, width=max(len(line) for line in wide.splitlines()) - 1)
    assert "tired <i>ads</i>*" in wide.splitlines()[0]
    assert wide.splitlines()[-1].startswith("* total reward")
    assert ("±" in wide, "±" in medium) == (True, False)
    assert narrow.count("\n") > wide.count("\n") == medium.count("\n")
    drawn = plot_text(summary.panels[0], width=60, height=8)
    assert any("\u2801" <= c <= "\u28ff" for c in drawn)
    assert "b adaptive" in drawn
    assert all(len(line) <= 64 for line in drawn.splitlines()[:-3])


def test_one_replication_and_one_algorithm_make_a_page(tmp_path: Path) -> None:
    small = {**CONTENT, "replications": 1, "horizon": 3, "algorithms": {"only": {"kind": "uniform"}}}
    bw.run_study(bw.Study.from_dict(small), tmp_path, threads=1)
    Nesting.of(page(summary_of(read_folder(tmp_path))))


def test_panels_with_similar_names_are_kept_apart(tmp_path: Path) -> None:
    worlds = {name: {"kind": "stochastic"} for name in ("x y", "x-y", "x y 2", "\u65e5\u672c", "\u4e2d", "cost", "")}
    study = {**CONTENT, "horizon": 30, "environments": worlds, "algorithms": {"only": {"kind": "uniform"}}}
    bw.run_study(bw.Study.from_dict(study), tmp_path, threads=1)
    summary = summary_of(read_folder(tmp_path))
    found = Nesting.of(page(summary))
    assert len(found.ids) == len(set(found.ids))
    assert len({chart.name for chart in all_charts(summary)}) == 21


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
    assert "bothworlds[report]" in note


def test_colours_belong_to_algorithms() -> None:
    many: list[dict[str, Any]] = [{"kind": "LinUCB"}, *({"kind": f"own {i}"} for i in range(20)), {"kind": "LinUCB"}]
    found = styles(many)
    assert found[0] == styles([{"kind": "OFUL"}, {"kind": "LinUCB"}])[1]
    assert len(set(found)) == len(many)
    assert len(set(KNOWN.values())) == len(KNOWN)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 19, 99])
def test_student_quantiles(freedom: int) -> None:
    # measured: at most 0.4 % off, at three degrees of freedom
    assert student_quantile(0.975, freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=0.005)


def test_growth_exponents_of_known_curves() -> None:
    t = np.unique(np.geomspace(1, 100_000, 200).astype(np.int64))
    for exponent in (0.25, 0.5, 1.0):
        paths = np.outer([1.0, 2.0, 3.0], t**exponent)
        assert growth_exponent(t, paths) == pytest.approx((exponent, 0.0), abs=1e-9)
    assert growth_exponent(t, np.log(t + 1.0)[None, :]).value < 0.11
    assert np.isnan(growth_exponent(t, -np.ones((2, len(t)))).value)
    assert np.isnan(growth_exponent(t[:3], np.ones((2, 3))).value)


def test_local_exponents_see_a_bend() -> None:
    """Linear up to a thousand rounds, constant from then on: the exponent falls from 1 to 0."""
    t = np.unique(np.geomspace(1, 100_000, 200).astype(np.int64))
    rounds, found = local_exponents(t, np.minimum(t, 1000.0)[None, :])
    assert rounds[0] == pytest.approx(100, rel=0.05)
    assert rounds[-1] == 100_000
    assert found[rounds <= 1000, 0] == pytest.approx(1.0)
    assert found[rounds > 10_100, 0] == pytest.approx(0.0, abs=1e-12)
    assert (np.diff(found[:, 0]) <= 1e-12).all()


def test_growth_interval_covers_the_truth() -> None:
    """R_t = a sqrt(t) with random a and random wiggles: the 95 % interval covers 1/2 about as often as it says."""
    rng, t = np.random.default_rng(1), np.geomspace(100, 10_000, 40).astype(np.int64)
    hits = 0
    for _ in range(400):
        powers = 0.5 + 0.05 * rng.normal(size=(12, 1))
        hits += abs((e := growth_exponent(t, (t / 1000.0) ** powers)).value - 0.5) <= e.half
    assert 0.91 <= hits / 400 <= 0.98  # measured 0.945


def test_means_and_scores() -> None:
    value, half = mean_of(np.array([1.0, 2.0, 3.0]))
    assert value == 2.0
    assert half == pytest.approx(stats.t.ppf(0.975, 2) / np.sqrt(3.0))
    assert scores([5.0, 5.0]) == [100.0, 100.0]


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


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the browser chromium")
def test_in_a_browser(text: str, tmp_path: Path) -> None:
    """No error on the console, and a button of the legend hides its algorithm in every chart."""
    probe = """<script>
    document.querySelector('.legend button[data-algorithm="1"]').click();
    const parts = [...document.querySelectorAll('svg g[data-algorithm="1"]')];
    document.title = `hidden ${parts.filter(p => getComputedStyle(p).display === "none").length} of ${parts.length}`;
    </script></body>"""
    path = tmp_path / "page.html"
    path.write_text(text.replace("</body>", probe), encoding="utf-8")
    command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    done = subprocess.run([*command, path.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r"<title>hidden (\d+) of (\d+)</title>", done.stdout)
    assert found is not None
    assert found[1] == found[2] != "0"
    assert "CONSOLE" not in done.stderr


def test_theorems_become_lines_where_they_hold(summary: Summary) -> None:
    lines = theorem_bounds(summary)
    assert list(lines) == [EVIL]  # nothing is proved for "adaptive", and uniform play learns nothing
    calm, hit, tired = summary.panels
    for panel in (calm, hit):
        entry = panel.entries[0]
        values = lines[EVIL](panel.environment, entry.rounds)
        assert values is not None
        assert (np.diff(values) > 0).all()
        assert (entry.run.regret < values).all()
        assert (values <= 2.0 * entry.rounds).all()
    assert lines[EVIL](tired.environment, tired.entries[0].rounds) is None
    drawn = page(summary, bounds=lines)
    assert drawn.count("the theorem's bound") == 2
    assert drawn.count("<title>bound for ") == 2


def test_a_bound_knows_gap_margin_and_corruption(tmp_path: Path) -> None:
    T = 10**6
    content = {
        **CONTENT,
        "sizes": {"contexts": 2, "arms": 2, "dimension": 2, "gap": 0.8},
        "environments": {
            "calm": {"kind": "stochastic"},
            "hit": {"kind": "corrupted", "budget": 20},
            "margin": {"kind": "stochastic", "margin": 1.0},
            "hostile": {"kind": "adaptive-adversary"},
        },
        "algorithms": {"certified": {"kind": "LCTsallisINF"}, "Shannon": {"kind": "RealFTRL", "horizon": T}},
    }
    bw.run_study(bw.Study.from_dict(content), tmp_path, threads=1, quiet=True)
    summary = summary_of(read_folder(tmp_path))
    lines, t = theorem_bounds(summary), np.array([1000, T])
    for label, name in (("certified", "LC-Tsallis-INF, certified"), ("Shannon", "BoBW-RealFTRL")):
        at_end = {p.name: lines[label](p.environment, t)[-1] for p in summary.panels}  # type: ignore[index]
        for regime, known in (
            ("calm", {}),
            ("hit", {"corruption": 20.0}),
            ("margin", {"margin": 1.0}),
            ("hostile", None),
        ):
            panel = next(p for p in summary.panels if p.name == regime)
            gap: dict[str, float] = {} if known is None else {"gap": 0.8, **known}
            table = bw.bounds(panel.environment.problem, horizon=T, **gap)  # type: ignore[arg-type]
            expected = min(b.value for b in table if b.name == name)
            if regime == "margin":  # the smallest gap may say more
                assert at_end[regime] <= expected
            else:
                assert at_end[regime] == pytest.approx(expected, rel=1e-12)
        assert at_end["calm"] < at_end["hit"] < at_end["hostile"]


def test_what_no_theorem_covers() -> None:
    nothing = [
        bw.LCTsallisINF(alpha=0.3),
        bw.LCTsallisINF(tuning="adaptive"),
        bw.LCTsallisINF(tuning=bw.Certified(batch=2)),
        bw.LCTsallisINF(tuning=bw.Certified(c=0.3)),
        bw.LCTsallisINF(tuning="paper", covariance=bw.MGR()),
        bw.RealFTRL(),
        bw.LinUCB(),
    ]
    assert [covered_as(algorithm) for algorithm in nothing] == [None] * len(nothing)
    assert covered_as(bw.LCTsallisINF(tuning=bw.Certified(c=0.125))) == "LC-Tsallis-INF, certified"
    assert covered_as(bw.LCTsallisINF(tuning=bw.Paper(finite_support=False))) == "LC-Tsallis-INF, paper, any support"


def test_late_feedback_has_no_bound(tmp_path: Path) -> None:
    algorithms = {"certified": {"kind": "LCTsallisINF"}}
    bw.run_study(bw.Study.from_dict({**CONTENT, "algorithms": algorithms, "delay": 3}), tmp_path, threads=1, quiet=True)
    assert theorem_bounds(summary_of(read_folder(tmp_path))) == {}
