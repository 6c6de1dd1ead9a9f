"""One experiment as it runs: a policy that learns, the plan that decides, and how both come back from a store."""

import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bothworlds.former import GONE, is_former
from bothworlds.loading import footing_of, load_on
from bothworlds.policy import Policy
from bothworlds.policy.decision import Decision
from bothworlds.policy.feeding import Columns
from bothworlds.policy.footing import Footing, problem_of
from bothworlds.policy.identity import parts_of
from bothworlds.policy.plan import Plan
from bothworlds.problem import Problem
from bothworlds.problem.storage import read_arrays, undamaged
from bothworlds.service.drawing import numbers
from bothworlds.service.pulse import Pulse
from bothworlds.service.records import MARKS, Drawn, Frame, Kind, Paid, Snapshot, unpacked
from bothworlds.service.settings import Experiment as Told
from bothworlds.service.store import Store
from bothworlds.warming import exercise


class Lesson(msgspec.Struct, frozen=True, gc=False):
    """A reward to be learnt: its place in the log, the decision's id, what was drawn, and the reward."""

    seq: int
    id: str
    drawn: Drawn
    reward: float


@dataclass(eq=False)
class Experiment:
    """What is played under one name. ``policy`` belongs to the learner, ``plan`` to whoever decides.

    A ``failure`` of the learner is told until what had ``failed`` works; until it begins again from the store, the
    policy is ``astray``: perhaps one that the log does not lead to.
    """

    name: str
    number: int
    told: Told
    policy: Policy
    plan: Plan
    through: int = 0
    waiting: list[Lesson] = field(default_factory=list)
    heard: int = 0
    unsaved: int = 0
    expired: int = 0
    failure: str | None = None
    failed: str = ""
    astray: bool = False
    pulse: Pulse = field(default_factory=Pulse)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def cursor(self) -> str:
        """The name under which a store has noted up to which record windows are closed."""
        return f"expired {self.number}"

    def take(self, most: int) -> list[Lesson]:
        """Take the rewards that wait, in the order of the log."""
        with self.lock:
            taken, self.waiting = self.waiting[:most], self.waiting[most:]
        return taken

    def hear(self, lessons: Sequence[Lesson]) -> None:
        """Let rewards wait to be learnt, in their order, unless they were read from the store already."""
        with self.lock:
            self.waiting += [lesson for lesson in lessons if lesson.seq > self.heard]
            self.heard = max(self.heard, lessons[-1].seq)

    def hear_again(self, store: Store) -> None:
        """Let the rewards in the store that are not learnt wait, and nothing else."""
        with self.lock:
            self.waiting = list(lessons_in(store, self.number, after=self.through))
            self.heard = max(self.through, *(lesson.seq for lesson in self.waiting[-1:]), 0)


def decision_in(name: str, drawn: Drawn, policy: Policy) -> Decision:
    """Return a decision as a policy takes it, from what the store kept."""
    listing = policy.listing(drawn)
    source, number = parts_of(name)
    return Decision(
        number,
        listing.context_index(drawn.context),
        drawn.context,
        listing.arms.index(drawn.arm),
        drawn.arm,
        drawn.propensity,
        numbers(drawn.direction),
        None if drawn.baseline is None else numbers(drawn.baseline),
        policy.name,
        source,
        drawn.version,
        drawn.holdout,
        drawn.footing,
    )


def learn(policy: Policy, lessons: list[Lesson]) -> None:
    """Learn from rewards, as one batch."""
    footing = policy.plan().footing
    if {lesson.drawn.footing for lesson in lessons} != {footing.mark}:
        batch = [decision_in(lesson.id, lesson.drawn, policy) for lesson in lessons]
        policy.learn(batch, reward=[lesson.reward for lesson in lessons])
        return
    taught = [lesson for lesson in lessons if not lesson.drawn.holdout]
    held = [lesson for lesson in lessons if lesson.drawn.holdout]
    if held:  # are counted, and nothing else
        batch = [decision_in(lesson.id, lesson.drawn, policy) for lesson in held]
        policy.learn(batch, reward=[lesson.reward for lesson in held])
    if taught:
        columns = columns_in([lesson.drawn for lesson in taught], footing)
        policy.learn(columns, reward=[lesson.reward for lesson in taught])


