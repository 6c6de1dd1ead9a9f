"""The round loop of one replication in plain Python, for algorithms and environments without kernel functions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.environments.environment import Environment
from bothworlds.kernels.contract import field_of
from bothworlds.kernels.random import CONTEXT, draw, stream_key, two_uniforms
from bothworlds.problem import Problem
from bothworlds.simulation.replication import Outcome, empty_record, outcome_of
from bothworlds.simulation.round_loop import REALISED, LossTerms, Record, add_round, expected_losses, write_checkpoint
from bothworlds.simulation.setting import Setting
from bothworlds.user_errors import fault_of, is_users, users_code


def rates_of(algorithm: Any, setting: Setting) -> str:
    """Return the name of an algorithm's rates, as in `Machine`; an empty string for algorithms without a kernel."""
    return str(algorithm.machine(setting.environment.problem).rates) if hasattr(algorithm, "machine") else ""


def play_in_python(
    start: Callable[..., Any], setting: Setting, number: int, *, rates: str = "", trace: bool = False
) -> Outcome:
    """Play a learner written in plain Python: anything with act, update and probabilities.

    Contexts, parameters and noise are those of the compiled round loop. The outcome contains the arrays returned by the
    learner's method ``learnt()``, if it has one, like `Policy`; that of a policy also its ``rates`` (as in `Machine`).
    """
    environment = setting.environment
    problem = environment.problem
    key = stream_key(setting.seed, number)
    with users_code():
        learner = start(problem, rng=key)
    nature = environment.begin()
    record = empty_record(setting, len(nature.c), trace=trace)
    waiting = Waiting(learner, setting.delay, setting.batch)
    position = 0
    for t in range(1, setting.horizon + 1):
        with users_code(learner.probabilities if is_users(learner.probabilities) else None):
            pi = checked_policy(learner, problem, t)
        at_checkpoint = t == setting.checkpoints[position]
        if at_checkpoint and rates:
            record.rates[position] = field_of(learner.state, rates)
        with users_code():
            loss, decision = play_round(environment, nature, record, pi, learner, key, t)
            waiting.add(decision, loss=loss)
        if at_checkpoint:
            write_checkpoint(record, position, nature, problem.probabilities, environment.blocked)
            position += 1
    arrays = learner.learnt() if callable(getattr(learner, "learnt", None)) else {}
    final = {name: np.array(values) for name, values in arrays.items()}
    policy = np.asarray(learner.probabilities(), dtype=np.float64)
    return outcome_of(setting, record, policy, final, rates=bool(rates))


class Waiting:
    """Decisions that wait for delayed or batched feedback; ``delivered`` counts those given to the learner."""

    def __init__(self, learner: Any, delay: int, batch: int) -> None:
        self._learner, self._delay, self._batch = learner, delay, batch
        self._open: list[tuple[Any, float]] = []
        self.delivered = 0

    def add(self, decision: Any, **feedback: float) -> None:
        """Add a decision with its ``loss=`` or ``reward=``, and update the learner with the feedback that is due."""
        ((kind, value),) = feedback.items()
        self._open.append((decision, value))
        due = len(self._open) - self._delay
        if due < self._batch:
            return
        ready, self._open = self._open[:due], self._open[due:]
        decisions, values = [decision for decision, _ in ready], [value for _, value in ready]
        if due == 1:
            self._learner.update(decisions[0], **{kind: values[0]})
        else:
            self._learner.update(decisions, **{kind: values})
        self.delivered += due


def checked_policy(learner: Any, problem: Problem, t: int) -> Floats:
    """Return the probabilities (contexts, arms) of a learner in plain Python; refuse invalid distributions."""
    pi = np.asarray(learner.probabilities(), dtype=np.float64)
    if fault := fault_of(pi, problem.available):
        raise ValueError(f"round {t}: {fault}")
    return pi


def check_arm(problem: Problem, t: int, x: int, arm: int) -> None:
    """Raise ValueError if an arm is not offered in a context."""
    if not 0 <= arm < problem.n_arms or not problem.available[x, arm]:
        raise ValueError(f"round {t}: arm {arm} is not offered in context {x}")


def play_round(
    environment: Environment, nature: Any, record: Record, pi: Floats, learner: Any, key: int, t: int
) -> tuple[float, Any]:
    """Play one round; return the loss and the decision."""
    kernel, g = environment.kernel, environment.problem.probabilities
    expected_losses(nature.tables, g, pi, nature.expected_loss)
    environment.decide(nature, t, key, pi)
    loss_terms = LossTerms(nature.c, nature.expected_loss, nature.sums, nature.best)
    add_round(loss_terms, nature.tables, g, environment.blocked, record.totals)
    u, v = two_uniforms(key, t, CONTEXT, 0)
    x = draw(g, u)
    decision = learner.act(x)
    check_arm(environment.problem, t, x, decision.arm)
    loss = float(kernel.noisy(nature, kernel.mean_loss(nature, x, decision.arm), v, key, t))
    kernel.react(nature, decision.arm)
    environment.require_kernel_in_range(nature.state, t)
    record.totals[REALISED] += loss
    if len(record.trace):
        record.trace[t - 1] = (x, decision.arm)
    return loss, decision
