"""What a policy keeps of the problems it played before: enough for feedback that comes late, and for names.

A decision carries vectors in the coordinates of its time. Estimates are linear, so that those vectors, mapped to the
coordinates of today, are all that late feedback needs. Of a pair of a context and an arm that is gone a fingerprint of
its features stays, so that no other arm ever gets its name.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from bothworlds.kernels.arrays import Bools, Floats
from bothworlds.policy.decision import Decision
from bothworlds.policy.feeding import word_of
from bothworlds.policy.mapping import CoordinateChange
from bothworlds.problem import Problem

HASH = 8  # bytes


class Epoch(NamedTuple):
    """A time with one problem: the version of its first plan, names, g, what its decisions carry, and their mark.

    ``matrix`` maps its coordinates to those of today, v -> v @ matrix; it is empty where decisions carry no vectors.
    """

    began: int
    contexts: tuple[str, ...]
    arms: tuple[str, ...]
    probabilities: Floats
    carried: tuple[int, int]
    matrix: Floats
    footing: str

    def context_index(self, context: Any) -> int:
        """Return the index that a context had by its name."""
        try:
            return self.contexts.index(context)
        except ValueError:
            raise ValueError(f"unknown context {context!r} for a decision of version {self.began} or later") from None


@dataclass(frozen=True, eq=False, kw_only=True)
class History:
    """Epochs that are over, the version with which the present one began, and pairs that are gone."""

    epochs: tuple[Epoch, ...] = ()
    began: int = 0
    gone: Mapping[bytes, bytes] = field(default_factory=dict)

    def epoch_of(self, version: int, footing: str) -> Epoch:
        """Return the epoch that is over in which a decision was taken, by its mark; without one, by its version."""
        found = [epoch for epoch in self.epochs if (epoch.footing == footing if footing else epoch.began <= version)]
        if not found:
            raise ValueError(
                "a decision was taken on a problem, or under a law of contexts, that this policy does not know: it was "
                "changed after its file was saved, and lost. Load a newer file, or close the decision with expire"
            )
        return found[-1]

    def check_names(self, problem: Problem, new: Bools) -> None:
        """Refuse a pair that comes back with other features than it went with."""
        for x, a in np.argwhere(new).tolist():
            known = self.gone.get(_name_hash(problem, x, a))
            if known is not None and known != _feature_hash(problem, x, a):
                raise ValueError(
                    f"arm {problem.arms[a]!r} in context {problem.contexts[x]!r} was there before with other features. "
                    "A name stands for one arm for all time, in the log as well: give the new one a name of its own"
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
        footing: str,
    ) -> "History":
        """Return the history after a change of the problem, with which an epoch begins."""
        self.check_names(new, change.new)
        matrix = change.matrix if linear else np.zeros((0, 0))
        over = Epoch(self.began, old.contexts, old.arms, old.probabilities, carried, matrix, footing)
        epochs = self.epochs
        if linear and not change.is_identity:
            epochs = tuple(epoch._replace(matrix=epoch.matrix @ matrix) for epoch in self.epochs)
        left = {_name_hash(old, x, a): _feature_hash(old, x, a) for x, a in _left(old, new)}
        return replace(self, epochs=(*epochs, over), began=began, gone={**self.gone, **left})

    def after_rule(
        self, problem: Problem, *, carried: tuple[int, int], coordinates: int, began: int, footing: str
    ) -> "History":
        """Return the history after a change of the rule alone: what decisions carry stays as it is."""
        names = problem.contexts, problem.arms
        over = Epoch(self.began, *names, problem.probabilities, carried, np.eye(coordinates), footing)
        return replace(self, epochs=(*self.epochs, over), began=began)

    def today(self, made: Decision, problem: Problem) -> Decision | None:
        """Return a decision of an earlier epoch as one of today's problem, or None if its pair is gone."""
        epoch = self.epoch_of(made.version, made.footing)
        if not _is_of(made, epoch):
            raise ValueError(
                f"{word_of(made)}: damaged, or not of version {made.version}: names, direction or baseline do not fit"
            )
        if made.context_name not in problem.contexts or made.arm_name not in problem.arms:
            return None
        x, a = problem.contexts.index(made.context_name), problem.arms.index(made.arm_name)
        if not problem.available[x, a]:
            return None
        direction, baseline, propensity = made.direction, made.baseline, made.propensity
        if epoch.matrix.size and not made.holdout:
            direction = direction @ epoch.matrix
            baseline = None if baseline is None else baseline @ epoch.matrix
            # Whether a direction is possible is asked with g of today; what it was made with is in the propensity then.
            propensity = min(1.0, propensity * float(epoch.probabilities[made.context] / problem.probabilities[x]))
        return made._replace(context=x, arm=a, direction=direction, baseline=baseline, propensity=propensity)

    def header(self) -> dict[str, Any]:
        """Return what a file's header keeps."""
        told = [[epoch.began, epoch.contexts, epoch.arms, epoch.carried, epoch.footing] for epoch in self.epochs]
        return {"began": self.began, "epochs": told} if told else {}

    def arrays(self) -> dict[str, Any]:
        """Return what a file keeps as arrays."""
        if not (self.epochs or self.gone):
            return {}
        parts = {f"epoch.{i}.probabilities": epoch.probabilities for i, epoch in enumerate(self.epochs)}
        parts |= {f"epoch.{i}.matrix": epoch.matrix for i, epoch in enumerate(self.epochs)}
        gone = b"".join(name + features for name, features in sorted(self.gone.items()))
        return {**parts, "gone": np.frombuffer(gone, dtype=np.uint8).reshape(-1, 2 * HASH)}

    @classmethod
    def restore(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> Self:
        """Rebuild from a file; one without epochs is of a policy whose problem never changed, or of a copy."""
        epochs = []
        for i, (began, contexts, arms, carried, footing) in enumerate(header.get("epochs", [])):
            parts = (arrays[f"epoch.{i}.{name}"] for name in ("probabilities", "matrix"))
            length, further = carried
            epochs.append(
                Epoch(began, tuple(contexts), tuple(arms), next(parts), (length, further), next(parts), footing)
            )
        gone = {row[:HASH].tobytes(): row[HASH:].tobytes() for row in arrays.get("gone", ())}
        return cls(epochs=tuple(epochs), began=header.get("began", 0), gone=gone)


def _is_of(made: Decision, epoch: Epoch) -> bool:
    """Tell whether names and lengths of a decision are those of an epoch."""
    if not (0 <= made.context < len(epoch.contexts) and 0 <= made.arm < len(epoch.arms)):
        return False
    if (epoch.contexts[made.context], epoch.arms[made.arm]) != (made.context_name, made.arm_name):
        return False
    length, further = epoch.carried
    shapes = made.direction.shape, None if made.baseline is None else made.baseline.shape
    return made.holdout or shapes == ((length,), (further,) if further else None)


def _left(old: Problem, new: Problem) -> list[tuple[int, int]]:
    """Return the pairs that were offered and are not any more."""
    contexts = {name: i for i, name in enumerate(new.contexts)}
    arms = {name: i for i, name in enumerate(new.arms)}
    found = []
    for x, a in np.argwhere(old.available).tolist():
        there, here = contexts.get(old.contexts[x]), arms.get(old.arms[a])
        if there is None or here is None or not new.available[there, here]:
            found.append((x, a))
    return found


def _name_hash(problem: Problem, x: int, a: int) -> bytes:
    """Return bytes that stand for the names of a pair."""
    name = f"{len(problem.contexts[x])}:{problem.contexts[x]}{problem.arms[a]}"
    return hashlib.blake2b(name.encode(), digest_size=HASH, person=b"bothworlds-pair").digest()


def _feature_hash(problem: Problem, x: int, a: int) -> bytes:
    """Return bytes that stand for the features of a pair, whatever the order of columns, zeros left out."""
    values = problem.features[x, a]
    parts = np.sort(values[values != 0.0])
    return hashlib.blake2b(parts.tobytes(), digest_size=HASH, person=b"bothworlds-look").digest()
