"""A batch of answers: everything is checked, then everything is learnt, then the plan is computed once."""

import numpy as np

from bothworlds.kernels.arrays import Floats
from bothworlds.policy.books import Books
from bothworlds.policy.decision import Decision
from bothworlds.policy.feeding import Columns, check_columns, check_once, columns_of
from bothworlds.policy.mind import Mind
from bothworlds.problem.feedback import FEW


def answer_all(mind: Mind, books: Books, batch: list[Decision] | Columns, losses: Floats, *, once: bool) -> int:
    """Learn from a batch and note it in the books; return from how many decisions something was learnt.

    ``once``: somebody else sees to it that each decision comes once, so that nothing is looked up or closed.
    """
    if isinstance(batch, Columns):
        return _answer_columns(mind, books, batch, losses)
    late = {made.footing for made in batch} != {books.mark}
    now = [books.checked(made, once=once) for made in batch] if late else batch
    whole = not late and True not in [made.holdout for made in batch]
    heard = [] if whole else [made is not None and not made.holdout for made in now]
    taught = batch if whole else [made for made in now if made is not None and not made.holdout]
    columns = _columns(mind, taught)
    sure = once and whole and columns is not None
    if not late and not (sure and {made.policy for made in batch} == {books.name}):
        for made in batch:
            books.checked(made, once=once)
    if not once:
        check_once(batch)
    if taught:
        mind.feed(taught, losses if whole else losses[np.array(heard)], columns)
    if once:
        books.count_all(now, losses, columns if whole else None)
    else:
        for made, present, loss in zip(batch, now, losses.tolist(), strict=True):
            books.close(made, present, loss)
    return len(taught)


def _answer_columns(mind: Mind, books: Books, columns: Columns, losses: Floats) -> int:
    """Learn from decisions of plans as columns, all of the present problem and none held out; return how many."""
    check_columns(columns, len(losses), books.problem.available.shape, mind.footing.carried)
    fed = mind.feed_columns(losses, columns)
    if fed < len(losses):
        raise ValueError(
            f"propensity, direction or baseline of decision {fed} of the batch damaged; nothing was learnt"
        )
    books.counts.own.answer_all(columns.contexts, columns.arms, losses, np.ones(len(losses)))
    return fed


def _columns(mind: Mind, batch: list[Decision]) -> Columns | None:
    """Return a batch as columns, or None where some do not fit, or where they are few."""
    if len(batch) < FEW:
        return None
    footing = mind.footing
    return columns_of(batch, footing.problem.available.shape, footing.carried, has_baseline=footing.has_baseline)
