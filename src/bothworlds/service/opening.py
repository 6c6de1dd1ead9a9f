"""Open an experiment at the start of a service: start it, or restore it and apply the settings that have changed."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from bothworlds.policy import Policy
from bothworlds.precompile import exercise
from bothworlds.problem import Problem
from bothworlds.service.experiment import (
    Experiment,
    frame_of,
    load_snapshot,
    restore,
    snapshot_of,
    warm_plan,
)
from bothworlds.service.setting_changes import (
    apply_settings,
    is_new_file,
    is_other,
    notes_of_file,
    notes_of_settings,
    sentence_of,
    settings_at_start,
)
from bothworlds.service.settings import ExperimentSettings
from bothworlds.service.store import Store


def open_experiment(
    name: str,
    settings: ExperimentSettings,
    store: Store,
    folder: Path,
    say: Callable[[str], None],
    *,
    shared: bool = False,
    trained: bool = True,
) -> Experiment:
    """Start an experiment, or restore it if the store has it. ``shared`` and ``trained`` are as in `Experiment`.

    Raises
    ------
    ValueError
        If the settings have another reward range or problem than the store, an algorithm that cannot take over, or
        another algorithm, holdout or window while another host learns.
    """
    number = store.experiment(name)
    problem = settings.make_problem(folder)
    if not store.snapshots(number):
        say(f"{name}: starting")
        policy: Policy = settings.make_algorithm().start(problem, holdout=settings.holdout)
        notes = notes_of_file(number, settings) | notes_of_settings(number, settings)
        store.append([], snapshots=[snapshot_of(policy, number)], frames=[frame_of(policy)], notes=notes)
        exercise(policy.copy())
        return Experiment(name, number, settings, policy, warm_plan(policy), shared=shared, trained=trained)
    restored = restore(store, number)
    policy = restored.policy
    say(f"{name}: version {policy.version}, {restored.replayed:,} rewards replayed after the newest snapshot")
    _check_problem(store, number, policy, problem)
    running, wanted = settings_at_start(settings, store, number, policy)
    experiment = Experiment(name, number, running, policy, warm_plan(policy), shared=shared, trained=trained)
    experiment.through, experiment.ordered_through = restored.through, restored.ordered_through
    experiment.expired_through = store.note(experiment.cursor)
    if is_other(experiment, wanted):
        _take_over(experiment, store, wanted, say)
    experiment.settings = wanted
    if trained and is_new_file(store, number, settings):
        store.append([], notes=notes_of_file(number, settings) | notes_of_settings(number, wanted))
    exercise(experiment.policy.copy())
    experiment.closed_fingerprints = experiment.policy.closed_fingerprints
    experiment.requeue(store)
    return experiment


def _take_over(experiment: Experiment, store: Store, wanted: ExperimentSettings, say: Callable[[str], None]) -> None:
    """Decide by the settings of the file from now on; no other host may learn meanwhile."""
    number = experiment.number
    if not experiment.trained:
        raise ValueError(
            "the store has another algorithm, holdout or window than the settings: first start a host that learns with "
            "these settings"
        )
    with store.alone():
        restored = restore(store, number)  # again, as another host may have learned until now
        policy = experiment.policy = restored.policy
        experiment.through, experiment.ordered_through = restored.through, restored.ordered_through
        algorithm = policy.algorithm
        try:
            marks = apply_settings(experiment, wanted, machine=None)
        except ValueError as error:
            raise ValueError(
                f"the algorithm cannot change from {algorithm!r}, which the store has, to {wanted.make_algorithm()!r}: "
                f"{error}; or use another experiment name"
            ) from None
        experiment.plan = warm_plan(policy)
        snapshot, frame = snapshot_of(policy, number, experiment), frame_of(policy)
        notes, plans = notes_of_settings(number, wanted), [(number, experiment.plan)]
        store.append(marks, snapshots=[snapshot], frames=[frame], notes=notes, plans=plans)
        for mark in marks:
            say(f"{experiment.name}: {sentence_of(mark)}")


def _check_problem(store: Store, number: int, policy: Policy, problem: Problem) -> None:
    """Refuse a problem that is neither the first one in the store nor the current one."""
    current = policy.problem
    if problem.reward_range != current.reward_range:
        raise ValueError(
            f"the store has rewards in {_range_text(current)}, the settings have {_range_text(problem)}: the reward "
            "range of an experiment cannot change; use another experiment name"
        )
    if _is_same(problem, current):
        return
    first = load_snapshot(store, store.snapshots(number)[-1]).problem
    if _is_same(problem, first):
        return
    if _names(problem) in (_names(current), _names(first)):
        raise ValueError(
            "the settings have other features than the store for the same arms and contexts: features cannot change; "
            "use another experiment name, or add arms with other names by POST /v1/change"
        )
    raise ValueError(
        f"the settings have other arms or contexts than the store ({', '.join(current.arms[:8])} in "
        f"{current.n_contexts} contexts): add and retire arms by POST /v1/change"
    )


def _range_text(problem: Problem) -> str:
    return "[{:g}, {:g}]".format(*problem.reward_range) if problem.reward_range else "no range"


def _names(problem: Problem) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(problem.arms), tuple(problem.contexts)


def _is_same(problem: Problem, other: Problem) -> bool:
    """Return whether arms, contexts and features are the same; the context distributions may differ."""
    same_shape = _names(problem) == _names(other) and problem.features.shape == other.features.shape
    return same_shape and np.allclose(problem.features, other.features, rtol=1e-9, atol=1e-12)
