"""Overlay curves: curves of another folder of results or of a CSV file, drawn over those of a study."""

import csv
import gzip
import io
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.report.csv_cells import from_text
from bothworlds.report.summary import Summary, summary_of, unlike
from bothworlds.studies.folder import read_folder

NEEDED = ("regime", "algorithm", "t", "regret")
NORMAL_95 = 1.96


class Curve(NamedTuple):
    """Regret of an algorithm at some rounds, with a 95 % interval and the middle 80 % where they are known."""

    label: str
    t: Floats
    regret: Floats
    half: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None


Overlays = Mapping[str, list[Curve]]  # by regime
NO_OVERLAYS: Overlays = {}


def read_overlays(places: Iterable[str | Path], *, taken: Iterable[str] = ()) -> Overlays:
    """Return the curves of some folders of results and CSV files (.csv, .csv.gz), by regime.

    Labels of curves from a folder contain its name. A label that is ``taken``, or that an earlier file or folder has,
    gets the name of its own file or folder, and a number if necessary, so that all labels differ.
    """
    overlays: dict[str, list[Curve]] = defaultdict(list)
    used = set(taken)
    for place in map(Path, places):
        read = of_summary(summary_of(read_folder(place)), _name(place)) if place.is_dir() else of_csv(place)
        unique: dict[str, str] = {}
        for label in dict.fromkeys(curve.label for curves in read.values() for curve in curves):
            unique[label] = unlike([label, _at(label, _name(place))], used)
            used.add(unique[label])
        for regime, curves in read.items():
            overlays[regime] += [curve._replace(label=unique[curve.label]) for curve in curves]
    return dict(overlays)


def _name(place: Path) -> str:
    """Return the name of a file or folder, also of the current folder."""
    return place.name or place.resolve().name


def _at(label: str, place: str) -> str:
    """Return a label with the name of the curve's source."""
    return label if label.endswith(f" ({place})") else f"{label} ({place})"


def for_regimes(overlays: Overlays, regimes: Iterable[str]) -> tuple[Overlays, list[str]]:
    """Return the curves of some regimes, and the other regimes that have curves; refuse if all curves are for others.

    >>> for_regimes({"calm": [], "storm": []}, ["calm", "hit"])
    ({'calm': []}, ['storm'])
    """
    known = list(regimes)
    selected = {regime: curves for regime, curves in overlays.items() if regime in known}
    others = [regime for regime in overlays if regime not in known]
    if others and not selected:
        raise ValueError(_unknown_regimes(others, known))
    return selected, others


def check_regimes(overlays: Overlays, regimes: Iterable[str]) -> None:
    """Refuse curves for unknown regimes, which no figure would show."""
    _, others = for_regimes(overlays, known := list(regimes))
    if others:
        raise ValueError(_unknown_regimes(others, known))


def _unknown_regimes(others: list[str], known: list[str]) -> str:
    """Return the message on curves for regimes that the study does not have."""
    return f"curves for {', '.join(map(repr, others))}, but the regimes here are {', '.join(map(repr, known))}"


def of_summary(summary: Summary, name: str) -> Overlays:
    """Return the curves of another study, with its name in the labels."""
    overlays = {}
    for panel in summary.panels:
        overlays[panel.name] = [
            Curve(
                f"{entry.label} ({name})",
                entry.rounds.astype(np.float64),
                entry.run.regret,
                entry.half_width,
                *entry.run.quantiles([0.1, 0.9]),
            )
            for entry in panel.entries
        ]
    return overlays


def of_csv(path: Path) -> Overlays:
    """Return the curves of a CSV file with the columns regime, algorithm, t and regret, such as the page's curves.csv.

    The columns ``standard_error``, ``q10`` and ``q90`` are optional.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    except FileNotFoundError:
        raise FileNotFoundError(f"no such file: {path}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is not a compressed file, or it is damaged: {error}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a CSV file: {error}") from None
    missing = [name for name in NEEDED if not rows or name not in rows[0]]
    if missing:
        raise ValueError(f"{path} has no column {missing[0]!r}; curves need {', '.join(NEEDED)}")
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for number, row in enumerate(rows, 1):
        if not row["regime"] or not row["algorithm"]:
            raise ValueError(f"{path}, row {number}: a curve needs a regime and an algorithm, and one of them is empty")
        groups[from_text(row["regime"]), from_text(row["algorithm"])].append(row)
    overlays: dict[str, list[Curve]] = defaultdict(list)
    for (regime, label), group in groups.items():
        overlays[regime].append(_curve(label, group, path))
    return dict(overlays)


def _curve(label: str, rows: list[dict[str, Any]], path: Path) -> Curve:
    t, regret = _column(rows, "t", path), _column(rows, "regret", path)
    if t is None or regret is None or not (np.diff(t) > 0.0).all() or not 1.0 <= t[0] <= t[-1] < np.inf:
        raise ValueError(f"{path}: the rounds t of {label!r} must be rising numbers from 1 on")
    error = _column(rows, "standard_error", path)
    half = None if error is None else NORMAL_95 * error
    return Curve(label, t, regret, half, _column(rows, "q10", path), _column(rows, "q90", path))


def _column(rows: list[dict[str, Any]], name: str, path: Path) -> Floats | None:
    """Return a column as numbers, None if it is missing or has empty cells."""
    cells = [row.get(name) for row in rows]
    if any(cell in (None, "") for cell in cells):
        return None
    try:
        return np.array([float(str(cell)) for cell in cells])
    except ValueError as error:
        raise ValueError(f"{path}, column {name}: {error}") from None
