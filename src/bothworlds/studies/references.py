"""Reference players: fixed algorithms that every comparison plays, so that scores do not depend on the other players.

A regret of 300 is good in one environment and bad in another, so scores are ratios to reference players. These do not
change with the list of algorithms; otherwise adding an algorithm would change the scores of the others.
"""

from dataclasses import replace
from typing import Any

from bothworlds.studies.study import Cell, Study

REFERENCES: dict[str, dict[str, Any]] = {
    "LinUCB (width 0.5)": {"kind": "LinUCB", "width": 0.5},  # for stochastic environments
    "D-LinUCB (width 0.5)": {"kind": "DLinUCB", "width": 0.5},  # for environments that change
    "RealFTRL": {"kind": "RealFTRL"},  # for adversaries; receives the horizon
    "LC-Tsallis-INF matched": {"kind": "LCTsallisINF", "tuning": "matched"},  # for intermediate regimes
    "uniform": {"kind": "uniform"},  # learns nothing
}


def references_of(cell: Cell) -> dict[str, Cell]:
    """Return the cells of the reference players in the environment of a cell, by name.

    A reference that is also part of the study has the same key, so that it is played once.
    """
    found = {}
    for label, options in REFERENCES.items():
        told = {"horizon": cell.settings["horizon"]} if options["kind"] == "RealFTRL" else {}
        found[label] = replace(cell, algorithm=label, algorithm_options={**options, **told})
    return found


def reference_cells(study: Study) -> list[Cell]:
    """Return the cells of all reference players of a study; empty for a study without references."""
    if not study.references:
        return []
    found = {one.key: one for cell in study.cells() for one in references_of(cell).values()}
    return list(found.values())