def columns_in(drawn: list[Drawn], footing: Footing) -> Columns:
    """Return decisions of a footing, none of them held out, as columns; what does not fit is a ValueError."""
    contexts, arms = footing.numbered
    lengths = *footing.carried[:1], footing.carried[1] * footing.has_baseline
    carried = [made.direction for made in drawn], [made.baseline or b"" for made in drawn]
    for parts, length in zip(carried, lengths, strict=True):
        if {len(part) for part in parts} != {8 * length}:
            raise ValueError(f"a decision in the store is damaged: what it carries are not {length} numbers")
    directions, baselines = (numbers(b"".join(parts)).reshape(len(drawn), -1) for parts in carried)
    return Columns(
        np.array(places_in(contexts, [made.context for made in drawn])),
        np.array(places_in(arms, [made.arm for made in drawn])),
        np.array([made.propensity for made in drawn]),
        directions,
        baselines if footing.has_baseline else np.zeros((len(drawn), footing.carried[1])),
    )


def places_in(known: Mapping[str, int], names: Iterable[str]) -> list[int]:
    """Return the indices of contexts or arms; a name that is none is damage."""
    try:
        return [known[name] for name in names]
    except KeyError as error:
        raise ValueError(f"a decision in the store is damaged: there is no context or arm {error}") from None


def lessons_in(store: Store, experiment: int, *, after: int, through: int | None = None) -> Iterator[Lesson]:
    """Yield the rewards to be learnt that stand in a store, in their order."""
    for paid, made in store.lessons(experiment, after=after, through=through):
        yield Lesson(paid.seq, str(made.id), unpacked(Drawn, made.body), unpacked(Paid, paid.body).reward)


def begun(name: str, told: Told, store: Store, folder: Path, say: Callable[[str], None]) -> Experiment:
    """Begin an experiment, or go on with it from what the store has."""
    number = store.experiment(name)
    problem, algorithm = told.make_problem(folder), told.make_algorithm()
    if not store.snapshots(number):
        say(f"{name}: beginning")
        policy = algorithm.start(problem, holdout=told.holdout)
        store.append([], snapshots=[snapshot_of(policy, number, 0)], frames=[frame_of(policy)])
        exercise(policy.copy())
        return Experiment(name, number, told, policy, ready(policy))
    policy, through, replayed = restored(store, number)
    say(f"{name}: version {policy.version}, {replayed:,} rewards learnt again since the newest snapshot")
    _check_same(policy, algorithm, told)
    _check_problem(store, number, policy, problem)
    found = Experiment(name, number, told, policy, ready(policy), through)
    found.expired = store.noted(found.cursor)
    exercise(policy.copy())
    found.hear_again(store)
    return found


def _check_same(policy: Policy, algorithm: Any, told: Told) -> None:
    """Refuse another algorithm than the one that the store has begun with."""
    footing = policy.plan().footing
    if repr(footing.algorithm) != repr(algorithm) or footing.holdout != told.holdout:
        raise ValueError(
            f"the store has {footing.algorithm!r} with holdout {footing.holdout:g}, the settings say {algorithm!r} "
            f"with {told.holdout:g}: an algorithm cannot be exchanged under way; give the experiment another name"
        )


def _check_problem(store: Store, number: int, policy: Policy, problem: Problem) -> None:
    """Refuse settings with a problem that is neither what the store began with nor what is played now."""
    played = policy.problem
    if problem.reward_range != played.reward_range:
        raise ValueError(
            f"the store has rewards in {_ranged(played)}, the settings say {_ranged(problem)}: a range cannot be "
            "exchanged under way; give the experiment another name"
        )
    if _is_same(problem, played):
        return
    first = opened(store, store.snapshots(number)[-1]).problem
    if _is_same(problem, first):
        return
    if _named(problem) in (_named(played), _named(first)):
        raise ValueError(
            "the settings have other features than the store, for the same arms and contexts: they cannot be exchanged "
            "under way; give the experiment another name, or bring arms with other names by POST /v1/change"
        )
    raise ValueError(
        f"the store plays arms {', '.join(played.arms[:8])} in {played.n_contexts} contexts, the "
        "settings say something else, and not what it began with either: arms come and go by POST /v1/change"
    )


def _ranged(problem: Problem) -> str:
    return "[{:g}, {:g}]".format(*problem.reward_range) if problem.reward_range else "no range"


def _named(problem: Problem) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(problem.arms), tuple(problem.contexts)


def _is_same(one: Problem, other: Problem) -> bool:
    """Tell whether problems have the same arms, contexts and features; other laws of contexts come by a change."""
    same_shape = _named(one) == _named(other) and one.features.shape == other.features.shape
    return same_shape and np.allclose(one.features, other.features, rtol=1e-9, atol=1e-12)


def ready(policy: Policy) -> Plan:
    """Return the plan of now, with all that is computed when it is first asked for."""
    plan = policy.plan()
    plan.chances(0)
    assert plan.digest
    return plan


