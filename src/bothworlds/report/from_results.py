"""A summary of what `simulate` returns: one regime, no study, no reference players."""

from typing import Any

from bothworlds.algorithms.registry import ANOTHER_NAME
from bothworlds.report.palette import styles
from bothworlds.report.panels import Entry, Panel, Summary, slug
from bothworlds.simulation.results import Results
from bothworlds.simulation.study import Cell, Study


def summary_from(results: Results) -> Summary:
    """Arrange the results of a simulation; results read from a file have forgotten their world, and are refused."""
    if results.world is None:
        raise ValueError("results from a file do not know their world any more: a page needs those of bw.simulate")
    given, name = results.manifest, results.environment
    options = {label: options_of(given["algorithms"].get(label)) for label in results.runs}
    settings = {key: int(given[key]) for key in ("horizon", "replications", "seed", "delay", "batch")}
    study = Study(name=name, settings=settings, sizes={}, environments={name: {}}, algorithms=options)
    found = dict(zip(options, styles(options.values()), strict=True))
    entries = [
        Entry(
            label=label,
            number=number,
            style=found[label],
            cell=_cell(study, label),
            results=results,
            player=results.players.get(label),
        )
        for number, label in enumerate(options)
    ]
    panel = Panel(name=name, ident=slug(name), environment=results.world, entries=entries, replayed={}, references={})
    return Summary(
        study=study,
        panels=[panel],
        labels=list(options),
        styles=found,
        manifest=given,
        missing=[],
        from_python=True,
    )


def _cell(study: Study, label: str) -> Cell:
    return Cell(
        environment=study.name,
        algorithm=label,
        sizes={},
        environment_options={},
        algorithm_options=study.algorithms[label],
        settings=study.settings,
    )


def options_of(plain: Any) -> dict[str, Any]:
    """Return what decides the colour of an algorithm from what a manifest says of it.

    >>> options_of({"name": "LCTsallisINF", "alpha": 0.5, "tuning": {"name": "Matched", "gain": 2.5}})
    {'kind': 'LCTsallisINF', 'tuning': 'matched'}
    """
    if not isinstance(plain, dict):
        return {"kind": str(plain)}
    kind, tuning = str(plain.get("name")), plain.get("tuning")
    inner = {"tuning": str(tuning["name"]).lower()} if isinstance(tuning, dict) else {}
    return {"kind": ANOTHER_NAME.get(kind, kind), **inner}
