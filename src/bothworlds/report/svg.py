"""Charts as SVG, without a plotting library and without scripts. Colours are classes, so a page may be dark."""

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.report.chart import Chart, Line, Mark, Picture, short, ticks
from bothworlds.report.palette import DARK, LIGHT
from bothworlds.serialization import printable

Scale = Callable[[Floats], Floats]
APART = 15.0  # least distance between the labels at the ends of lines
TOLERANCE = 0.3  # largest distance of a drawn curve from the true one, in the units of the drawing

FONTS = {
    "sans": "system-ui,sans-serif",
    "serif": "Georgia,'Times New Roman',serif",
    "tex": "'Latin Modern Roman','CMU Serif',serif",
}
STANDALONE = (
    "text{font-size:12px;fill:#333}.axis{stroke:#888;fill:none}.grid{stroke:#ddd;fill:none}"
    ".line{fill:none;stroke:var(--c);stroke-width:2}.thin{stroke-width:1.5;stroke-linecap:round}"
    ".band{fill:var(--c);opacity:.15}.name,.note{font-size:11px}.note{paint-order:stroke;stroke:#fff;stroke-width:3px}"
    ".mark{fill:#888;opacity:.16}.rule{stroke:var(--c,#888);stroke-dasharray:2 3;fill:none}.dot{fill:var(--c)}"
    ".whisker{stroke:var(--c);opacity:.5;fill:none}text.end{font-size:11px;fill:var(--c)}"
    ".spot{stroke:var(--c);stroke-width:3.4;stroke-linecap:round;opacity:.38;fill:none}"
)
PICTURE = (  # larger letters, since pages show the picture small; and a dark mode
    "svg{--paper:#fff;--ink:#1c1d1f;--soft:#555;--grid:#ddd}"
    "@media(prefers-color-scheme:dark){svg{--paper:#15171a;--ink:#e9e9e6;--soft:#a7abb2;--grid:#2c3036}DARK}"
    "text{font-size:14px;fill:var(--soft)}text.title{font-size:17px;font-weight:600;fill:var(--ink)}"
    ".axis{stroke:var(--soft)}.grid{stroke:var(--grid)}.line{stroke-width:2.4}"
    "text.end{font-size:14.5px;font-weight:600}.paper{fill:var(--paper)}"
)


class Frame(NamedTuple):
    """Size of a drawing, its margins around the axes, and the least distance of the labels at the ends of lines."""

    width: int = 560
    height: int = 330
    left: int = 52
    right: int = 100
    top: int = 26
    bottom: int = 40
    apart: float = APART

    @property
    def x_end(self) -> int:
        """Right end of the horizontal axis."""
        return self.width - self.right

    @property
    def floor(self) -> int:
        """Height of the horizontal axis."""
        return self.height - self.bottom


ON_PAGE = Frame()
IN_PICTURE = Frame(width=420, height=350, left=52, right=118, top=64, bottom=46, apart=17.0)
CAPTION = 26  # height of the line below a picture


class Drawing(NamedTuple):
    """A chart with its frame and its scales."""

    chart: Chart
    frame: Frame
    x: Scale
    y: Scale


def scale(low: float, high: float, start: float, end: float, *, log: bool) -> Scale:
    """Return the map from values to coordinates of the drawing."""
    bottom, top = (math.log10(low), math.log10(high)) if log else (low, high)

    def place(values: Floats) -> Floats:
        v = np.log10(values) if log else np.asarray(values, dtype=np.float64)
        return np.asarray(start + (v - bottom) / (top - bottom) * (end - start))

    return place


def drawing(chart: Chart, frame: Frame = ON_PAGE) -> Drawing:
    """Return a chart with its scales in a frame."""
    x = scale(*chart.x_range, frame.left, frame.x_end, log=chart.x_log)
    y = scale(*chart.y_range, frame.floor, frame.top, log=chart.y_log)
    return Drawing(chart, frame, x, y)


