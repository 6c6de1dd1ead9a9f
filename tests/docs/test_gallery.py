"""Figures that stand on a page and in a picture of the gallery are the same."""

import re

from documentation import ROOT


def ends(figure: str) -> dict[str, int]:
    """Return what the lines of a picture end with, as its description says."""
    text = (ROOT / "docs" / "figures" / f"gallery-{figure}.svg").read_text(encoding="utf-8")
    found = re.search("At the end: ([^<]*)", text)
    assert found is not None
    return {name: _number(number) for name, number in re.findall(r"(.*?) (-?[\d,]+)(?:; |$)", found[1])}


def cells(page: str) -> list[list[str]]:
    """Return the rows of all tables of a page."""
    lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def test_clicks_of_ads_that_tire() -> None:
    """The picture shows clicks beyond those of the best ad at the start; each is rounded."""
    clicks = {row[1]: _number(row[0]) for row in cells("practitioners.md") if re.fullmatch(r"\d+,\d{3}", row[0])}
    start = clicks["the best ad at the start, always"]
    drawn = ends("ads-with-fatigue")
    for name in ("LC-Tsallis-INF, `matched`", "LC-Tsallis-INF, `certified`", "LinUCB"):
        player = name.replace(",", "").replace("`", "")
        assert abs(clicks[name] - start - drawn[player]) <= 1, name


def test_regret_of_a_corrupted_experiment() -> None:
    table = cells("choose.md")
    head = next(row for row in table if row[0] == "C")
    last = next(row for row in table if row[0] == "2,000")
    told = {name: _number(cell) for name, cell in zip(head, last, strict=True)}
    assert {name: told[name] for name in ("LinUCB", "certified", "matched")} == ends("corrupted-experiment")
