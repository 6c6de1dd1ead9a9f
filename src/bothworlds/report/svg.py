"""Charts as SVG, by hand: no library, no script, colours by class so that the page may change them at night."""

import math
from collections.abc import Callable
from html import escape

import numpy as np

from bothworlds.kernels.arrays import Floats, Ints
from bothworlds.report.chart import Chart, Line, Mark, short, ticks
from bothworlds.report.palette import LIGHT

WIDTH, HEIGHT = 460, 320
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 26, 40
Scale = Callable[[Floats], Floats]

STANDALONE = (
    "text{font:12px system-ui,sans-serif;fill:#333}.axis{stroke:#888;fill:none}.grid{stroke:#ddd;fill:none}"
    ".line{fill:none;stroke:var(--c);stroke-width:2}.thin{stroke-width:1.5;stroke-linecap:round}"
    ".band{fill:var(--c);opacity:.15}.name,.note{font-size:11px}.note{paint-order:stroke;stroke:#fff;stroke-width:3px}"
    ".mark{fill:#888;opacity:.16}.rule{stroke:var(--c,#888);stroke-dasharray:2 3;fill:none}"
)


def scale(low: float, high: float, start: float, end: float, *, log: bool) -> Scale:
    """Return the map from values to places on the drawing."""
    bottom, top = (math.log10(low), math.log10(high)) if log else (low, high)

    def place(values: Floats) -> Floats:
        v = np.log10(values) if log else np.asarray(values, dtype=np.float64)
        return np.asarray(start + (v - bottom) / (top - bottom) * (end - start))

    return place


def svg(chart: Chart, *, ident: str) -> str:
    """Return the chart as an element of a page; ``ident`` makes its identifiers unique there."""
    x = scale(*chart.x_range, LEFT, WIDTH - RIGHT, log=chart.x_log)
    y = scale(*chart.y_range, HEIGHT - BOTTOM, TOP, log=chart.y_log)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{ident}-t {ident}-d">',
        f'<title id="{ident}-t">{escape(chart.title)}</title><desc id="{ident}-d">{escape(chart.description)}</desc>',
        f'<clipPath id="{ident}-c"><rect x="{LEFT}" y="{TOP - 2}" width="{WIDTH - LEFT - RIGHT + 2}" '
        f'height="{HEIGHT - TOP - BOTTOM + 2}"/></clipPath>',
        *_axes(chart, x, y),
        *(_mark(mark, chart, x) for mark in _visible(chart)),
        f'<g clip-path="url(#{ident}-c)">',
        *(_line(line, chart, x, y) for line in chart.in_order),
        "</g>",
        *(_words(mark, chart, x, place) for place, mark in enumerate(m for m in _visible(chart) if m.text)),
        "</svg>",
    ]
    return "".join(parts)


def standalone(chart: Chart) -> str:
    """Return the chart as a file of its own, on white, with a legend."""
    palette = "".join(f".c{i}{{--c:{colour}}}" for i, colour in enumerate(LIGHT))
    in_turn = sorted(chart.lines, key=lambda line: line.thin)  # algorithms first, then their bounds
    rows = [_legend(line, place) for place, line in enumerate(in_turn)]
    height = HEIGHT + 16 * math.ceil(len(rows) / 2) + 8
    inner = svg(chart, ident="f").split(">", 1)[1].removesuffix("</svg>")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-labelledby="f-t f-d"><style>{STANDALONE}{palette}</style>'
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>{inner}{"".join(rows)}</svg>\n'
    )