def svg(chart: Chart, *, ident: str, frame: Frame = ON_PAGE) -> str:
    """Return the chart as an element of a page, where ``ident`` makes its identifiers unique."""
    d = drawing(chart, frame)
    worded = [mark for mark in _visible(chart) if mark.text]
    parts = [
        f'<svg viewBox="0 0 {frame.width} {frame.height}" role="img" aria-labelledby="{ident}-t {ident}-d">',
        f'<title id="{ident}-t">{_text(chart.title)}</title><desc id="{ident}-d">{_text(chart.description)}</desc>',
        f'<clipPath id="{ident}-c"><rect x="{frame.left}" y="{frame.top - 2}" width="{frame.x_end - frame.left + 2}" '
        f'height="{frame.floor - frame.top + 2}"/></clipPath>',
        f'<g class="axes">{"".join(_axes(d))}</g>',
        *(_mark(mark, d) for mark in _visible(chart)),
        f'<g clip-path="url(#{ident}-c)">',
        *(_line(line, d) for line in chart.in_order),
        "</g>",
        *(_words(mark, d, place) for place, mark in enumerate(worded)),
        *_ends(d),
        "</svg>",
    ]
    return "".join(parts)


def standalone(chart: Chart, *, font: str = "sans") -> str:
    """Return the chart as a file of its own, on white, with a legend; ``font`` is a key of `FONTS`."""
    frame = ON_PAGE
    in_order = sorted(chart.lines, key=lambda line: line.thin)  # algorithms first, then their bounds
    rows = [_legend(line, place, frame) for place, line in enumerate(in_order)]
    height = frame.height + 16 * math.ceil(len(rows) / 2) + 8
    inner = svg(chart, ident="f").split(">", 1)[1].removesuffix("</svg>")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {frame.width} {height}" width="{frame.width}" '
        f'height="{height}" role="img" aria-labelledby="f-t f-d"><style>{_style(font)}</style>'
        f'<rect width="{frame.width}" height="{height}" fill="#fff"/>{inner}{"".join(rows)}</svg>\n'
    )


def standalone_picture(picture: Picture, *, font: str = "sans") -> str:
    """Return the charts of a picture side by side as one file, with a light and a dark mode."""
    frame = IN_PICTURE
    width, height = frame.width * len(picture.charts), frame.height + CAPTION
    panels = []
    for place, chart in enumerate(picture.charts):
        inner = svg(chart, ident=f"f{place}", frame=frame).split(">", 1)[1].removesuffix("</svg>")
        title = f'<text class="title" x="6" y="26">{_text(chart.title)}</text>'
        panels.append(f'<g transform="translate({place * frame.width} 0)">{title}{inner}</g>')
    dark = "".join(f".c{i}{{--c:{colour}}}" for i, colour in enumerate(DARK))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-labelledby="f-t f-d"><style>{_style(font)}{PICTURE.replace("DARK", dark)}</style>'
        f'<title id="f-t">{_text(picture.title)}</title><desc id="f-d">{_text(picture.description)}</desc>'
        f'<rect class="paper" width="{width}" height="{height}"/>{"".join(panels)}'
        f'<text x="6" y="{height - 9}">{_text(picture.title)}</text></svg>\n'
    )


def _style(font: str) -> str:
    """Return the style of a file of its own."""
    palette = "".join(f".c{i}{{--c:{colour}}}" for i, colour in enumerate(LIGHT))
    return f"text{{font-family:{FONTS[font]}}}{STANDALONE}{palette}"


def _text(text: str) -> str:
    """Return text for XML; characters that XML forbids are spelt out."""
    return escape(printable(text))


def _legend(line: Line, place: int, frame: Frame) -> str:
    """Return one entry of the legend, which has two in a row."""
    x, y = 12 + (place % 2) * frame.width // 2, frame.height + 8 + 16 * (place // 2)
    kind = "line thin" if line.thin else "line"
    return (
        f'<g class="c{line.style.colour}"><path class="{kind}" d="M{x} {y}h26"{_dash(line)}/>'
        f'<text x="{x + 32}" y="{y + 4}" class="name">{_text(line.label)}</text></g>'
    )


def _axes(d: Drawing) -> list[str]:
    """Return grid, numbers and labels of both axes."""
    chart, frame, parts = d.chart, d.frame, []
    for value in ticks(*chart.y_range, log=chart.y_log):
        at = float(d.y(np.array(value)))
        parts.append(f'<path class="grid yaxis" d="M{frame.left} {at:.1f}H{frame.x_end}"/>')
        place = f'x="{frame.left - 6}" y="{at + 4:.1f}" text-anchor="end"'
        parts.append(f'<text class="yaxis" {place}>{short(value)}</text>')
    parts += _categories(d) if chart.x_names else _numbers(d)
    parts.append(f'<path class="axis" d="M{frame.left} {frame.top}V{frame.floor}H{frame.x_end}"/>')
    middle = (frame.left + frame.x_end) / 2
    parts.append(f'<text x="{middle}" y="{frame.height - 8}" text-anchor="middle">{_text(chart.x_label)}</text>')
    parts.append(f'<text x="6" y="{frame.top - 12}">{_text(chart.y_label)}</text>')
    return parts


