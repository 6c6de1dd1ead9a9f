"""Charts as SVG, by hand: no library, no script, colours by class so that the page may change them at night."""

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.plain import printable
from bothworlds.report.chart import Chart, Line, Mark, short, ticks
from bothworlds.report.palette import LIGHT

Scale = Callable[[Floats], Floats]
APART = 15.0  # between labels at the ends of lines
TOLERANCE = 0.3  # how far a drawn curve may be from the true one, in the units of the drawing

STANDALONE = (
    "text{font:12px system-ui,sans-serif;fill:#333}.axis{stroke:#888;fill:none}.grid{stroke:#ddd;fill:none}"
    ".line{fill:none;stroke:var(--c);stroke-width:2}.thin{stroke-width:1.5;stroke-linecap:round}"
    ".band{fill:var(--c);opacity:.15}.name,.note{font-size:11px}.note{paint-order:stroke;stroke:#fff;stroke-width:3px}"
    ".mark{fill:#888;opacity:.16}.rule{stroke:var(--c,#888);stroke-dasharray:2 3;fill:none}.dot{fill:var(--c)}"
    ".whisker{stroke:var(--c);opacity:.5;fill:none}text.end{font-size:11px;fill:var(--c)}"
)


class Frame(NamedTuple):
    """The size of a drawing and of what is left around the axes."""

    width: int = 560
    height: int = 330
    left: int = 52
    right: int = 100
    top: int = 26
    bottom: int = 40

    @property
    def x_end(self) -> int:
        """Where the horizontal axis ends."""
        return self.width - self.right

    @property
    def floor(self) -> int:
        """Where the horizontal axis lies."""
        return self.height - self.bottom


ON_PAGE = Frame()


class Drawing(NamedTuple):
    """A chart with its frame and its scales."""

    chart: Chart
    frame: Frame
    x: Scale
    y: Scale


def scale(low: float, high: float, start: float, end: float, *, log: bool) -> Scale:
    """Return the map from values to places on the drawing."""
    bottom, top = (math.log10(low), math.log10(high)) if log else (low, high)

    def place(values: Floats) -> Floats:
        v = np.log10(values) if log else np.asarray(values, dtype=np.float64)
        return np.asarray(start + (v - bottom) / (top - bottom) * (end - start))

    return place


def drawing(chart: Chart, frame: Frame = ON_PAGE) -> Drawing:
    """Lay a chart out in a frame."""
    x = scale(*chart.x_range, frame.left, frame.x_end, log=chart.x_log)
    y = scale(*chart.y_range, frame.floor, frame.top, log=chart.y_log)
    return Drawing(chart, frame, x, y)


def svg(chart: Chart, *, ident: str, frame: Frame = ON_PAGE) -> str:
    """Return the chart as an element of a page; ``ident`` makes its identifiers unique there."""
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


def standalone(chart: Chart) -> str:
    """Return the chart as a file of its own, on white, with a legend."""
    frame = ON_PAGE
    palette = "".join(f".c{i}{{--c:{colour}}}" for i, colour in enumerate(LIGHT))
    in_turn = sorted(chart.lines, key=lambda line: line.thin)  # algorithms first, then their bounds
    rows = [_legend(line, place, frame) for place, line in enumerate(in_turn)]
    height = frame.height + 16 * math.ceil(len(rows) / 2) + 8
    inner = svg(chart, ident="f").split(">", 1)[1].removesuffix("</svg>")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {frame.width} {height}" width="{frame.width}" '
        f'height="{height}" role="img" aria-labelledby="f-t f-d"><style>{STANDALONE}{palette}</style>'
        f'<rect width="{frame.width}" height="{height}" fill="#fff"/>{inner}{"".join(rows)}</svg>\n'
    )


def _text(words: str) -> str:
    """Return words as XML has them: letters that it must not hold are spelt."""
    return escape(printable(words))


