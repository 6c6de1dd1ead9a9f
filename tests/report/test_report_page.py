"""The page: well-formed, offline, escaped, and with the numbers of the results."""

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.arrays import Floats, Ints
from bothworlds.environments import Environment
from bothworlds.report import Summary, page
from bothworlds.report.data import all_data
from bothworlds.report.figures import all_charts
from bothworlds.report.tables import latex_table, number
from bothworlds.report.terminal import plot_text, table_text
from support.report_study import CONTENT, Nesting, embedded, made_page, made_summary, summary_from


@pytest.fixture
def summary() -> Summary:
    return made_summary()


@pytest.fixture
def text() -> str:
    return made_page()


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
    charts = re.findall(r'<svg viewBox="0 0 560 330".*?</svg>', text, flags=re.DOTALL)
    assert len(charts) == 14
    for chart in charts:
        assert 'role="img"' in chart
        root = ElementTree.fromstring(chart)
        assert root.findtext("title")
        assert root.findtext("desc")


def test_the_embedded_numbers_are_those_of_the_results(text: str, summary: Summary) -> None:
    rows = list(csv.DictReader(io.StringIO(embedded(text, "curves.csv.gz"))))
    content = json.loads(embedded(text, "results.json"))
    told = {(one["regime"], row["algorithm"]): row for one in content["regimes"] for row in one["algorithms"]}
    for panel in summary.panels:
        for entry in panel.entries:
            mine = [row for row in rows if row["regime"] == panel.name and row["algorithm"] == entry.label]
            assert [int(row["t"]) for row in mine] == entry.rounds.tolist()
            assert [float(row["regret"]) for row in mine] == pytest.approx(entry.run.regret.tolist(), rel=1e-7)
            quantiles = entry.run.quantiles([0.9])[0]
            assert [float(row["q90"]) for row in mine] == pytest.approx(quantiles.tolist(), rel=1e-7)
            assert told[panel.name, entry.label]["regret"]["mean"] == pytest.approx(entry.regret.value, rel=1e-7)
    assert len(rows) == sum(len(entry.rounds) for panel in summary.panels for entry in panel.entries)


def test_the_embedded_study_is_the_study(text: str, tmp_path: Path) -> None:
    path = tmp_path / "again.toml"
    path.write_text(embedded(text, "study.toml"), encoding="utf-8")
    assert bw.Study.from_toml(path) == bw.Study.from_dict(CONTENT)


def test_what_the_page_says(text: str) -> None:
    marked = ("corruption C = 20", "Grey: the rounds in which feedback was tampered with", "★")
    told = ("not policy regret", "best fixed mixture, replayed", "growth exponent", "Negative regret")
    for words in (*marked, *told, "An ad that is shown often works less"):
        assert words in text
    assert "prefers-color-scheme:dark" in text
    assert "@media print" in text


def test_a_bound_is_drawn_where_it_says_something(summary: Summary) -> None:
    def bound(environment: Environment, rounds: Ints) -> Floats | None:
        return 10.0 * np.sqrt(rounds) if environment.stochastic else None

    drawn = page(summary, bounds={"eager": bound})
    assert drawn.count("<title>bound for eager</title>") == 2  # calm and hit, not the tired ads
    assert drawn.count("Fine dots: the theorem") == 2
    assert drawn.count('<th scope="col">theorem’s bound</th>') == 2
    assert drawn.count(f"</svg>{number(10.0 * np.sqrt(600))}</td>") == 2
    rows = list(csv.DictReader(io.StringIO(embedded(drawn, "curves.csv.gz"))))
    proved = {(row["regime"], row["algorithm"]) for row in rows if row["bound"]}
    assert proved == {("calm", "eager"), ("hit", "eager")}
    assert all(float(row["bound"]) == pytest.approx(10.0 * float(row["t"]) ** 0.5) for row in rows if row["bound"])
    plain = page(summary)
    assert "bound for" not in plain
    assert "theorem’s bound" not in plain


def test_how_often_contexts_come_and_arms_are_played(text: str, summary: Summary) -> None:
    panel = summary.panels[0]
    for x, name in enumerate(panel.environment.problem.contexts):
        often = f"{100 * panel.environment.problem.probabilities[x]:.3g} %"
        assert text.count(f'<th scope="row">{name}<small> {often}</small></th>') == 9  # 3 regimes, 3 algorithms


def test_json_has_no_nan(summary: Summary) -> None:
    text = json.dumps(all_data(summary), allow_nan=False)  # raises where a number is not finite
    assert json.loads(text) == all_data(summary)


def test_latex_has_one_cell_per_column_and_no_live_commands(summary: Summary) -> None:
    latex = latex_table(summary)
    body = [line for line in latex.splitlines() if line.endswith("\\\\")]
    assert len(body) == 4
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {5}
    assert "100\\% \\$x\\_1\\$" in latex


def test_the_terminal_shows_table_and_plot(summary: Summary) -> None:
    wide, narrow = table_text(summary, width=200), table_text(summary, width=40)
    whole = max(len(line) for line in wide.splitlines())
    medium = table_text(summary, width=whole - 1)
    assert "tired <i>ads</i>*" in wide.splitlines()[0]
    assert wide.splitlines()[-1].startswith("* total reward")
    assert wide.count("±") == medium.count("±") == narrow.count("±") > 0
    assert narrow.count("\n") > medium.count("\n") > wide.count("\n")
    assert max(len(line) for line in medium.splitlines()) < whole
    drawn = plot_text(summary.panels[0], width=60, height=8)
    assert any("\u2801" <= c <= "\u28ff" for c in drawn)
    assert "b eager" in drawn
    assert all(len(line) <= 64 for line in drawn.splitlines()[:-3])


def test_one_replication_and_one_algorithm_make_a_page(tmp_path: Path) -> None:
    small = {**CONTENT, "replications": 1, "horizon": 3, "algorithms": {"only": {"kind": "uniform"}}}
    summary = summary_from(small, tmp_path)
    found = page(summary)
    Nesting.of(found)
    assert '<p class="lead">' not in found  # one player is neither the safest nor the farthest
    for panel in summary.panels:
        mean = panel.headline(panel.entries[0])
        assert np.isnan(mean.half)  # one replication has no interval
        assert f'<td class="best">{number(mean.value)}</td>' in found
    content = json.loads(embedded(found, "results.json"))
    (score,) = content["scores"].values()
    assert score["worst_ratio"]["interval_95"] == [None, None]
    assert all(regime["algorithms"][0]["ratio"]["value"] >= 1.0 for regime in content["regimes"])
    assert content["regimes"][0]["algorithms"][0]["regret"]["half_width_95"] is None
    rows = list(csv.DictReader(io.StringIO(embedded(found, "curves.csv.gz"))))
    assert [row["t"] for row in rows[:3]] == ["1", "2", "3"]


def test_panels_with_similar_names_are_kept_apart(tmp_path: Path) -> None:
    worlds = {name: {"kind": "stochastic"} for name in ("x y", "x-y", "x y 2", "\u65e5\u672c", "\u4e2d", "cost", "")}
    study = {**CONTENT, "horizon": 30, "environments": worlds, "algorithms": {"only": {"kind": "uniform"}}}
    summary = summary_from(study, tmp_path)
    found = Nesting.of(page(summary))
    assert len(found.ids) == len(set(found.ids))
    assert len({chart.name for chart in all_charts(summary)}) == 22