def _numbers(d: Drawing) -> list[str]:
    """Return grid and numbers of a horizontal axis."""
    parts = []
    for value in ticks(*d.chart.x_range, log=d.chart.x_log):
        at = float(d.x(np.array(value)))
        parts.append(f'<path class="grid" d="M{at:.1f} {d.frame.top}V{d.frame.floor}"/>')
        parts.append(f'<text x="{at:.1f}" y="{d.frame.floor + 16}" text-anchor="middle">{short(value)}</text>')
    return parts


def _categories(d: Drawing) -> list[str]:
    """Return grid and names of a horizontal axis of categories; names alternate between two rows to avoid overlaps."""
    parts = []
    for place, name in enumerate(d.chart.x_names):
        at = float(d.x(np.array(place + 1.0)))
        row = d.frame.floor + 16 + 15 * (place % 2)
        shortened = name if len(name) <= 18 else f"{name[:17].rstrip()}…"
        parts.append(f'<path class="grid" d="M{at:.1f} {d.frame.top}V{d.frame.floor}"/>')
        parts.append(f'<text x="{at:.1f}" y="{row}" text-anchor="middle" class="name">{_text(shortened)}</text>')
    return parts


def _visible(chart: Chart) -> list[Mark]:
    """Return the marks that lie within the chart."""
    low, high = chart.x_range
    return [mark for mark in chart.marks if mark.start <= high and mark.end >= low]


def _span(mark: Mark, d: Drawing) -> tuple[float, float]:
    """Return the horizontal coordinates of the two ends of a mark."""
    start, end = (float(d.x(np.array(np.clip(value, *d.chart.x_range)))) for value in (mark.start, mark.end))
    return start, end


def _mark(mark: Mark, d: Drawing) -> str:
    """Return a stripe or a rule."""
    start, end = _span(mark, d)
    colour = "" if mark.colour is None else f' class="c{mark.colour}"'
    if mark.start == mark.end:
        return f'<g{colour}><path class="rule" d="M{start:.1f} {d.frame.top}V{d.frame.floor}"/></g>'
    size = f'width="{end - start:.1f}" height="{d.frame.floor - d.frame.top}"'
    return f'<g{colour}><rect class="mark" x="{start:.1f}" y="{d.frame.top}" {size}/></g>'


def _words(mark: Mark, d: Drawing, line: int) -> str:
    """Return the text of a mark: right of its start, or left of it where the text would leave the chart."""
    start, _ = _span(mark, d)
    height = d.frame.top + 13 + 14 * line
    late = start > d.frame.left + 0.6 * (d.frame.x_end - d.frame.left)
    place = f'x="{start - 4:.1f}" text-anchor="end"' if late else f'x="{start + 4:.1f}"'
    return f'<text {place} y="{height}" class="note">{_text(mark.text)}</text>'


def _line(line: Line, d: Drawing) -> str:
    """Return a curve and its band, or its dots, whiskers and spots."""
    number = d.chart.lines.index(line)
    parts = [f'<g class="c{line.style.colour}" data-algorithm="{line.number}" data-line="{number}">']
    parts.append(f"<title>{_text(line.label)}</title>")
    band = d.chart.band(line)
    if band is not None and not line.dots:
        parts.append(f'<path class="band" d="{_area(line.x, *band, d)}"/>')
    if band is not None and line.dots:
        bars = zip(d.x(line.x), d.y(band[0]), d.y(band[1]), strict=True)
        path = "".join(f"M{x:.1f} {a:.1f}V{b:.1f}" for x, a, b in bars if math.isfinite(a + b))
        parts.append(f'<path class="whisker" d="{path}"/>')
    if line.joined:
        kind = "line thin" if line.thin else "line"
        parts.append(f'<path class="{kind}" d="{_curve(line, d)}"{_dash(line)}/>')
    if line.spots is not None:
        columns = zip(d.x(line.x), d.y(line.spots), strict=True)
        path = "".join(f"M{x:.1f} {y:.1f}h0" for x, column in columns for y in column[np.isfinite(column)])
        parts.append(f'<path class="spot" d="{path}"/>')
    if line.dots:
        places = zip(d.x(line.x), d.y(line.y), strict=True)
        parts += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in places if math.isfinite(y)]
    return "".join([*parts, "</g>"])