def restored(store: Store, number: int, *, version: int | None = None) -> tuple[Policy, int, int]:
    """Return the policy as the log has it, how far it has learnt, and how many rewards were learnt again for it.

    ``version`` is the last version to go to. A snapshot that is damaged is passed over.
    """
    tried, why = [one for one in store.snapshots(number) if version is None or one.version <= version], ""
    for snapshot in tried:
        try:
            policy = opened(store, snapshot)
            return replayed(store, number, policy, snapshot, version)
        except ValueError as error:
            why = why or f": {error}"
    raise ValueError(f"no snapshot in the store can be read, or leads to the versions that stand in its log{why}")


def replayed(
    store: Store, number: int, policy: Policy, snapshot: Snapshot, version: int | None = None
) -> tuple[Policy, int, int]:
    """Learn again what stands in the log after a snapshot; every version must be as it was, bit for bit."""
    through, count = snapshot.through, 0
    for mark in store.marks(number, after=through):
        body = unpacked(MARKS[mark.kind], mark.body)
        if body.version <= snapshot.version:
            continue
        if version is not None and body.version > version:
            break
        lessons = list(lessons_in(store, number, after=through, through=body.through))
        policy = followed(
            policy,
            mark.kind,
            body,
            taught=partial(learn, lessons=lessons),
            went_back=lambda to: restored(store, number, version=to)[0],
        )
        through, count = body.through, count + len(lessons)
    return policy, through, count


def followed(
    policy: Policy, kind: int, body: Any, *, taught: Callable[[Policy], None], went_back: Callable[[int], Policy]
) -> Policy:
    """Do what a mark of the log says was done, and compare what comes of it.

    ``taught`` lets a policy learn from the rewards before the mark, ``went_back`` gives that of an earlier version.
    """
    if kind == Kind.ROLLBACK:
        policy = went_back(body.to)
        policy.renumber(body.version)
    elif kind == Kind.CHANGE:
        policy.change(problem_in(body.problem), trust=body.trust, fresh=body.fresh)
    else:
        taught(policy)
    if (policy.version, policy.digest) != (body.version, body.digest):
        raise ValueError(
            f"the log leads to version {policy.version} with digest {policy.digest}, and says {body.version} with "
            f"{body.digest}: it was changed, or was written by another version of the library"
        )
    return policy


def snapshot_of(policy: Policy, number: int, through: int) -> Snapshot:
    """Return a policy that has learnt the rewards up to a record as a snapshot."""
    plan = policy.plan()
    content = as_bytes(lambda path: policy.save(path, frame=False))
    return Snapshot(number, policy.version, through, plan.digest, plan.footing.fingerprint, content)


def frame_of(policy: Policy) -> Frame:
    """Return what all snapshots of a footing share."""
    return Frame(policy.plan().footing.fingerprint, as_bytes(lambda path: policy.save(path)))


@lru_cache(maxsize=1)
def _standing(frame: bytes) -> tuple[str, Footing]:
    """Return what the policies of snapshots with a frame stand on: for several in a row it is built once."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frame.npz"
        path.write_bytes(frame)
        header, arrays = read_arrays(path)
        if is_former(header):
            raise ValueError(
                f"it was written with {GONE}: begin an experiment under another name, with the matched tuning; the "
                "old one can be exported as ever"
            )
        with undamaged(path):
            return header["footing"], footing_of(header, arrays)


def opened(store: Store, snapshot: Snapshot) -> Policy:
    """Return the policy in a snapshot; damage is a ValueError."""
    standing = _standing(store.frame(snapshot.footing))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.npz"
        path.write_bytes(store.content(snapshot))
        policy = load_on(path, *standing)
    if (policy.version, policy.digest) != (snapshot.version, snapshot.digest):
        raise ValueError(
            f"the snapshot of version {snapshot.version} is damaged, or of another version of the library with another "
            "rule: go on with that version, or export the log (bothworlds export) and begin a new store"
        )
    return policy


def played(store: Store, snapshot: Snapshot) -> tuple[str, Problem]:
    """Return the name of the policy in a snapshot, and its problem, whatever the algorithm."""
    with tempfile.TemporaryDirectory() as folder:
        frame = Path(folder) / "frame.npz"
        frame.write_bytes(store.frame(snapshot.footing))
        header, arrays = read_arrays(frame)
    return str(header["name"]), problem_of(header, arrays)


def as_bytes(save: Callable[[Path], None]) -> bytes:
    """Return what would be saved in an .npz file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "content.npz"
        save(path)
        return path.read_bytes()


def problem_in(content: bytes) -> Problem:
    """Return the problem in the bytes of its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        path.write_bytes(content)
        return Problem.load(path)
