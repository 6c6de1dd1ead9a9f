"""Shares of the range from uniform play to the best player, from the results of `streams.py`."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

LEAST = 0.02  # a cell with a smaller range from uniform play to the best player is left out


class Row(NamedTuple):
    """One player in one stream: mean reward per round, and in the second half; and what does not depend on players.

    ``uniform`` is the expected reward of uniform play, ``constant`` that of the best arm, and ``linear`` that of one
    ridge regression per arm on the rewards of all arms, both in hindsight; ``label`` is that of the best arm of every
    round, 1 wherever one is right. ``restarts`` counts those of a rule that restarts on evidence.
    """

    data: str
    order: str
    seed: int
    player: str
    rounds: int
    reward: float
    second_half: float
    uniform: float
    constant: float
    linear: float
    label: float
    seconds: float
    restarts: int = 0


Cell = tuple[str, str]


def shares(rows: Sequence[Row]) -> tuple[dict[tuple[str, str, str], float], list[Cell]]:
    """Return the share by (data, order, player), and the cells left out.

    A cell is a data set in an order. A player's reward there is the mean over its seeds, uniform and best are over the
    same seeds; best is the largest of the players' rewards. A share is (reward - uniform)/(best - uniform).
    """
    rewards: dict[Cell, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    uniforms: dict[Cell, dict[int, float]] = defaultdict(dict)
    for row in rows:
        rewards[row.data, row.order][row.player].append(row.reward)
        uniforms[row.data, row.order][row.seed] = row.uniform
    found: dict[tuple[str, str, str], float] = {}
    omitted: list[Cell] = []
    for cell, players in rewards.items():
        uniform = float(np.mean(list(uniforms[cell].values())))
        means = {player: float(np.mean(values)) for player, values in players.items()}
        gap = max(means.values()) - uniform
        if gap < LEAST:
            omitted.append(cell)
            continue
        found |= {(*cell, player): (mean - uniform) / gap for player, mean in means.items()}
    return found, omitted


def by_order(found: dict[tuple[str, str, str], float]) -> dict[str, dict[str, float]]:
    """Return the mean share over data sets by player and order, and over all cells as ``all``."""
    collected: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (_, order, player), share in found.items():
        collected[player][order].append(share)
        collected[player]["all"].append(share)
    return {
        player: {order: float(np.mean(values)) for order, values in some.items()} for player, some in collected.items()
    }


def table(rows: Sequence[Row], orders: Sequence[str]) -> str:
    """Return the mean shares as a Markdown table, players in the order of the rows, and a line on cells left out."""
    found, omitted = shares(rows)
    means, names = by_order(found), list(dict.fromkeys(row.player for row in rows))
    lines = [f"| player | {' | '.join([*orders, 'all'])} |", "|---" * (len(orders) + 2) + "|"]
    for name in names:
        cells = [f"{means[name][order]:.3f}" if order in means.get(name, {}) else "" for order in [*orders, "all"]]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    if omitted:
        words = ", ".join(f"{data} {order}" for data, order in omitted)
        lines.append(f"\nLeft out, since nobody is {LEAST:g} above uniform play: {words}.")
    return "\n".join(lines)


def rewards_table(rows: Sequence[Row], order: str) -> str:
    """Return the mean reward of every player by data set in one order, with uniform, constant and linear play."""
    some = [row for row in rows if row.order == order]
    names = list(dict.fromkeys(row.player for row in some))
    fixed = ("uniform", "constant", "linear")
    heads = [*(f"*{name}*" for name in fixed), *names]
    lines = [f"| {order} | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for data in dict.fromkeys(row.data for row in some):
        here = [row for row in some if row.data == data]
        values = [[getattr(row, name) for row in here] for name in fixed]
        values += [[row.reward for row in here if row.player == name] for name in names]
        cells = [f"{np.mean(numbers):.3f}" if numbers else "" for numbers in values]
        lines.append(f"| {data} | {' | '.join(cells)} |")
    return "\n".join(lines)


def beside(rows: Sequence[Row], player: str, rival: str, orders: Sequence[str]) -> str:
    """Return the mean shares of two players by order, their ratio, and the data sets in which it is below 0.9."""
    found, _ = shares(rows)
    lines = [f"| order | {player} | {rival} | ratio | below .9 of it in |", "|---" * 5 + "|"]
    for order in orders:
        data = [data for data, here, name in found if here == order and name == player and (data, here, rival) in found]
        if not data:
            continue
        ours, theirs = (np.array([found[one, order, name] for one in data]) for name in (player, rival))
        below = ", ".join(one for one, a, b in zip(data, ours, theirs, strict=True) if a < 0.9 * b) or "none"
        ratio = ours.mean() / theirs.mean()
        lines.append(f"| {order} | {ours.mean():.3f} | {theirs.mean():.3f} | {ratio:.3f} | {below} |")
    return "\n".join(lines)


def restarts(rows: Sequence[Row], orders: Sequence[str]) -> str:
    """Return the mean number of restarts of the players that restart, by order; nothing if none did."""
    lines = []
    for player in dict.fromkeys(row.player for row in rows if row.restarts):
        words = []
        for order in orders:
            counts = [row.restarts for row in rows if (row.player, row.order) == (player, order)]
            if counts:
                words.append(f"{order} {np.mean(counts):.1f} (most {max(counts)})")
        lines.append(f"Restarts of {player}: {', '.join(words)}.")
    return "\n".join(lines)
