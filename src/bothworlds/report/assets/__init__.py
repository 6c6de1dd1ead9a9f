"""Style and script of pages, embedded as text: a page is one file and fetches nothing.

A page can be read without the script. The script computes ranges, ticks and labels by the rules of `chart` and `svg`; a
test in a browser compares its drawings with those of Python.
"""

from functools import cache
from importlib.resources import files

from bothworlds.report.chart import DECADES_SHOWN, REACH
from bothworlds.report.palette import DARK, LIGHT
from bothworlds.report.svg import APART, ON_PAGE

CONSTANTS = (
    f"const W={ON_PAGE.width},H={ON_PAGE.height},L={ON_PAGE.left},E={ON_PAGE.x_end},T={ON_PAGE.top},"
    f"F={ON_PAGE.floor},APART={APART},REACH={REACH},DECADES={DECADES_SHOWN};\n"
)
PRINT_PALETTE = (
    "@media print{:root{--paper:#fff;--card:#f7f7f5;--ink:#000;--soft:#444;--rule:#ccc;--grid:#ddd;--good:#e2f1ea;"
)


@cache
def asset(package: str, name: str) -> str:
    """Return the text of a file in a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def stylesheet() -> str:
    """Return the style of a page, with a dark mode and a style for print."""
    light = "".join(f"--c{i}:{colour};" for i, colour in enumerate(LIGHT))
    dark = "".join(f"--c{i}:{colour};" for i, colour in enumerate(DARK))
    classes = "".join(f".c{i}{{--c:var(--c{i})}}" for i in range(len(LIGHT)))
    night = f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    return f":root{{{light}}}{night}\n{asset(__name__, 'page.css')}{PRINT_PALETTE}{light}}}}}{classes}"


def script() -> str:
    """Return the script of a page; it defines no global names."""
    return f"(() => {{\n{CONSTANTS}\n{asset(__name__, 'page.js')}}})();\n"
