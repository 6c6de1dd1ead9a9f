"""Earlier problems of a policy: the data that late feedback needs, and hashes of removed pairs.

A decision has vectors in the coordinates of its problem. Estimates are linear, so late feedback needs only these
vectors, mapped to the current coordinates. For each removed pair of a context and an arm, a hash of its features is
kept, so that no other arm can take its name.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from bothworlds.arrays import Bools, Floats
from bothworlds.policy.decision import Decision
from bothworlds.policy.feature_map import CoordinateChange
from bothworlds.policy.feedback import label_of
from bothworlds.problem import Problem

HASH = 8  # bytes


class Epoch(NamedTuple):
    """An earlier problem: version of its first plan, names, context distribution g, lengths of vectors, fingerprint.

    ``matrix`` maps its coordinates to the current ones, v -> v @ matrix; it is empty if decisions have no vectors.
    Decisions of a ``closed`` epoch are not learned from: another algorithm made them.
    """

    began: int
    contexts: tuple[str, ...]
    arms: tuple[str, ...]
    probabilities: Floats
    carried: tuple[int, int]
    matrix: Floats
    fingerprint: str
    closed: bool = False

    def context_index(self, context: Any) -> int:
        """Return the index of a context in this problem, by name."""
        try:
            return self.contexts.index(context)
        except ValueError:
            raise ValueError(f"unknown context {context!r} of a decision of version {self.began} or later") from None


@dataclass(frozen=True, eq=False, kw_only=True)
class History:
    """Earlier epochs, the first version of the current one, and feature hashes of removed pairs by name hash."""

    epochs: tuple[Epoch, ...] = ()
    began: int = 0
    removed: Mapping[bytes, bytes] = field(default_factory=dict)

    def epoch_of(self, fingerprint: str) -> Epoch:
        """Return the earlier epoch of a decision, by its fingerprint."""
        matching = [epoch for epoch in self.epochs if epoch.fingerprint == fingerprint]
        if not matching:
            raise ValueError(
                "a decision was taken with a problem or context distribution that this policy does not know: it was "
                "changed after the policy's file was saved. Load a newer file, or close the decision with expire"
            )
        return matching[-1]

    def check_names(self, problem: Problem, new: Bools) -> None:
        """Refuse a removed pair that returns with other features."""
        for x, a in np.argwhere(new).tolist():
            features = self.removed.get(_name_hash(problem, x, a))
            if features is not None and features != _feature_hash(problem, x, a):
                raise ValueError(
                    f"arm {problem.arms[a]!r} in context {problem.contexts[x]!r} existed before with other features. "
                    "A name stands for the same arm forever, also in the log: give the new arm another name"
                )

    def after(
        self,
        old: Problem,
        new: Problem,
        change: CoordinateChange,
        *,
        carried: tuple[int, int],
        linear: bool,
        began: int,
        fingerprint: str,
    ) -> "History":
        """Return the history after a change of the problem; ``began`` is the first version of the new epoch."""
        self.check_names(new, change.new)
        matrix = change.matrix if linear else np.zeros((0, 0))
        last = Epoch(self.began, old.contexts, old.arms, old.probabilities, carried, matrix, fingerprint)
        epochs = self.epochs
        if linear and not change.is_identity:
            epochs = tuple(
                epoch if epoch.closed else epoch._replace(matrix=epoch.matrix @ matrix) for epoch in self.epochs
            )
        removed = {_name_hash(old, x, a): _feature_hash(old, x, a) for x, a in _removed_pairs(old, new)}
        return replace(self, epochs=(*epochs, last), began=began, removed={**self.removed, **removed})

    def after_new_spec(
        self, problem: Problem, *, carried: tuple[int, int], coordinates: int, began: int, fingerprint: str
    ) -> "History":
        """Return the history after a change of the spec on the same problem: vectors of decisions stay the same."""
        names = problem.contexts, problem.arms
        last = Epoch(self.began, *names, problem.probabilities, carried, np.eye(coordinates), fingerprint)
        return replace(self, epochs=(*self.epochs, last), began=began)

    def after_new_algorithm(
        self, problem: Problem, *, carried: tuple[int, int], began: int, fingerprint: str
    ) -> "History":
        """Return the history after a change of the algorithm: earlier decisions have vectors that it cannot use."""
        none = np.zeros((0, 0))
        last = Epoch(self.began, problem.contexts, problem.arms, problem.probabilities, carried, none, fingerprint)
        epochs = tuple(epoch._replace(matrix=none, closed=True) for epoch in (*self.epochs, last))
        return replace(self, epochs=epochs, began=began)

    def convert(self, decision: Decision, problem: Problem) -> Decision | None:
        """Return a decision of an earlier epoch as one of the current problem.

        None if its pair was removed, or if another algorithm made it.
        """
        epoch = self.epoch_of(decision.fingerprint)
        if not _fits(decision, epoch):
            raise ValueError(
                f"{label_of(decision)}: damaged, or not of version {decision.version}: names, direction or baseline "
                "do not fit"
            )
        if epoch.closed or decision.context_name not in problem.contexts or decision.arm_name not in problem.arms:
            return None
        x, a = problem.contexts.index(decision.context_name), problem.arms.index(decision.arm_name)
        if not problem.available[x, a]:
            return None
        direction, baseline, propensity = decision.direction, decision.baseline, decision.propensity
        if epoch.matrix.size and not decision.holdout:
            direction = direction @ epoch.matrix
            baseline = None if baseline is None else baseline @ epoch.matrix
            # The range of directions is checked with the current g: the factor puts the old g into the propensity.
            propensity = min(1.0, propensity * float(epoch.probabilities[decision.context] / problem.probabilities[x]))
        return decision._replace(context=x, arm=a, direction=direction, baseline=baseline, propensity=propensity)

    def header(self) -> dict[str, Any]:
        """Return the entries for the header of a file."""
        epochs = [
            [epoch.began, epoch.contexts, epoch.arms, epoch.carried, epoch.fingerprint, epoch.closed]
            for epoch in self.epochs
        ]
        return {"began": self.began, "epochs": epochs}

    def arrays(self) -> dict[str, Any]:
        """Return the arrays for a file."""
        parts = {f"epoch.{i}.probabilities": epoch.probabilities for i, epoch in enumerate(self.epochs)}
        parts |= {f"epoch.{i}.matrix": epoch.matrix for i, epoch in enumerate(self.epochs)}
        removed = b"".join(name + features for name, features in sorted(self.removed.items()))
        return {**parts, "gone": np.frombuffer(removed, dtype=np.uint8).reshape(-1, 2 * HASH)}

    @classmethod
    def restore(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Self:
        """Rebuild from a file."""
        epochs = []
        for i, (began, contexts, arms, carried, fingerprint, closed) in enumerate(header["epochs"]):
            parts = (arrays[f"epoch.{i}.{name}"] for name in ("probabilities", "matrix"))
            direction_length, baseline_length = carried
            lengths = direction_length, baseline_length
            names = tuple(contexts), tuple(arms)
            epochs.append(Epoch(began, *names, next(parts), lengths, next(parts), fingerprint, closed))
        removed = {row[:HASH].tobytes(): row[HASH:].tobytes() for row in arrays["gone"]}
        return cls(epochs=tuple(epochs), began=header["began"], removed=removed)


def _fits(decision: Decision, epoch: Epoch) -> bool:
    """Return whether names and lengths of a decision are those of an epoch."""
    if not (0 <= decision.context < len(epoch.contexts) and 0 <= decision.arm < len(epoch.arms)):
        return False
    if (epoch.contexts[decision.context], epoch.arms[decision.arm]) != (decision.context_name, decision.arm_name):
        return False
    direction_length, baseline_length = epoch.carried
    shapes = decision.direction.shape, None if decision.baseline is None else decision.baseline.shape
    return decision.holdout or shapes == ((direction_length,), (baseline_length,) if baseline_length else None)


def _removed_pairs(old: Problem, new: Problem) -> list[tuple[int, int]]:
    """Return the pairs that the old problem offers and the new one does not, as indices of the old problem."""
    contexts = {name: i for i, name in enumerate(new.contexts)}
    arms = {name: i for i, name in enumerate(new.arms)}
    pairs = []
    for x, a in np.argwhere(old.available).tolist():
        new_x, new_arm = contexts.get(old.contexts[x]), arms.get(old.arms[a])
        if new_x is None or new_arm is None or not new.available[new_x, new_arm]:
            pairs.append((x, a))
    return pairs


def _name_hash(problem: Problem, x: int, a: int) -> bytes:
    """Return a hash of the names of a pair."""
    name = f"{len(problem.contexts[x])}:{problem.contexts[x]}{problem.arms[a]}"
    return hashlib.blake2b(name.encode(), digest_size=HASH, person=b"bothworlds-pair").digest()


def _feature_hash(problem: Problem, x: int, a: int) -> bytes:
    """Return a hash of the nonzero features of a pair, independent of the order of columns."""
    values = problem.features[x, a]
    nonzero = np.sort(values[values != 0.0])
    return hashlib.blake2b(nonzero.tobytes(), digest_size=HASH, person=b"bothworlds-look").digest()