def _legend(line: Line, place: int, frame: Frame) -> str:
    """Return one entry of the legend, two to a row."""
    x, y = 12 + (place % 2) * frame.width // 2, frame.height + 8 + 16 * (place // 2)
    kind = "line thin" if line.thin else "line"
    return (
        f'<g class="c{line.style.colour}"><path class="{kind}" d="M{x} {y}h26"{_dash(line)}/>'
        f'<text x="{x + 32}" y="{y + 4}" class="name">{_text(line.label)}</text></g>'
    )


def _axes(d: Drawing) -> list[str]:
    """Return grid, numbers and names of both axes."""
    chart, frame, parts = d.chart, d.frame, []
    for value in ticks(*chart.y_range, log=chart.y_log):
        at = float(d.y(np.array(value)))
        parts.append(f'<path class="grid yaxis" d="M{frame.left} {at:.1f}H{frame.x_end}"/>')
        place = f'x="{frame.left - 6}" y="{at + 4:.1f}" text-anchor="end"'
        parts.append(f'<text class="yaxis" {place}>{short(value)}</text>')
    parts += _named_places(d) if chart.x_names else _numbered_places(d)
    parts.append(f'<path class="axis" d="M{frame.left} {frame.top}V{frame.floor}H{frame.x_end}"/>')
    middle = (frame.left + frame.x_end) / 2
    parts.append(f'<text x="{middle}" y="{frame.height - 8}" text-anchor="middle">{_text(chart.x_label)}</text>')
    parts.append(f'<text x="6" y="{frame.top - 12}">{_text(chart.y_label)}</text>')
    return parts


def _numbered_places(d: Drawing) -> list[str]:
    parts = []
    for value in ticks(*d.chart.x_range, log=d.chart.x_log):
        at = float(d.x(np.array(value)))
        parts.append(f'<path class="grid" d="M{at:.1f} {d.frame.top}V{d.frame.floor}"/>')
        parts.append(f'<text x="{at:.1f}" y="{d.frame.floor + 16}" text-anchor="middle">{short(value)}</text>')
    return parts


def _named_places(d: Drawing) -> list[str]:
    """Return names for places, in two rows where there are several, so that they do not run into each other."""
    parts = []
    for place, name in enumerate(d.chart.x_names):
        at = float(d.x(np.array(place + 1.0)))
        row = d.frame.floor + 16 + 15 * (place % 2)
        words = name if len(name) <= 18 else f"{name[:17].rstrip()}…"
        parts.append(f'<path class="grid" d="M{at:.1f} {d.frame.top}V{d.frame.floor}"/>')
        parts.append(f'<text x="{at:.1f}" y="{row}" text-anchor="middle" class="name">{_text(words)}</text>')
    return parts


def _visible(chart: Chart) -> list[Mark]:
    """Return the marks that lie within the chart."""
    low, high = chart.x_range
    return [mark for mark in chart.marks if mark.start <= high and mark.end >= low]


def _span(mark: Mark, d: Drawing) -> tuple[float, float]:
    """Return where a mark begins and ends on the drawing."""
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
    """Return the words of a mark: right of where it begins, or left of it where they would leave the chart."""
    start, _ = _span(mark, d)
    height = d.frame.top + 13 + 14 * line
    late = start > d.frame.left + 0.6 * (d.frame.x_end - d.frame.left)
    place = f'x="{start - 4:.1f}" text-anchor="end"' if late else f'x="{start + 4:.1f}"'
    return f'<text {place} y="{height}" class="note">{_text(mark.text)}</text>'


def _line(line: Line, d: Drawing) -> str:
    """Return a curve and its band, or its dots and whiskers."""
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
    kind = "line thin" if line.thin else "line"
    parts.append(f'<path class="{kind}" d="{_curve(line, d)}"{_dash(line)}/>')
    if line.dots:
        places = zip(d.x(line.x), d.y(line.y), strict=True)
        parts += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in places if math.isfinite(y)]
    return "".join([*parts, "</g>"])


def _curve(line: Line, d: Drawing) -> str:
    """Return the path of a curve, broken where it cannot be drawn."""
    pieces = _pieces(line.y, log=d.chart.y_log)
    return "".join(f"M{_points(d.x(line.x[piece]), d.y(line.y[piece]))}" for piece in pieces)


