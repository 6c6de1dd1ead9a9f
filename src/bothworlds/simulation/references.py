"""Reference players: always the same, played beside whatever is compared, so that a score depends on nobody else.

A regret of 300 is good in one world and bad in another. What it is held against must not change with the list of
players, or an algorithm's score would change because another one joined.
"""

from dataclasses import replace
from typing import Any

from bothworlds.simulation.study import Cell, Study

REFERENCES: dict[str, dict[str, Any]] = {
    "LinUCB (width 0.5)": {"kind": "LinUCB", "width": 0.5},  # for calm worlds
    "RealFTRL": {"kind": "RealFTRL"},  # for adversaries; told the horizon
    "LC-Tsallis-INF matched": {"kind": "LCTsallisINF", "tuning": "matched"},  # for what is in between
    "uniform": {"kind": "uniform"},  # learns nothing
}


def references_of(cell: Cell) -> dict[str, Cell]:
    """Return the cells of the reference players in the environment of a cell, by their names.

    A reference that takes part by itself has the same key, so that it is not played twice.
    """
    found = {}
    for label, options in REFERENCES.items():
        told = {"horizon": cell.settings["horizon"]} if options["kind"] == "RealFTRL" else {}
        found[label] = replace(cell, algorithm=label, algorithm_options={**options, **told})
    return found


def reference_cells(study: Study) -> list[Cell]:
    """Return the cells of all reference players of a study; none where the study does without."""
    if not study.references:
        return []
    found = {one.key: one for cell in study.cells() for one in references_of(cell).values()}
    return list(found.values())
