"""What happened over time in one experiment: rewards and plans by range, and the newest changes and rollbacks."""

from collections import deque
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from bothworlds.service.experiment import Experiment, problem_in
from bothworlds.service.plan_series import ArmNumbers, PlanSeries
from bothworlds.service.records import MARKS, DecisionDraw, Kind, Record, Versioned, unpacked
from bothworlds.service.reward_series import NONE, RewardSeries, Sums
from bothworlds.service.setting_changes import sentence_of
from bothworlds.service.time_buckets import RANGES

MOST_EVENTS = 100
MOST_NAMES = 5  # of arms in one event
MOST_CONTEXTS = 12  # with a plan over time
CONTEXT_AND_SPEC = attrgetter("context", "fingerprint")


class Event(NamedTuple):
    """Something that happened to an experiment or to the service: time in seconds since 1970, a word and a sentence."""

    time: float
    word: str
    sentence: str


class OutcomeHistory:
    """Rewards and plans over time, for each range that the dashboard offers. One thread adds; any thread may read.

    ``plans`` are by context, of the most probable ones only, and by range.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.rewards = {name: RewardSeries(span=span) for name, span in RANGES.items()}
        self.plans: dict[str, dict[str, PlanSeries]] = {}
        self.arms = ArmNumbers()
        self.events: deque[Event] = deque(maxlen=MOST_EVENTS)
        self._restarts = 0  # of the algorithm, at the place in the log that is read
        self._arms: Sequence[str] | None = None  # at the place in the log that is read

    def add_rewards(self, rewards: Iterable[tuple[float, float, bool]]) -> None:
        """Add rewards: time of the decision, reward, and whether it was held out.

        They are summed by second first, as there are several series.
        """
        by_second: dict[tuple[int, bool], Sums] = {}
        for time, reward, holdout in rewards:
            key = int(time), holdout
            count, total, squares = by_second.get(key, NONE)
            by_second[key] = count + 1, total + reward, squares + reward * reward
        for series in self.rewards.values():
            for (second, holdout), sums in by_second.items():
                series.add_sums(second, sums, holdout=holdout)

    def add_draws(self, draws: list[tuple[float, DecisionDraw]]) -> None:
        """Add how decisions were drawn, each with its time; held-out ones are left out."""
        shown, groups = set(self.contexts()), dict[tuple[str, str], list[tuple[float, DecisionDraw]]]()
        for time, draw in draws:
            if not draw.holdout and draw.context in shown:
                groups.setdefault(CONTEXT_AND_SPEC(draw), []).append((time, draw))
        for (context, _), group in groups.items():
            self._add_group(context, group)

    def contexts(self) -> list[str]:
        """Return the contexts with a plan over time, the most probable ones first."""
        problem = self.experiment.plan.problem
        ranked = np.argsort(-problem.probabilities, kind="stable")[:MOST_CONTEXTS]
        return [problem.contexts[x] for x in ranked.tolist()]

    def _add_group(self, context: str, group: list[tuple[float, DecisionDraw]]) -> None:
        """Add decisions of one context and spec; those of a problem that is not known any more are left out."""
        try:
            arms = self.experiment.policy.listing(group[0][1]).arms
            table = np.frombuffer(b"".join(draw.probabilities for _, draw in group)).reshape(len(group), len(arms))
        except ValueError:
            return
        self._arms = arms
        times, columns = np.array([time for time, _ in group]), self.arms.of(arms)
        if context not in self.plans:
            self.plans[context] = {name: PlanSeries(span=span) for name, span in RANGES.items()}
        for series in self.plans[context].values():
            series.add(times, columns, table)

    def note_restarts(self, mark: Record) -> None:
        """Note a version in which the algorithm has restarted, because the world had changed."""
        body = unpacked(Versioned, mark.body)
        if body.restarts > self._restarts:
            sentence = f"what was learned stopped predicting rewards; it is forgotten from version {body.version:,} on"
            self.events.append(Event(mark.time, "new world", sentence))
        self._restarts = body.restarts

    def note(self, mark: Record) -> None:
        """Note a change, a rollback, or another mark that is not a version."""
        body, kind = unpacked(MARKS[mark.kind], mark.body), Kind(mark.kind)
        sentence = f"in version {body.version:,}"
        if kind == Kind.ROLLBACK:
            sentence = f"to version {body.to:,}; it continues as version {body.version:,}"
        elif kind == Kind.CHANGE:
            before, self._arms = self._arms, problem_in(body.problem).arms
            sentence = f"{change_text(before, self._arms)}, in version {body.version:,}"
        elif kind in (Kind.ALGORITHM, Kind.HOLDOUT, Kind.WINDOW):
            sentence = sentence_of(mark)
        self.events.append(Event(mark.time, kind.name.lower(), sentence))


def change_text(before: Sequence[str] | None, after: Sequence[str]) -> str:
    """Return what a change has done to the arms, as far as the arms before it are known.

    >>> change_text(("red", "blue"), ("red", "green")), change_text(("red",), ("red",))
    ('green added, blue retired', 'contexts or their shares')
    """
    if before is None:
        return "of arms or contexts"
    added, retired = ([arm for arm in one if arm not in other] for one, other in ((after, before), (before, after)))
    parts = [f"{_some(arms)} {word}" for arms, word in ((added, "added"), (retired, "retired")) if arms]
    return ", ".join(parts) or "contexts or their shares"


def _some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    shown = ", ".join(names[:MOST_NAMES])
    return shown if len(names) <= MOST_NAMES else f"{shown} and {len(names) - MOST_NAMES:,} more"
