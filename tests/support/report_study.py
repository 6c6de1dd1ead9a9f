"""A small study with awkward names, its summary and its page, made once for all tests of reports."""

import base64
import gzip
import re
import tempfile
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import bothworlds as bw
from bothworlds.report import Summary, page, summary_of
from bothworlds.report.theorems import theorem_bounds
from bothworlds.studies.folder import read_folder

EVIL = "<script>alert('x')</script> & \"paper\" 100% $x_1$"
CONTENT: dict[str, Any] = {
    "name": "names & <b>tags</b>",
    "horizon": 600,
    "replications": 4,
    "checkpoints": 40,
    "references": True,
    "sizes": {"contexts": 3, "arms": 2, "dimension": 2},
    "environments": {
        "calm": {"kind": "stochastic"},
        "hit": {"kind": "corrupted", "budget": 20},
        "tired <i>ads</i>": {"kind": "ad-fatigue"},
    },
    "algorithms": {
        EVIL: {"kind": "LCTsallisINF", "tuning": "paper"},
        "eager": {"kind": "LCTsallisINF", "tuning": {"kind": "matched", "gain": 0.5}},
        "uniform": {"kind": "uniform"},
    },
}
VOID = {"meta", "link", "br", "img", "hr", "input"}


def summary_from(content: dict[str, Any], folder: str | Path) -> Summary:
    """Run a study in a folder and arrange its results."""
    bw.run_study(bw.Study.from_dict(content), folder, threads=1, quiet=True)
    return summary_of(read_folder(folder))


@cache
def made_summary() -> Summary:
    """Return the summary of the study."""
    with tempfile.TemporaryDirectory() as folder:
        return summary_from(CONTENT, folder)


@cache
def made_page() -> str:
    """Return the page as the command line makes it."""
    summary = made_summary()
    return page(summary, bounds=theorem_bounds(summary))


def embedded(text: str, name: str) -> str:
    found = re.search(rf'download="{name}" href="data:[a-z/-]+;base64,([^"]+)"', text)
    assert found is not None
    content = base64.b64decode(found[1])
    return (gzip.decompress(content) if name.endswith(".gz") else content).decode()


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
