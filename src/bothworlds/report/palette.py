"""One colour and one line style per algorithm, the same in every figure of every report.

The colours are those of Okabe and Ito, which remain distinct with every kind of colour blindness, darkened or lightened
for enough contrast on a light or a dark background. The line style encodes the algorithm a second time.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import LCTsallisINF

LIGHT = ("#0072b2", "#d55e00", "#2596cf", "#00805e", "#a9558a", "#b07a0a", "#767676", "#222222")
DARK = ("#4ea6e6", "#ff8a4c", "#9bd5f7", "#2cc79a", "#e39cc6", "#f0b840", "#a5a5a5", "#f0f0f0")
DASHES = ("", "7 4", "2 3", "9 3 2 3", "5 2")
KNOWN = {
    "LCTsallisINF certified": (0, 0),
    "LCTsallisINF matched": (7, 0),
    "LCTsallisINF paper": (2, 1),
    "RealFTRL": (3, 3),
    "RealLinExp3": (1, 3),
    "OFUL": (4, 4),
    "LinUCB": (5, 1),
    "DLinUCB": (4, 2),
    "uniform": (6, 2),
}
# Neighbours in this list differ in colour and in dashes.
FREE = [
    (colour, (place + shift) % len(DASHES))
    for shift in range(len(DASHES))
    for place, colour in enumerate((7, 4, 5, 3, 1, 0, 6, 2))
    if (colour, (place + shift) % len(DASHES)) not in KNOWN.values()
]


class Style(NamedTuple):
    """A place in the palette and a pattern of dashes (empty for a solid line)."""

    colour: int
    dash: str


def bound_style(style: Style) -> Style:
    """Return the style of a theorem's bound for an algorithm: its colour, in fine dots."""
    return Style(style.colour, "0.1 3.4")


def identity(options: dict[str, Any]) -> str:
    """Return the name that determines the colour of an algorithm of a study: its kind, and its tuning if it has one.

    >>> identity({"kind": "LCTsallisINF", "tuning": {"kind": "paper"}})
    'LCTsallisINF paper'
    >>> identity({"kind": "LCTsallisINF"})
    'LCTsallisINF matched'
    """
    kind = str(options.get("kind", ""))
    tuning = options.get("tuning", LCTsallisINF.tuning if kind == "LCTsallisINF" else "")
    tuning_kind = tuning.get("kind", "") if isinstance(tuning, dict) else tuning
    return f"{kind} {tuning_kind}".strip()


def styles(algorithms: Iterable[dict[str, Any]]) -> list[Style]:
    """Return a style for each algorithm: the fixed one of a known algorithm, otherwise the next free one.

    Among free styles, colours that the fewest other algorithms have come first.

    >>> styles([{"kind": "LinUCB"}, {"kind": "mine"}])
    [Style(colour=5, dash='7 4'), Style(colour=4, dash='7 4')]
    """
    names = [identity(options) for options in algorithms]
    first = {name: names.index(name) for name in names if name in KNOWN}
    shared = Counter(KNOWN[name][0] for name in first)
    free: list[tuple[int, int]] = []
    chosen = []
    for place, name in enumerate(names):
        free = free or list(FREE)
        style = KNOWN[name] if first.get(name) == place else min(free, key=lambda one: shared[one[0]])
        if first.get(name) != place:
            free.remove(style)
            shared[style[0]] += 1
        chosen.append(Style(style[0], DASHES[style[1]]))
    return chosen
