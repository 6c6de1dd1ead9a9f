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
SHORTEST_BAND = 0.25  # of the curve; shorter shreds of a band that dips below zero tell nothing
Scale = Callable[[Floats], Floats]

STANDALONE = (
    "text{font:12px system-ui,sans-serif;fill:#333}.axis{stroke:#888;fill:none}.grid{stroke:#ddd;fill:none}"
    ".line{fill:none;stroke:var(--c);stroke-width:2}.thin{stroke-width:1;opacity:.8}.band{fill:var(--c);opacity:.15}"
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
        *(_mark(mark, chart, x, TOP + 13 + 14 * place) for place, mark in enumerate(chart.marks)),
        f'<g clip-path="url(#{ident}-c)">',
        *(_line(line, chart, x, y) for line in chart.in_order),
        "</g></svg>",
    ]
    return "".join(parts)


def standalone(chart: Chart) -> str:
    """Return the chart as a file of its own, on white, with a legend."""
    palette = "".join(f".c{i}{{--c:{colour}}}" for i, colour in enumerate(LIGHT))
    rows = [_legend(line, i) for i, line in enumerate(line for line in chart.lines if not line.thin)]
    height = HEIGHT + 16 * math.ceil(len(rows) / 2) + 8
    inner = svg(chart, ident="f").split(">", 1)[1].removesuffix("</svg>")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-labelledby="f-t f-d"><style>{STANDALONE}{palette}</style>'
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>{inner}{"".join(rows)}</svg>\n'
    )


def _legend(line: Line, place: int) -> str:
    """Return one entry of the legend, two to a row."""
    x, y = LEFT + (place % 2) * 200, HEIGHT + 8 + 16 * (place // 2)
    return (
        f'<g class="c{line.style.colour}"><path class="line" d="M{x} {y}h26"{_dash(line)}/>'
        f'<text x="{x + 32}" y="{y + 4}">{escape(line.label)}</text></g>'
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


def _mark(mark: Mark, chart: Chart, x: Scale, height: int) -> str:
    """Return a stripe or a rule with its words."""
    low, high = chart.x_range
    if mark.start > high or mark.end < low:
        return ""
    start, end = (float(x(np.array(min(max(v, low), high)))) for v in (mark.start, mark.end))
    colour = "" if mark.colour is None else f' class="c{mark.colour}"'
    words = f'<text x="{start + 4:.1f}" y="{height}" class="note">{escape(mark.text)}</text>'
    if mark.start == mark.end:
        return f'<g{colour}><path class="rule" d="M{start:.1f} {TOP}V{HEIGHT - BOTTOM}"/>{words}</g>'
    size = f'width="{end - start:.1f}" height="{HEIGHT - TOP - BOTTOM}"'
    return f'<g{colour}><rect class="mark" x="{start:.1f}" y="{TOP}" {size}/>{words}</g>'


def _line(line: Line, chart: Chart, x: Scale, y: Scale) -> str:
    """Return a curve and its band."""
    parts = [f'<g class="c{line.style.colour}" data-algorithm="{line.number}"><title>{escape(line.label)}</title>']
    if line.low is not None and line.high is not None:
        for piece in _pieces(line.low, log=chart.y_log):
            if len(piece) < SHORTEST_BAND * len(line.x):
                continue
            forth = _points(x(line.x[piece]), y(line.high[piece]))
            back = _points(x(line.x[piece])[::-1], y(line.low[piece])[::-1])
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
