"""Open an experiment at the start of a service: start it, or restore it and apply the settings that have changed."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
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
from bothworlds.service.records import AlgorithmChanged, HoldoutChanged, Kind, Record, packed
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
        another algorithm or holdout while another host learns.
    """
    number = store.experiment(name)
    problem, algorithm = settings.make_problem(folder), settings.make_algorithm()
    if not store.snapshots(number):
        say(f"{name}: starting")
        policy = algorithm.start(problem, holdout=settings.holdout)
        store.append([], snapshots=[snapshot_of(policy, number)], frames=[frame_of(policy)])
        exercise(policy.copy())
        return Experiment(name, number, settings, policy, warm_plan(policy), shared=shared, trained=trained)
    restored = restore(store, number)
    policy = restored.policy
    say(f"{name}: version {policy.version}, {restored.replayed:,} rewards replayed after the newest snapshot")
    _check_problem(store, number, policy, problem)
    experiment = Experiment(name, number, settings, policy, warm_plan(policy), shared=shared, trained=trained)
    experiment.through, experiment.ordered_through = restored.through, restored.ordered_through
    experiment.expired_through = store.note(experiment.cursor)
    if _is_other(policy, algorithm, settings):
        _take_over(experiment, store, algorithm, say)
    exercise(experiment.policy.copy())
    experiment.closed_fingerprints = experiment.policy.closed_fingerprints
    experiment.requeue(store)
    return experiment


def _is_other(policy: Policy, algorithm: Any, settings: ExperimentSettings) -> bool:
    """Return whether the settings have another algorithm or holdout than a policy."""
    return repr(policy.algorithm) != repr(algorithm) or policy.plan().spec.holdout != settings.holdout


def _take_over(experiment: Experiment, store: Store, algorithm: Any, say: Callable[[str], None]) -> None:
    """Decide by the algorithm and the holdout of the settings from now on; no other host may learn meanwhile."""
    name, settings = experiment.name, experiment.settings
    if not experiment.trained:
        raise ValueError(
            "the store has another algorithm or holdout than the settings: first start a host that learns with these "
            "settings"
        )
    with store.alone():
        restored = restore(store, experiment.number)  # again, as another host may have learned until now
        policy = experiment.policy = restored.policy
        experiment.through, experiment.ordered_through = restored.through, restored.ordered_through
        if repr(policy.algorithm) != repr(algorithm):
            _change_algorithm(experiment, store, algorithm)
            since = f"from version {policy.version} on; what was learned is its prior"
            say(f"{name}: the algorithm is {algorithm!r} {since}")
        if policy.plan().spec.holdout != settings.holdout:
            _change_holdout(experiment, store)
            say(f"{name}: the holdout is {settings.holdout:g} from version {policy.version} on")


def _change_algorithm(experiment: Experiment, store: Store, algorithm: Any) -> None:
    """Decide by the algorithm of the settings, from a new version on."""
    policy = experiment.policy
    try:
        policy.change_algorithm(algorithm)
    except ValueError as error:
        raise ValueError(
            f"the algorithm cannot change from {policy.algorithm!r}, which the store has, to {algorithm!r}: {error}; "
            "or use another experiment name"
        ) from None
    content = msgspec.json.encode(experiment.settings.player)
    _publish_at_start(experiment, store, Kind.ALGORITHM, AlgorithmChanged, content)


def _change_holdout(experiment: Experiment, store: Store) -> None:
    """Hold out the share of the settings, from a new version on."""
    holdout = experiment.settings.holdout
    experiment.policy.change_holdout(holdout)
    _publish_at_start(experiment, store, Kind.HOLDOUT, HoldoutChanged, holdout)


def _publish_at_start(experiment: Experiment, store: Store, kind: Kind, body: Any, value: Any) -> None:
    """Store a mark with the policy's new version, and use its plan."""
    policy, number = experiment.policy, experiment.number
    experiment.plan = warm_plan(policy)
    content = body(policy.version, experiment.plan.digest, experiment.through, experiment.ordered_through, value)
    mark = Record(0, number, kind, None, time.time(), True, packed(content))
    snapshot, frame = snapshot_of(policy, number, experiment), frame_of(policy)
    store.append([mark], snapshots=[snapshot], frames=[frame], plans=[(number, experiment.plan)])


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
