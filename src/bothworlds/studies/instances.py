"""Instances of one comparison: cells that differ only in the seed, and their results pooled into one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.simulation.results import Results, Run
from bothworlds.studies.study import Cell


def by_instances(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Return cells in groups that differ only in the seed, in the order in which the groups appear."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        first = replace(cell, settings={**cell.settings, "seed": 0})
        groups.setdefault(first.key, []).append(cell)
    return list(groups.values())


def common_seeds(seeds: Mapping[str, Iterable[int]]) -> tuple[list[str], list[int]]:
    """Return the labels to compare and the seeds that all of them have; those with most seeds come first.

    A label that has no seed in common with the others is left out.

    >>> common_seeds({"a": [7, 8, 9], "b": [7, 8], "c": [4]})
    (['a', 'b'], [7, 8])
    """
    sets = {label: set(some) for label, some in seeds.items()}
    kept: list[str] = []
    shared: set[int] = set()
    for label in sorted(sets, key=lambda one: -len(sets[one])):
        common = sets[label] & shared if kept else sets[label]
        if common:
            kept.append(label)
            shared = common
    return [label for label in sets if label in kept], sorted(shared)


def pooled(several: Sequence[Results]) -> Results:
    """Return the results of several instances as one: a row for each instance, the mean of its replications.

    Means, intervals and quantiles of the pooled runs are then those over instances. The results of a single instance
    are returned as they are, with a row for each replication. The final policies are those of the first instance.
    """
    first, *others = several
    if not others:
        return first
    runs = {label: _pooled_run([results[label] for results in several]) for label in first.runs}
    measured = [results.manifest.get("run", {}).get("microseconds_per_round", {}) for results in several]
    costs = {label: float(np.mean([one[label] for one in measured])) for label in _shared_keys(measured)}
    run = {**first.manifest.get("run", {}), "microseconds_per_round": costs}
    return replace(first, runs=runs, manifest={**first.manifest, "run": run})


def _shared_keys(tables: Sequence[Mapping[str, float]]) -> list[str]:
    return [key for key in tables[0] if all(key in table for table in tables)]


def _pooled_run(runs: Sequence[Run]) -> Run:
    """Return runs on several instances as one run, a row for each."""

    def rows(name: str) -> Floats:
        return np.stack([getattr(run, name).mean(axis=0) for run in runs])

    def rates(name: str) -> Floats | None:
        return None if any(getattr(run, name) is None for run in runs) else rows(name)

    return Run(
        expected=rows("expected"),
        realised=rows("realised"),
        own_best=rows("own_best"),
        round_best=rows("round_best"),
        best=rows("best"),
        corruption=np.array([run.corruption.mean() for run in runs]),
        spent=np.mean([run.spent for run in runs], axis=0),
        policy=runs[0].policy,
        final=_pooled_final([run.final for run in runs]),
        learning_rate=rates("learning_rate"),
        exploration_rate=rates("exploration_rate"),
    )


def _pooled_final(several: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
    """Return what was learned on each instance, averaged over its replications; only arrays of equal shapes."""
    shapes = {name: {final[name].shape[1:] for final in several if name in final} for name in several[0]}
    return {
        name: np.stack([final[name].mean(axis=0) for final in several])
        for name, found in shapes.items()
        if len(found) == 1 and all(name in final for final in several)
    }
