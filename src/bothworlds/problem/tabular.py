"""Features, options and notes of a problem from a table of contexts."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from bothworlds.arrays import Floats
from bothworlds.problem import feature_encoding, sample
from bothworlds.problem.rows import ContextRows

MOST_DIMENSIONS = 2_000  # above it, a plan takes seconds and computing the span takes minutes


class Tabular(NamedTuple):
    """The parts of a problem: features (contexts, dimension), or (contexts, arms, dimension) from a feature map."""

    features: Floats
    options: dict[str, Any]
    notes: tuple[str, ...]
    n_rows: int  # of the sample


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
    """Return the parts of a problem from a sample; `Problem.from_sample` documents the arguments."""
    support = sample.support_of(rows, weights)
    is_rare = sample.rare_rows(support, rare, other)
    kept = sample.without(support, is_rare)
    has_rare = bool(is_rare.any())
    options: dict[str, Any] = {
        "contexts": [*sample.context_names(kept), *([other] if has_rare else [])],
        "probabilities": [*kept.probabilities, *([support.probabilities[is_rare].sum()] if has_rare else [])],
        "rows": ContextRows(kept.columns, tuple(kept.rows)),
        "other": other,
    }
    if features is not None:
        phi = sample.mapped_features(support, features, arms)
        return Tabular(sample.joined(phi, support.probabilities, is_rare), options, (), support.n_rows)
    is_number = feature_encoding.numeric_columns(support, numeric)
    phi = feature_encoding.indicator_features(support, is_number, is_rare)
    if phi.shape[1] * len(arms) > MOST_DIMENSIONS:
        raise ValueError(
            f"{len(support.rows):,} different rows and {len(arms)} arms, each with its own model, make "
            f"{phi.shape[1] * len(arms):,} dimensions; at most {MOST_DIMENSIONS:,}. Is there a name or a number of "
            "visitors among the columns? Leave it out, join rare rows (rare=..., other=...), or give features"
        )
    notes = feature_encoding.category_notes(kept, is_number)
    return Tabular(sample.joined(phi, support.probabilities, is_rare), options, notes, support.n_rows)