def _area(x: Floats, low: Floats, high: Floats, d: Drawing) -> str:
    """Return the path of a band, broken where it cannot be drawn."""
    path = []
    for piece in _pieces(low + high, log=d.chart.y_log):
        forth = _points(d.x(x[piece]), d.y(high[piece]))
        path.append(f"M{forth}L{_points(d.x(x[piece])[::-1], d.y(low[piece])[::-1])}Z")
    return "".join(path)


def _ends(d: Drawing) -> list[str]:
    """Return the names of the curves at their ends, apart from each other; bounds have their algorithm's colour."""
    lines = [line for line in d.chart.lines if not line.thin]
    places = [_end(line, d) for line in lines]
    apart = spread([place for _, place in places], d.frame.top + 4.0, d.frame.floor - 2.0)
    parts = []
    for line, (arrow, _), at in zip(lines, places, apart, strict=True):
        number = d.chart.lines.index(line)
        parts.append(
            f'<text class="end c{line.style.colour}" data-algorithm="{line.number}" data-end="{number}" '
            f'x="{d.frame.x_end + 5}" y="{at + 4:.1f}">{arrow}{_text(line.short)}</text>'
        )
    return parts


def _end(line: Line, d: Drawing) -> tuple[str, float]:
    """Return how high a curve ends, within the axes, and an arrow where it ends outside of them."""
    finite = line.y[np.isfinite(line.y)]
    last = float(finite[-1]) if len(finite) else math.nan
    low, high = d.chart.y_range
    if not last >= low:
        return "↓ ", float(d.frame.floor)
    return ("↑ ", float(d.frame.top)) if last > high else ("", float(d.y(np.array(last))))


def spread(places: Sequence[float], top: float, bottom: float) -> list[float]:
    """Return places moved so that neighbours are apart, in the same order, within a range if it has room for all.

    >>> spread([50.0, 51.0, 10.0], 0.0, 100.0)
    [50.0, 65.0, 10.0]
    >>> spread([99.0, 98.0], 0.0, 100.0)
    [100.0, 85.0]
    """
    order = sorted(range(len(places)), key=lambda i: places[i])
    found = list(places)
    for before, i in zip([None, *order], order, strict=False):
        found[i] = max(found[i], top if before is None else found[before] + APART)
    for after, i in zip([None, *order[::-1]], order[::-1], strict=False):
        found[i] = min(found[i], bottom if after is None else found[after] - APART)
    return found


def _dash(line: Line) -> str:
    return f' stroke-dasharray="{line.style.dash}"' if line.style.dash else ""


def _pieces(values: Floats, *, log: bool) -> list[Ints]:
    """Return runs of places at which values can be drawn: finite, and positive on a logarithmic axis."""
    drawn = np.isfinite(values) & ((values > 0.0) | (not log))
    pieces = np.split(np.arange(len(values)), np.flatnonzero(np.diff(drawn.astype(int))) + 1)
    return [piece for piece in pieces if drawn[piece[0]]]


def _points(x: Floats, y: Floats) -> str:
    """Return places as text, with one digit after the point, without those that a straight line passes anyway."""
    return " ".join(f"{x[i]:.1f},{y[i]:.1f}" for i in needed(x, y))


def needed(x: Floats, y: Floats) -> list[int]:
    """Return the places that a line through them needs to stay within a tolerance of all (Douglas and Peucker).

    >>> needed(np.arange(5.0), np.array([0.0, 1.0, 2.0, 1.0, 0.0]))
    [0, 2, 4]
    """
    kept, waiting = {0, len(x) - 1}, [(0, len(x) - 1)]
    while waiting:
        first, last = waiting.pop()
        if last - first < 2:
            continue
        inner = slice(first + 1, last)
        share = (x[inner] - x[first]) / (x[last] - x[first])
        off = np.abs(y[inner] - (y[first] + share * (y[last] - y[first])))
        far = int(off.argmax())
        if off[far] > TOLERANCE:
            kept.add(first + 1 + far)
            waiting += [(first, first + 1 + far), (first + 1 + far, last)]
    return sorted(kept)
