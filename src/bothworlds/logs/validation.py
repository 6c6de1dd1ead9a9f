"""Validation of log rows, and the errors that it raises."""

import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from bothworlds.logs.schema import Row
from bothworlds.problem.checks import check_reward_range


class LogError(ValueError):
    """A log is incomplete or inconsistent; the message names the file, the row, what is wrong and what to do.

    ``source`` is the file or the kind of list, ``row`` the number of the row, counted from 1, or None if the error is
    about the whole file.

    >>> print(LogError("clicks.csv", 17, "propensity 1.5 is not in (0, 1]"))
    clicks.csv, row 17: propensity 1.5 is not in (0, 1]
    """

    def __init__(self, source: str | Path, row: int | None, what: str) -> None:
        super().__init__(f"{source}: {what}" if row is None else f"{source}, row {row}: {what}")
        self.source, self.row = str(source), row


def shown(value: object) -> str:
    """Return a value for a message, truncated to 80 characters."""
    return f"{value!r:.80}"


TOLERANCE = 1e-6  # of sums of probabilities: rounding to single precision
LARGEST = sys.float_info.max
RECENT = 1 << 18  # number of ids that are compared immediately; older ones are compared in batches
Numbered: TypeAlias = Iterator[tuple[int, Row]]
Limits: TypeAlias = tuple[float, float] | None


def checked(
    rows: Iterable[Row], *, reward_range: Limits = None, tolerance: float = TOLERANCE, source: str | Path = "the log"
) -> Iterator[Row]:
    """Yield rows unchanged; raise a `LogError` with the row's number for the first invalid one.

    Every reader of this package does so. Valid means: propensities are in (0, 1], the arm was offered, probabilities
    sum to one and agree with the propensity, numbers are finite, rewards lie in their range, and ids are unique. Ids
    are compared by 64-bit hashes, 16 bytes for each: a repeated id is detected at most about 260,000 rows later, and
    before the end.

    Parameters
    ----------
    rows
        Rows from any source.
    reward_range
        (lowest, highest) reward; without it rewards need only be finite.
    tolerance
        Largest distance of the sum of probabilities from one, and of the arm's probability from the propensity.
        Increase it for rounded logs.
    source
        Name of the log in messages.

    >>> row = Row(id="visit 9", arm="red", propensity=0.5, offered=("red", "blue"), probabilities=(0.5, 0.4))
    >>> list(checked([row]))
    Traceback (most recent call last):
    bothworlds.logs.validation.LogError: the log, row 1: the probabilities sum to 0.9, not to 1; give the whole vector
    """
    return checked_rows(enumerate(rows, 1), source, reward_range, tolerance)


def checked_rows(rows: Numbered, source: str | Path, reward_range: Limits, tolerance: float) -> Iterator[Row]:
    """Check numbered rows as `checked` does, and yield them without their numbers."""
    limits, ids = check_reward_range(reward_range), Ids(source)
    for number, row in rows:
        fault = fault_of(row, limits, tolerance)
        if fault is not None:
            raise LogError(source, number, fault)
        ids.add(row.id, number)
        yield row
    ids.compare()


def writable_rows(rows: Iterable[Row], source: str | Path) -> Numbered:
    """Check rows for a writer and yield them with their numbers; probabilities may be rounded, ids may repeat."""
    for number, row in enumerate(rows, 1):
        fault = fault_of(row, None, math.inf)
        if fault is not None:
            raise LogError(source, number, fault)
        yield number, row


def fault_of(row: Row, limits: Limits, tolerance: float) -> str | None:
    """Return what is wrong with a row, or None."""
    return _fault_of_names(row) or _fault_of_probabilities(row, tolerance) or _fault_of_numbers(row, limits)


def _fault_of_names(row: Row) -> str | None:
    if type(row.id) is not str or not row.id:
        return f"an id must be a text with at least one character; got {shown(row.id)}"
    if type(row.arm) is not str:
        return f"the arm must be a name; got {shown(row.arm)}"
    if not (row.context is None or type(row.context) is str):
        return f"the context must be a name; got {shown(row.context)}"
    if type(row.policy) is not str or not (row.digest is None or type(row.digest) is str):
        return f"policy and digest must be texts; got {shown(row.policy)} and {shown(row.digest)}"
    if not (row.fingerprint is None or type(row.fingerprint) is str):
        return f"fingerprint must be a text; got {shown(row.fingerprint)}"
    if type(row.version) is not int or not 0 <= row.version < 2**63 or type(row.holdout) is not bool:
        return f"version must be a whole number and holdout true or false; got {row.version!r:.40}, {row.holdout!r:.40}"
    return None