def _legend(line: Line, place: int) -> str:
    """Return one entry of the legend, two to a row."""
    x, y = 12 + (place % 2) * 224, HEIGHT + 8 + 16 * (place // 2)
    kind = "line thin" if line.thin else "line"
    return (
        f'<g class="c{line.style.colour}"><path class="{kind}" d="M{x} {y}h26"{_dash(line)}/>'
        f'<text x="{x + 32}" y="{y + 4}" class="name">{escape(line.label)}</text></g>'
    )


def _axes(chart: Chart, x: Scale, y: Scale) -> list[str]:
    """Return grid, numbers and names of both axes."""
    parts = []
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for value in ticks(*chart.y_range, log=chart.y_log):
        at = float(y(np.array(value)))
        parts.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{right}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{short(value)}</text>')
    for value in ticks(*chart.x_range, log=chart.x_log):
        at = float(x(np.array(value)))
        parts.append(f'<path class="grid" d="M{at:.1f} {TOP}V{bottom}"/>')
        parts.append(f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{short(value)}</text>')
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>')
    middle = (LEFT + right) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(chart.x_label)}</text>')
    parts.append(f'<text x="6" y="{TOP - 12}">{escape(chart.y_label)}</text>')
    return parts


def _visible(chart: Chart) -> list[Mark]:
    """Return the marks that lie within the chart."""
    low, high = chart.x_range
    return [mark for mark in chart.marks if mark.start <= high and mark.end >= low]


def _ends(mark: Mark, chart: Chart, x: Scale) -> tuple[float, float]:
    """Return where a mark begins and ends on the drawing."""
    start, end = (float(x(np.array(np.clip(value, *chart.x_range)))) for value in (mark.start, mark.end))
    return start, end


def _mark(mark: Mark, chart: Chart, x: Scale) -> str:
    """Return a stripe or a rule."""
    start, end = _ends(mark, chart, x)
    colour = "" if mark.colour is None else f' class="c{mark.colour}"'
    if mark.start == mark.end:
        return f'<g{colour}><path class="rule" d="M{start:.1f} {TOP}V{HEIGHT - BOTTOM}"/></g>'
    size = f'width="{end - start:.1f}" height="{HEIGHT - TOP - BOTTOM}"'
    return f'<g{colour}><rect class="mark" x="{start:.1f}" y="{TOP}" {size}/></g>'


def _words(mark: Mark, chart: Chart, x: Scale, line: int) -> str:
    """Return the words of a mark: right of where it begins, or left of it where they would leave the chart."""
    start, _ = _ends(mark, chart, x)
    height = HEIGHT - BOTTOM - 8 - 14 * line if chart.low else TOP + 13 + 14 * line
    late = start > LEFT + 0.7 * (WIDTH - LEFT - RIGHT)
    place = f'x="{start - 4:.1f}" text-anchor="end"' if late else f'x="{start + 4:.1f}"'
    return f'<text {place} y="{height}" class="note">{escape(mark.text)}</text>'


def _line(line: Line, chart: Chart, x: Scale, y: Scale) -> str:
    """Return a curve and its band."""
    parts = [f'<g class="c{line.style.colour}" data-algorithm="{line.number}"><title>{escape(line.label)}</title>']
    band = chart.band(line)
    if band is not None:
        low, high = band
        for piece in _pieces(low + high, log=chart.y_log):
            forth = _points(x(line.x[piece]), y(high[piece]))
            back = _points(x(line.x[piece])[::-1], y(low[piece])[::-1])
            parts.append(f'<path class="band" d="M{forth}L{back}Z"/>')
    kind = "line thin" if line.thin else "line"
    path = "".join(f"M{_points(x(line.x[piece]), y(line.y[piece]))}" for piece in _pieces(line.y, log=chart.y_log))
    parts.append(f'<path class="{kind}" d="{path}"{_dash(line)}/></g>')
    return "".join(parts)


def _dash(line: Line) -> str:
    return f' stroke-dasharray="{line.style.dash}"' if line.style.dash else ""


def _pieces(values: Floats, *, log: bool) -> list[Ints]:
    """Return runs of places at which values can be drawn: finite, and positive on a logarithmic axis."""
    drawn = np.isfinite(values) & ((values > 0.0) | (not log))
    pieces = np.split(np.arange(len(values)), np.flatnonzero(np.diff(drawn.astype(int))) + 1)
    return [piece for piece in pieces if drawn[piece[0]]]


def _points(x: Floats, y: Floats) -> str:
    """Return places as text, with one digit after the point."""
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