def _curve(line: Line, d: Drawing) -> str:
    """Return the path of a curve, interrupted where it cannot be drawn."""
    pieces = _pieces(line.y, log=d.chart.y_log)
    return "".join(f"M{_points(d.x(line.x[piece]), d.y(line.y[piece]))}" for piece in pieces)


def _area(x: Floats, low: Floats, high: Floats, d: Drawing) -> str:
    """Return the path of a band, interrupted where it cannot be drawn."""
    path = []
    for piece in _pieces(low + high, log=d.chart.y_log):
        forth = _points(d.x(x[piece]), d.y(high[piece]))
        path.append(f"M{forth}L{_points(d.x(x[piece])[::-1], d.y(low[piece])[::-1])}Z")
    return "".join(path)


def _ends(d: Drawing) -> list[str]:
    """Return the labels at the ends of the curves, without overlaps; bounds have no label, but their colour."""
    lines = [line for line in d.chart.lines if not line.thin]
    places = [_end(line, d) for line in lines]
    apart = spread([place for _, place in places], d.frame.top + 4.0, d.frame.floor - 2.0, d.frame.apart)
    parts = []
    for line, (arrow, _), at in zip(lines, places, apart, strict=True):
        number = d.chart.lines.index(line)
        parts.append(
            f'<text class="end c{line.style.colour}" data-algorithm="{line.number}" data-end="{number}" '
            f'x="{d.frame.x_end + 5}" y="{at + 4:.1f}">{arrow}{_text(line.short)}</text>'
        )
    return parts


def _end(line: Line, d: Drawing) -> tuple[str, float]:
    """Return the height at which a curve ends, within the axes, and an arrow if it ends outside of them."""
    finite = line.y[np.isfinite(line.y)]
    last = float(finite[-1]) if len(finite) else math.nan
    low, high = d.chart.y_range
    if not last >= low:
        return "↓ ", float(d.frame.floor)
    return ("↑ ", float(d.frame.top)) if last > high else ("", float(d.y(np.array(last))))


def spread(places: Sequence[float], top: float, bottom: float, apart: float = APART) -> list[float]:
    """Return heights moved so that neighbours are ``apart``, in the same order, within a range if all fit.

    >>> spread([50.0, 51.0, 10.0], 0.0, 100.0)
    [50.0, 65.0, 10.0]
    >>> spread([99.0, 98.0], 0.0, 100.0)
    [100.0, 85.0]
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = list(places)
    for before, i in zip([None, *order], order, strict=False):
        moved[i] = max(moved[i], top if before is None else moved[before] + apart)
    for after, i in zip([None, *order[::-1]], order[::-1], strict=False):
        moved[i] = min(moved[i], bottom if after is None else moved[after] - apart)
    return moved


def _dash(line: Line) -> str:
    return f' stroke-dasharray="{line.style.dash}"' if line.style.dash else ""


def _pieces(values: Floats, *, log: bool) -> list[Ints]:
    """Return runs of indices whose values can be drawn: finite, and positive on a logarithmic axis."""
    drawn = np.isfinite(values) & ((values > 0.0) | (not log))
    pieces = np.split(np.arange(len(values)), np.flatnonzero(np.diff(drawn.astype(int))) + 1)
    return [piece for piece in pieces if drawn[piece[0]]]


def _points(x: Floats, y: Floats) -> str:
    """Return points as text, with one decimal, without those that lie on a straight line between others."""
    return " ".join(f"{x[i]:.1f},{y[i]:.1f}" for i in needed(x, y))


def needed(x: Floats, y: Floats) -> list[int]:
    """Return the indices of the points that a line needs to stay within the tolerance of all (Douglas and Peucker).

    >>> needed(np.arange(5.0), np.array([0.0, 1.0, 2.0, 1.0, 0.0]))
    [0, 2, 4]
    """
    needed_points, open_ranges = {0, len(x) - 1}, [(0, len(x) - 1)]
    while open_ranges:
        first, last = open_ranges.pop()
        if last - first < 2:
            continue
        inner = slice(first + 1, last)
        share = (x[inner] - x[first]) / (x[last] - x[first])
        off = np.abs(y[inner] - (y[first] + share * (y[last] - y[first])))
        far = int(off.argmax())
        if off[far] > TOLERANCE:
            needed_points.add(first + 1 + far)
            open_ranges += [(first, first + 1 + far), (first + 1 + far, last)]
    return sorted(needed_points)
