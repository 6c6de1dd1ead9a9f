"""Learning from a batch: check all feedback, learn from all of it, and compute the plan, once or after each row."""

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.policy.bookkeeping import Bookkeeping
from bothworlds.policy.decision import Decision
from bothworlds.policy.feedback import DecisionBatch, check_columns, check_once, columns_of
from bothworlds.policy.learner_state import LearnerState
from bothworlds.problem.rewards import FEW


def learn_batch(
    learner_state: LearnerState,
    bookkeeping: Bookkeeping,
    batch: list[Decision] | DecisionBatch,
    losses: Floats,
    *,
    once: bool,
) -> int:
    """Learn from a batch and count it; return the number of decisions that were learned from.

    With ``once``, the caller guarantees that each decision comes once, so that ids are neither looked up nor closed.
    """
    if isinstance(batch, DecisionBatch):
        return _learn_columns(learner_state, bookkeeping, batch, losses)
    any_earlier = {decision.fingerprint for decision in batch} != {bookkeeping.short_fingerprint}
    current = [bookkeeping.resolve(decision, once=once) for decision in batch] if any_earlier else batch
    learn_all = not any_earlier and True not in [decision.holdout for decision in batch]
    learnable = [] if learn_all else [decision is not None and not decision.holdout for decision in current]
    selected = (
        batch if learn_all else [decision for decision in current if decision is not None and not decision.holdout]
    )
    columns = _columns(learner_state, selected)
    checked = once and learn_all and columns is not None
    if not any_earlier and not (checked and {decision.policy for decision in batch} == {bookkeeping.name}):
        for decision in batch:
            bookkeeping.resolve(decision, once=once)
    if not once:
        check_once(batch)
    if selected:
        learner_state.feed(selected, losses if learn_all else losses[np.array(learnable)], columns)
    if once:
        bookkeeping.count_batch(current, losses, columns if learn_all else None)
    else:
        for decision, resolved, loss in zip(batch, current, losses.tolist(), strict=True):
            bookkeeping.close(decision, resolved, loss)
    return len(selected)


def _learn_columns(
    learner_state: LearnerState, bookkeeping: Bookkeeping, columns: DecisionBatch, losses: Floats
) -> int:
    """Learn from decisions of plans as columns, all of the current problem and not held out; return their number."""
    check_columns(columns, len(losses), bookkeeping.problem.available.shape, learner_state.spec.carried)
    valid = learner_state.feed_columns(losses, columns)
    if valid < len(losses):
        raise ValueError(
            f"propensity, direction or baseline of decision {valid} of the batch is damaged; nothing was learned"
        )
    bookkeeping.counts.own.add_batch(columns.contexts, columns.arms, losses, np.ones(len(losses)))
    return valid


def _columns(learner_state: LearnerState, batch: list[Decision]) -> DecisionBatch | None:
    """Return a batch as columns; None if some decisions do not fit, or if there are fewer than FEW."""
    if len(batch) < FEW:
        return None
    spec = learner_state.spec
    return columns_of(batch, spec.problem.available.shape, spec.carried, has_baseline=spec.has_baseline)
