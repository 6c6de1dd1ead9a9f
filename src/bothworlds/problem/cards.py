"""Small HTML tables for `_repr_html_` of problems, policies, plans and decisions in notebooks."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

MOST_NAMES, MOST_ROWS, MOST_LETTERS = 8, 8, 60


def card(title: str, facts: Mapping[str, Any]) -> str:
    """Return an HTML table with a title and one row per fact; values are escaped and cut at 60 characters.

    >>> card("Decision", {"arm": "<red>"})
    '<table><caption>Decision</caption><tbody><tr><th>arm</th><td>&lt;red&gt;</td></tr></tbody></table>'
    """
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{_cell(value)}</td></tr>" for name, value in facts.items())
    return f"<table><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"


def probability_table(contexts: Sequence[str], arms: Sequence[str], table: Any) -> str:
    """Return an HTML table of probabilities (contexts, arms): the first of each, with a note if there are more."""
    shown = list(zip(contexts, table, strict=True))[:MOST_ROWS]
    head = "".join(f"<th>{_cell(word)}</th>" for word in ("context", *arms[:MOST_NAMES]))
    body = "".join(
        f"<tr><th>{_cell(name)}</th>{''.join(f'<td>{share:.3f}</td>' for share in row[:MOST_NAMES])}</tr>"
        for name, row in shown
    )
    more = len(contexts) > MOST_ROWS or len(arms) > MOST_NAMES
    note = f"<p>of {len(contexts):,} contexts and {len(arms):,} arms</p>" if more else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def listed(names: Sequence[str]) -> str:
    """Return the first names joined by commas, with the total number if there are more.

    >>> listed([str(i) for i in range(100)])
    '0, 1, 2, 3, 4, 5, 6, 7, ... (100)'
    """
    return ", ".join(names[:MOST_NAMES]) + (f", ... ({len(names):,})" if len(names) > MOST_NAMES else "")


def _cell(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return escape(text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 3]}...")
