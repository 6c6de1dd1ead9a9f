"""Changes of holdout, reward window and algorithm: at a start by the settings file, or by a request while it runs.

Each is a mark in the log with a new version. What the settings file said at the last start is noted in the store: a
setting that was changed by a request stays until the file says something new.
"""

import hashlib
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from bothworlds.kernels.contract import Machine
from bothworlds.policy import Policy
from bothworlds.policy.spec import PolicySpec
from bothworlds.policy.transfer import beliefs_of
from bothworlds.precompile import exercise
from bothworlds.problem import Problem
from bothworlds.service.experiment import Experiment, algorithm_in, warm_plan
from bothworlds.service.messages import SettingsChange
from bothworlds.service.records import (
    MARKS,
    AlgorithmChanged,
    HoldoutChanged,
    Kind,
    Record,
    WindowChanged,
    packed,
    unpacked,
)
from bothworlds.service.settings import ExperimentSettings, check_window, duration_text
from bothworlds.service.store import Store
from bothworlds.user_code import is_user_kind

CHANGEABLE = ("holdout", "window", "algorithm")


class PreparedSettings(NamedTuple):
    """Checked settings, and the machine of a new algorithm for a problem, None if the algorithm stays."""

    settings: ExperimentSettings
    problem: Problem
    machine: Machine | None

    def machine_for(self, problem: Problem) -> Machine | None:
        """Return the machine if it is that for a problem, which may have changed meanwhile."""
        return self.machine if problem == self.problem else None


def changed_settings(settings: ExperimentSettings, request: SettingsChange) -> ExperimentSettings:
    """Return settings with what a request changes; a ValueError if they are not valid."""
    changes = {name: value for name in CHANGEABLE if (value := getattr(request, name)) is not None}
    if not changes:
        raise ValueError(f"nothing to change: give {', '.join(CHANGEABLE[:-1])} or {CHANGEABLE[-1]}")
    algorithm = changes.get("algorithm")
    if is_user_kind(algorithm.get("kind") if isinstance(algorithm, dict) else None):
        raise ValueError("an algorithm of your own runs code on the service: name it in the settings file and restart")
    changed = msgspec.structs.replace(settings, **changes)
    check_window(changed)
    if not 0.0 <= changed.holdout < 1.0:
        raise ValueError(f"holdout must be at least 0 and below 1; got {changed.holdout:g}")
    if not _milliseconds(changed):
        raise ValueError(f"window is at least a millisecond; got {changed.window!r}")
    changed.make_algorithm()
    return msgspec.structs.replace(changed, window=duration_text(_milliseconds(changed) / 1e3))


def prepare_settings(experiment: Experiment, request: SettingsChange) -> PreparedSettings:
    """Compute and compile what other settings need; a ValueError if they are not possible."""
    settings, policy = changed_settings(experiment.settings, request), experiment.policy
    algorithm, problem = settings.make_algorithm(), policy.problem
    if repr(algorithm) == repr(policy.algorithm):
        return PreparedSettings(settings, problem, None)
    trial: Policy = algorithm.start(problem)
    machine = trial.plan().spec.machine
    beliefs_of(policy.plan().spec.machine, policy.algorithm)
    beliefs_of(machine, algorithm)
    exercise(trial)
    return PreparedSettings(settings, problem, machine)


def apply_settings(experiment: Experiment, settings: ExperimentSettings, *, machine: Machine | None) -> list[Record]:
    """Let an experiment's policy follow settings, and return the marks of what has changed; a ValueError if it cannot.

    ``machine`` is that of the new algorithm for the policy's problem, if it is known.
    """
    policy, marks = experiment.policy, list[Record]()

    def note(kind: Kind, body: Any, value: Any) -> None:
        learned = experiment.through, experiment.ordered_through
        marks.append(mark_of(experiment, kind, packed(body(policy.version, warm_plan(policy).digest, *learned, value))))

    algorithm = settings.make_algorithm()
    if repr(policy.algorithm) != repr(algorithm):
        policy.change_algorithm(algorithm, machine=machine)
        note(Kind.ALGORITHM, AlgorithmChanged, msgspec.json.encode(settings.player))
    if policy.plan().spec.holdout != settings.holdout:
        policy.change_holdout(settings.holdout)
        note(Kind.HOLDOUT, HoldoutChanged, settings.holdout)
    if _milliseconds(experiment.settings) != _milliseconds(settings):
        policy.renumber(policy.version + 1)
        note(Kind.WINDOW, WindowChanged, settings.window)
    return marks


