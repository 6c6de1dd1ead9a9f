"""A replication in plain Python, one round at a time: for learners and natures that are not kernel text."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bothworlds.environments.environment import Environment
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import field_of
from bothworlds.kernels.random import CONTEXT, draw, stream_key, two_uniforms
from bothworlds.problem import Problem
from bothworlds.problem.checks import are_distributions
from bothworlds.simulation.driver import Record, add_expected, expected_losses, write_checkpoint
from bothworlds.simulation.replication import Outcome, empty_record, outcome_of
from bothworlds.simulation.setting import Setting


def rates_of(algorithm: Any, setting: Setting) -> str:
    """Return the name of a policy's rates, as in `Machine`; nothing for what is not kernel text."""
    return str(algorithm.machine(setting.environment.problem).rates) if hasattr(algorithm, "machine") else ""


def play_in_python(
    start: Callable[..., Any], setting: Setting, number: int, *, rates: str = "", trace: bool = False
) -> Outcome:
    """Play a learner written in plain Python: anything with act, update and probabilities.

    The same contexts, parameters and noise as in the compiled driver, one round at a time. A learner with a method
    ``learnt()``, as a `Policy` has, leaves the arrays it returns; a policy also leaves its ``rates`` (as in `Machine`).
    """
    environment = setting.environment
    problem = environment.problem
    key = stream_key(setting.seed, number)
    learner = start(problem, rng=key)
    nature = environment.begin()
    record = empty_record(setting, len(nature.c), trace=trace)
    waiting = Waiting(learner, setting.delay, setting.batch)
    position = 0
    blocked = np.where(problem.available, 0.0, np.inf)
    for t in range(1, setting.horizon + 1):
        pi = policy_in(learner, problem, t)
        marked = t == setting.checkpoints[position]
        if marked and rates:
            record.rates[position] = field_of(learner.state, rates)
        loss, decision = one_round(environment, nature, record, pi, learner, key, t)
        waiting.add(decision, loss=loss)
        if marked:
            write_checkpoint(record, position, nature, problem.probabilities, blocked)
            position += 1
    learnt = learner.learnt() if callable(getattr(learner, "learnt", None)) else {}
    final = {name: np.array(values) for name, values in learnt.items()}
    policy = np.asarray(learner.probabilities(), dtype=np.float64)
    return outcome_of(setting, record, policy, final, rates=bool(rates))


class Waiting:
    """Decisions whose feedback comes late, or in batches."""

    def __init__(self, learner: Any, delay: int, batch: int) -> None:
        self._learner, self._delay, self._batch = learner, delay, batch
        self._open: list[tuple[Any, float]] = []
        self.learnt = 0

    def add(self, decision: Any, **feedback: float) -> None:
        """Take note of a decision and its ``loss`` or ``reward``, and let the learner learn from those that are due."""
        ((word, value),) = feedback.items()
        self._open.append((decision, value))
        due = len(self._open) - self._delay
        if due < self._batch:
            return
        ready, self._open = self._open[:due], self._open[due:]
        decisions, values = [made for made, _ in ready], [value for _, value in ready]
        if due == 1:
            self._learner.update(decisions[0], **{word: values[0]})
        else:
            self._learner.update(decisions, **{word: values})
        self.learnt += due


def policy_in(learner: Any, problem: Problem, t: int) -> Floats:
    """Return the table of probabilities of a learner in plain Python; refuse one that nobody could play."""
    pi, offered = np.asarray(learner.probabilities(), dtype=np.float64), problem.available
    if pi.shape != offered.shape or not are_distributions(pi):
        raise ValueError(f"round {t}: probabilities() must be a table {offered.shape} of distributions")
    if pi[~offered].any():
        x, a = (int(place) for place in np.argwhere((pi != 0.0) & ~offered)[0])
        raise ValueError(f"round {t}: probabilities() has {pi[x, a]:.4g} for arm {a}, not offered in context {x}")
    return pi


def check_arm(problem: Problem, t: int, x: int, arm: int) -> None:
    """Refuse an arm that is not offered in a context."""
    if not 0 <= arm < problem.n_arms or not problem.available[x, arm]:
        raise ValueError(f"round {t}: arm {arm} is not offered in context {x}")


def one_round(
    environment: Environment, nature: Any, record: Record, pi: Floats, learner: Any, key: int, t: int
) -> tuple[float, Any]:
    """Let nature and the learner play one round; return the loss and the decision."""
    text, g = environment.text, environment.problem.probabilities
    expected_losses(nature.tables, g, pi, nature.hurt)
    environment.decide(nature, t, key, pi)
    nature.sums[...] += nature.c
    for j in range(len(nature.c)):
        add_expected(record.totals, nature.c[j] * nature.hurt[j])
    u, v = two_uniforms(key, t, CONTEXT, 0)
    x = draw(g, u)
    decision = learner.act(x)
    check_arm(environment.problem, t, x, decision.arm)
    loss = float(text.noisy(nature, text.mean_loss(nature, x, decision.arm), v, key, t))
    text.react(nature, decision.arm)
    environment.require_obedience(nature.state, t)
    record.totals[1] += loss
    if len(record.trace):
        record.trace[t - 1] = (x, decision.arm)
    return loss, decision