def _fault_of_probabilities(row: Row, tolerance: float) -> str | None:
    if not (is_finite(row.propensity) and 0.0 < row.propensity <= 1.0 + tolerance):
        return f"propensity {shown(row.propensity)} is not in (0, 1]"
    offered, probabilities = row.offered, row.probabilities
    if type(offered) is not tuple or any(type(arm) is not str for arm in offered) or len(set(offered)) < len(offered):
        return f"the offered arms must be distinct names; got {shown(offered)}"
    if offered and row.arm not in offered:
        return f"arm {shown(row.arm)} is not among the offered arms, {shown(offered)}"
    if not probabilities:
        return None if probabilities == () else f"probabilities must be a list of numbers; got {shown(probabilities)}"
    if not are_finite(probabilities) or min(probabilities) < 0.0:
        return f"probabilities must be numbers, none negative; got {shown(probabilities)}"
    if len(probabilities) != len(offered):
        return f"{len(probabilities)} probabilities for {len(offered)} offered arms; give one for each"
    total = math.fsum(probabilities)
    if not abs(total - 1.0) <= tolerance:
        return (
            f"the probabilities sum to {total:.6g}, not to 1; give the whole vector{_rounding_advice(total, tolerance)}"
        )
    probability = probabilities[offered.index(row.arm)]
    if not abs(probability - row.propensity) <= tolerance:
        return f"propensity {row.propensity!r} of arm {shown(row.arm)} contradicts its probability {probability!r}"
    return None


def _rounding_advice(total: float, tolerance: float) -> str:
    """Suggest a tolerance if the sum may be wrong because of rounding."""
    error = abs(total - 1.0)
    return f", or tolerance={2 * error:.1g} if it was rounded" if error < max(0.01, 100 * tolerance) else ""


def _fault_of_numbers(row: Row, limits: Limits) -> str | None:
    for name, value in (("time", row.time), ("reward", row.reward), ("reward_time", row.reward_time)):
        if not (value is None or is_finite(value)):
            return f"{name} must be a finite number; got {shown(value)}"
    if limits is not None and row.reward is not None and not limits[0] <= row.reward <= limits[1]:
        return f"reward {row.reward!r} is outside [{limits[0]:g}, {limits[1]:g}]; is the reward_range right?"
    if row.direction != () and not are_finite(row.direction):
        return f"direction must be a list of finite numbers; got {shown(row.direction)}"
    if not (row.baseline is None or are_finite(row.baseline)):
        return f"baseline must be a list of finite numbers; got {shown(row.baseline)}"
    return None if row.features is None else _fault_of_features(row.features, len(row.offered))


def _fault_of_features(features: Any, arms: int) -> str | None:
    if type(features) is not tuple or not features or not all(are_finite(line) for line in features):
        return f"features must be lists of finite numbers; got {shown(features)}"
    if len({len(line) for line in features}) > 1:
        return f"features must have the same length; got {sorted({len(line) for line in features})}"
    if len(features) != 1 and arms and len(features) != arms:
        return f"features of {len(features)} arms, but {arms} are offered; give one list for each, or one for all"
    return None


def is_finite(value: Any) -> bool:
    """Return whether a value is a finite int or float; booleans are not."""
    return type(value) in (float, int) and abs(value) <= LARGEST


def are_finite(values: Any) -> bool:
    """Return whether a value is a tuple of finite numbers."""
    return type(values) is tuple and all(is_finite(value) for value in values)


class Ids:
    """The ids of a log as hashes: the newest in a dictionary, older ones in a sorted array.

    >>> ids = Ids("clicks.csv")
    >>> for number, name in enumerate("abca", 1):
    ...     ids.add(name, number)
    Traceback (most recent call last):
    bothworlds.logs.validation.LogError: clicks.csv, row 4: id 'a' occurs twice; every decision needs its own id
    """

    def __init__(self, source: str | Path, *, recent: int = RECENT) -> None:
        self.source, self.recent = source, recent
        self._recent: dict[int, int] = {}
        self._hashes, self._rows = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

    def add(self, name: str, row: int) -> None:
        """Add the id of a row; refuse it if it occurred before."""
        hashed = hash(name)
        if hashed in self._recent:
            raise LogError(self.source, row, f"id {shown(name)} occurs twice; every decision needs its own id")
        self._recent[hashed] = row
        if len(self._recent) >= self.recent:
            self.compare()

    def compare(self) -> None:
        """Compare the newest ids with the older ones, and merge them."""
        hashes = np.fromiter(self._recent.keys(), dtype=np.int64, count=len(self._recent))
        rows = np.fromiter(self._recent.values(), dtype=np.int64, count=len(self._recent))
        self._recent = {}
        order = np.argsort(hashes)
        hashes, rows = hashes[order], rows[order]
        positions = np.searchsorted(self._hashes, hashes)
        inside = np.flatnonzero(positions < len(self._hashes))
        same = inside[self._hashes[positions[inside]] == hashes[inside]]
        if len(same):
            first, again = int(self._rows[positions[same[0]]]), int(rows[same[0]])
            raise LogError(self.source, again, f"it has the same id as row {first}; every decision needs its own id")
        self._hashes = np.insert(self._hashes, positions, hashes)  # separately: half the memory of both at once
        self._rows = np.insert(self._rows, positions, rows)
