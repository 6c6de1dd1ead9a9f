"""From a table of contexts to what a problem is made of: features, options, and sentences on what was chosen."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from bothworlds.kernels.arrays import Floats
from bothworlds.problem import columns, rest, sample
from bothworlds.problem.rows import ContextRows

MOST_DIMENSIONS = 2_000  # a plan takes seconds beyond, and finding their span minutes


class Tabular(NamedTuple):
    """Features (contexts, dimension), or (contexts, arms, dimension) where the user makes them, and the rest."""

    features: Floats
    options: dict[str, Any]
    notes: tuple[str, ...]


def tabular(
    rows: Any,
    arms: Sequence[str],
    *,
    features: sample.FeatureMap | None,
    weights: Any,
    numeric: Sequence[str | int],
    other: str | None,
    rare: float,
) -> Tabular:
    """Make a problem's parts of a sample; `Problem.from_sample` says what they mean."""
    support = sample.support_of(rows, weights)
    few = rest.rare_rows(support, rare, other)
    kept = rest.without(support, few)
    joins = bool(few.any())
    options: dict[str, Any] = {
        "contexts": [*sample.context_names(kept), *([other] if joins else [])],
        "probabilities": [*kept.probabilities, *([support.probabilities[few].sum()] if joins else [])],
        "rows": ContextRows(kept.columns, tuple(kept.rows)),
        "other": other,
    }
    if features is not None:
        made = sample.mapped_features(support, features, arms)
        return Tabular(rest.joined(made, support.probabilities, few), options, ())
    is_number = columns.numeric_columns(support, numeric)
    made = columns.indicator_features(support, is_number, few)
    if made.shape[1] * len(arms) > MOST_DIMENSIONS:
        raise ValueError(
            f"{len(support.rows):,} different rows and {len(arms)} arms, each with its own model, make "
            f"{made.shape[1] * len(arms):,} dimensions; at most {MOST_DIMENSIONS:,}. Is there a name or a number of "
            "visitors among the columns? Leave it out, join rare rows (rare=..., other=...), or give features"
        )
    notes = columns.category_notes(kept, is_number)
    return Tabular(rest.joined(made, support.probabilities, few), options, notes)
