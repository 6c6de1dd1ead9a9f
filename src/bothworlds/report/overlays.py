"""Curves from elsewhere, laid over those of a study in its figures: another folder of results, or a CSV file."""

import csv
import gzip
import io
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.report.panels import Summary, summary_of, unlike
from bothworlds.report.spreadsheets import from_text
from bothworlds.simulation.folder import read_folder

NEEDED = ("regime", "algorithm", "t", "regret")
NORMAL_95 = 1.96


class Curve(NamedTuple):
    """Regret of somebody at some rounds, with a 95 % interval and the middle 80 % where they are known."""

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

    Those of a folder have its name in their labels. A label that is ``taken``, or that an earlier place has, gets the
    name of its own place, and a number if that is not enough: every curve is told apart from all others.
    """
    found: dict[str, list[Curve]] = defaultdict(list)
    used = set(taken)
    for place in map(Path, places):
        several = of_summary(summary_of(read_folder(place)), _name(place)) if place.is_dir() else of_csv(place)
        apart: dict[str, str] = {}
        for label in dict.fromkeys(curve.label for curves in several.values() for curve in curves):
            apart[label] = unlike([label, _at(label, _name(place))], used)
            used.add(apart[label])
        for regime, curves in several.items():
            found[regime] += [curve._replace(label=apart[curve.label]) for curve in curves]
    return dict(found)


def _name(place: Path) -> str:
    """Return the name of a place; that of the present folder, too."""
    return place.name or place.resolve().name


def _at(label: str, place: str) -> str:
    """Return a label that says where its curve is from."""
    return label if label.endswith(f" ({place})") else f"{label} ({place})"


def for_regimes(overlays: Overlays, regimes: Iterable[str]) -> tuple[Overlays, list[str]]:
    """Return the curves of some regimes, and for which others there were curves; refuse if there are only such.

    >>> for_regimes({"calm": [], "storm": []}, ["calm", "hit"])
    ({'calm': []}, ['storm'])
    """
    known = list(regimes)
    kept = {regime: curves for regime, curves in overlays.items() if regime in known}
    others = [regime for regime in overlays if regime not in known]
    if others and not kept:
        raise ValueError(_nowhere(others, known))
    return kept, others


def check_regimes(overlays: Overlays, regimes: Iterable[str]) -> None:
    """Refuse curves for a regime that is not there: nobody would see them."""
    _, others = for_regimes(overlays, known := list(regimes))
    if others:
        raise ValueError(_nowhere(others, known))


def _nowhere(others: list[str], known: list[str]) -> str:
    """Say for which regimes there are curves, and which there are."""
    return f"curves for {', '.join(map(repr, others))}, but the regimes here are {', '.join(map(repr, known))}"


def of_summary(summary: Summary, name: str) -> Overlays:
    """Return the curves of another study; labels say where they are from."""
    found = {}
    for panel in summary.panels:
        found[panel.name] = [
            Curve(
                f"{entry.label} ({name})",
                entry.rounds.astype(np.float64),
                entry.run.regret,
                entry.half_width,
                *entry.run.quantiles([0.1, 0.9]),
            )
            for entry in panel.entries
        ]
    return found


def of_csv(path: Path) -> Overlays:
    """Return the curves of a CSV with the columns regime, algorithm, t and regret, as the page saves it.

    ``standard_error``, ``q10`` and ``q90`` are taken where they are there.
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
    found: dict[str, list[Curve]] = defaultdict(list)
    for (regime, label), several in groups.items():
        found[regime].append(_curve(label, several, path))
    return dict(found)


def _curve(label: str, rows: list[dict[str, Any]], path: Path) -> Curve:
    t, regret = _column(rows, "t", path), _column(rows, "regret", path)
    if t is None or regret is None or not (np.diff(t) > 0.0).all() or not 1.0 <= t[0] <= t[-1] < np.inf:
        raise ValueError(f"{path}: the rounds t of {label!r} must be rising numbers from 1 on")
    error = _column(rows, "standard_error", path)
    half = None if error is None else NORMAL_95 * error
    return Curve(label, t, regret, half, _column(rows, "q10", path), _column(rows, "q90", path))


def _column(rows: list[dict[str, Any]], name: str, path: Path) -> Floats | None:
    """Return a column as numbers, None if it is not there or not filled."""
    words = [row.get(name) for row in rows]
    if any(word in (None, "") for word in words):
        return None
    try:
        return np.array([float(str(word)) for word in words])
    except ValueError as error:
        raise ValueError(f"{path}, column {name}: {error}") from None
