"""Numbers on pages and in the pictures of the gallery are the same."""

import re
from pathlib import Path

import pytest

from support.documentation import DOCS

GALLERY = (DOCS / "gallery.md").read_text(encoding="utf-8")
PICTURES = re.findall(r"^!\[[^\]]*\]\((\S+)\)(?:\n\*(.*)\*$)?", GALLERY, flags=re.MULTILINE)


def ends_of(picture: Path) -> str | None:
    """Return what the lines of a picture end with, as its description says, or None if it does not say."""
    found = re.search("At the end: ([^<]*)", picture.read_text(encoding="utf-8"))
    return found[1] if found else None


def number(text: str) -> int:
    return int(text.replace(",", ""))


@pytest.mark.parametrize(("picture", "caption"), PICTURES)
def test_a_caption_has_the_ends_of_the_lines(picture: str, caption: str) -> None:
    assert caption == (ends_of(DOCS / picture) or "")


def test_all_pictures_of_the_gallery_are_shown() -> None:
    there = sorted(f"figures/{path.name}" for path in (DOCS / "figures").glob("gallery-*.svg"))
    assert sorted(picture for picture, _ in PICTURES) == there


def test_regret_of_a_corrupted_experiment() -> None:
    lines = (DOCS / "explanation" / "choose.md").read_text(encoding="utf-8").splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    head = next(row for row in table if row[0] == "C")
    last = next(row for row in table if row[0] == "2,000")
    on_the_page = dict(zip(head, map(number, last), strict=True))
    ends = ends_of(DOCS / "figures" / "gallery-corrupted-experiment.svg")
    assert ends is not None
    drawn = {name: number(value) for name, value in re.findall(r"(.*?) (-?[\d,]+)(?:; |$)", ends)}
    assert {name: on_the_page[name] for name in ("LinUCB", "certified", "matched")} == drawn
