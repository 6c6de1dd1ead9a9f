"""Curves from elsewhere: damaged files, names that are taken, names that a spreadsheet would compute."""

import csv
import gzip
import io
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothworlds.report import Summary
from bothworlds.report.csv_cells import as_text, from_text
from bothworlds.report.data import curves_csv
from bothworlds.report.figures import all_charts
from bothworlds.report.overlay_curves import of_csv, read_overlays
from support.command_line import called
from support.report_study import made_summary
from support.report_study import summary_from as ran

HEAD = "regime,algorithm,t,regret\n"
STUDY: dict[str, Any] = {
    "name": "few",
    "horizon": 50,
    "replications": 2,
    "environments": {"calm": {"kind": "stochastic"}},
    "algorithms": {"even": {"kind": "uniform"}},
}


@pytest.fixture
def summary() -> Summary:
    return made_summary()


def test_damaged_files_are_told_by_their_name() -> None:
    ran(STUDY, "results")
    good = gzip.compress((HEAD + "calm,mine,1,0.5\n" * 1).encode() * 40)
    flipped = bytearray(good)
    flipped[14] ^= 0xFF
    for content in (good[:-12], good[:20], b"plain text", bytes(flipped), good[:2], b"\x1f\x8b\x08\x00"):
        Path("curves.csv.gz").write_bytes(content)
        done = called("report", "results", "--with", "curves.csv.gz")
        assert done.exit_code == 3, done.exception
        assert "curves.csv.gz" in done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("calm,mine,1,0.5\ncalm,mine,inf,1\n", "rising numbers"),
        ("calm,mine,nan,0.5\n", "rising numbers"),
        ("calm\n", "row 1"),
        ("calm,mine,1,2\n,mine,1,0.5\n", "row 2"),
    ],
)
def test_rows_that_are_no_curve(text: str, words: str) -> None:
    Path("mine.csv").write_text(HEAD + text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"mine.csv.*{words}"):
        of_csv(Path("mine.csv"))


def test_a_table_that_a_spreadsheet_has_saved() -> None:
    Path("mine.csv").write_bytes(b"\xef\xbb\xbf" + (HEAD + "calm,mine,1,0.5\n").replace("\n", "\r\n").encode())
    assert [curve.label for curve in of_csv(Path("mine.csv"))["calm"]] == ["mine"]


def test_curves_of_one_name_are_told_apart(summary: Summary) -> None:
    for folder in ("a", "b"):
        ran(STUDY, Path(folder) / "out")
        Path(folder, "mine.csv").write_text(
            HEAD + "calm,mine,1,0.5\nhit,mine,1,2\ncalm,uniform,1,1\n", encoding="utf-8"
        )
    overlays = read_overlays(["a/mine.csv", "b/mine.csv", "a/out", "b/out"], taken=summary.labels)
    charts = {chart.name: chart for chart in all_charts(summary, overlays=overlays)}
    for name in ("calm-log-x", "calm-log-log"):
        lines = [line for line in charts[name].lines if not line.thin]
        for one, other in itertools.combinations(lines, 2):
            assert one.label != other.label
            assert (one.number, one.style) != (other.number, other.style)
    calm = ["mine", "uniform (mine.csv)", "mine (mine.csv)", "uniform (mine.csv) 2", "even (out)", "even (out) 2"]
    assert [curve.label for curve in overlays["calm"]] == calm
    assert [curve.label for curve in overlays["hit"]] == ["mine", "mine (mine.csv)"]  # the same in all regimes


def test_a_name_that_looks_as_if_it_were_made_here_is_told_apart_too() -> None:
    Path("mine.csv").write_text(HEAD + "calm,even,1,0.5\ncalm,even (mine.csv),1,2\n", encoding="utf-8")
    labels = [curve.label for curve in read_overlays(["mine.csv"], taken=["even"])["calm"]]
    assert labels == ["even (mine.csv)", "even (mine.csv) 2"]


def test_the_present_folder_has_a_name(tmp_path: Path) -> None:
    ran(STUDY, ".")
    assert [curve.label for curve in read_overlays(["."])["calm"]] == [f"even ({tmp_path.name})"]


def test_names_in_the_saved_curves_are_no_formulas(summary: Summary) -> None:
    panel = summary.panels[0]
    entry = replace(panel.entries[0], label="=1+1")
    entry = replace(entry, results=replace(entry.results, runs={"=1+1": panel.entries[0].run}))
    changed = replace(summary, panels=[replace(panel, name="@calm", entries=[entry])])
    text = curves_csv(changed)
    rows = list(csv.reader(io.StringIO(text)))[1:]
    assert {(row[0], row[1]) for row in rows} == {("'@calm", "'=1+1")}
    Path("curves.csv.gz").write_bytes(gzip.compress(text.encode()))
    (curve,) = of_csv(Path("curves.csv.gz"))["@calm"]
    assert curve.label == "=1+1"


@given(st.text(alphabet="'=+-@\t\rab ", max_size=6))
def test_every_name_is_read_back(name: str) -> None:
    assert from_text(as_text(name)) == name
    assert as_text(name)[:1] not in tuple("=+-@\t\r")


def test_no_algorithm_for_the_figures_is_refused() -> None:
    ran(STUDY, "results")
    done = called("report", "results", "--figures", "figures", "--algorithms", " ; ")
    assert (done.exit_code, "has no names" in done.stderr) == (2, True), done.output