def mark_of(experiment: Experiment, kind: Kind, body: bytes) -> Record:
    """Return a mark of an experiment for the log."""
    return Record(0, experiment.number, kind, None, time.time(), True, body)


def sentence_of(mark: Record) -> str:
    """Return what a mark says about the settings."""
    body = unpacked(MARKS[mark.kind], mark.body)
    since = f"from version {body.version:,} on"
    if mark.kind == Kind.ALGORITHM:
        return f"the algorithm is {algorithm_in(body.algorithm)!r} {since}; what was learned is its prior"
    if mark.kind == Kind.HOLDOUT:
        return f"the holdout is {body.holdout:g} {since}"
    return f"the window is {body.window} {since}"


def is_other(experiment: Experiment, settings: ExperimentSettings) -> bool:
    """Return whether settings have another algorithm, holdout or window than an experiment."""
    spec = experiment.plan.spec
    return (repr(spec.algorithm), spec.holdout, _milliseconds(experiment.settings)) != (
        repr(settings.make_algorithm()),
        settings.holdout,
        _milliseconds(settings),
    )


def settings_at_start(
    file: ExperimentSettings, store: Store, number: int, policy: Policy
) -> tuple[ExperimentSettings, ExperimentSettings]:
    """Return the settings that an experiment of a store has, and those that it is to have.

    What the file says is wanted if it is new since the last start; otherwise what the store has stays.
    """
    running = running_settings(file, store, number, policy.plan().spec)
    noted = notes_of_file(number, file)
    kept = {name: getattr(running, name) for name in CHANGEABLE if _is_noted(store, _file_key(name, number), noted)}
    wanted = msgspec.structs.replace(file, **kept)
    check_window(wanted)
    return running, wanted


def running_settings(settings: ExperimentSettings, store: Store, number: int, spec: PolicySpec) -> ExperimentSettings:
    """Return settings with the window, the holdout and the algorithm that an experiment of a store has."""
    changes: dict[str, Any] = {"holdout": spec.holdout}
    milliseconds = store.note(_window_key(number))
    if milliseconds not in (0, _milliseconds(settings)):
        changes["window"] = duration_text(milliseconds / 1e3)
    if repr(spec.algorithm) != repr(settings.make_algorithm()):
        bodies = [mark.body for mark in store.marks(number) if mark.kind == Kind.ALGORITHM]
        if bodies:
            changes["algorithm"] = msgspec.json.decode(unpacked(AlgorithmChanged, bodies[-1]).algorithm)
    return msgspec.structs.replace(settings, **changes)


def follow_settings(experiment: Experiment, store: Store, spec: PolicySpec) -> None:
    """Take over what the store has: another host may have changed it, or this one without hearing that it did."""
    experiment.settings = running_settings(experiment.settings, store, experiment.number, spec)


def notes_of_settings(number: int, settings: ExperimentSettings) -> dict[str, int]:
    """Return the note in the store that says which window an experiment has."""
    return {_window_key(number): _milliseconds(settings)}


def notes_of_file(number: int, file: ExperimentSettings) -> dict[str, int]:
    """Return the notes in the store that say what the settings file says, as hashes."""
    values = {"holdout": file.holdout, "window": _milliseconds(file), "algorithm": file.player}
    return {_file_key(name, number): _hash(value) for name, value in values.items()}


def is_new_file(store: Store, number: int, file: ExperimentSettings) -> bool:
    """Return whether the settings file says something else than at the last start."""
    return any(store.note(name) != value for name, value in notes_of_file(number, file).items())


def _is_noted(store: Store, name: str, notes: Mapping[str, int]) -> bool:
    return store.note(name) == notes[name]


def _hash(value: Any) -> int:
    content = msgspec.json.encode(value, order="deterministic")
    return int.from_bytes(hashlib.blake2b(content, digest_size=6).digest())


def _milliseconds(settings: ExperimentSettings) -> int:
    return round(1e3 * settings.seconds)


def _file_key(name: str, number: int) -> str:
    return f"file {name} {number}"


def _window_key(number: int) -> str:
    return f"window {number}"
