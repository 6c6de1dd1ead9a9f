"""Players on streams: whatever has ``act(row) -> arm`` and ``update(reward)``, made for a game by its name.

To add one, add a line to `players`.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

import bothworlds as bw
import stream_rivals as rivals
import stream_vw
from bothworlds.arrays import Floats
from bothworlds.datasets import Cells


class Player(Protocol):
    """A player sees a row's features, names an arm, and learns that arm's reward in [0, 1]."""

    def act(self, row: Floats) -> int: ...

    def update(self, reward: float) -> None: ...


class Game(NamedTuple):
    """What a player knows before the first round: sizes, a seed, and rows (n, p) without rewards that are not played.

    ``cells`` is the number of cells that listed players make of these rows.
    """

    arms: int
    features: int
    seed: int
    archive: Floats
    cells: int


class Listed:
    """A policy of the library on the cells of the archive: a row is the context of its nearest centre."""

    def __init__(self, algorithm: Any, game: Game) -> None:
        self.cells = Cells.of_sample(game.archive, count=game.cells, rng=game.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bw.DegenerateProblemWarning)
            self.policy = algorithm.start(self.cells.problem(game.arms), rng=game.seed)

    def act(self, row: Floats) -> int:
        self.decision = self.policy.act(self.cells.number(row))
        return int(self.decision.arm)

    def update(self, reward: float) -> None:
        self.policy.update(self.decision, reward=reward)

    @property
    def restarts(self) -> int:
        """Number of restarts on evidence, 0 for algorithms without."""
        return int(np.sum(getattr(self.policy.state, "restarts", 0)))


class Open:
    """A policy of the library on the rows themselves, with a model of its own for every arm."""

    def __init__(self, algorithm: Any, game: Game) -> None:
        arms = [str(arm) for arm in range(game.arms)]
        problem = bw.OpenProblem(context=game.features, arms=arms, reward_range=(0, 1))
        self.policy = algorithm.start(problem, rng=game.seed)

    def act(self, row: Floats) -> int:
        self.decision = self.policy.act(row)
        return int(self.decision.arm)

    def update(self, reward: float) -> None:
        self.policy.update(self.decision, reward=reward)


Make = Callable[[Game], Player]
LISTED: dict[str, Any] = {
    "matched": bw.LCTsallisINF(),
    "listed D-LinUCB": bw.DLinUCB(),
    "listed SW-LinUCB": bw.SWLinUCB(window=500),
    "listed LinUCB": bw.LinUCB(),
    "listed LinTS": bw.LinTS(),
    "listed SquareCB": bw.SquareCB(),
}


def players() -> dict[str, Make]:
    """Return all players by name; listed ones first, then players on the rows themselves, then VowpalWabbit's."""
    found: dict[str, Make] = {name: _listed(algorithm) for name, algorithm in LISTED.items()}
    found["open matched"] = lambda game: Open(bw.LCTsallisINF(), game)
    found["D-LinUCB"] = lambda game: rivals.DLinUCB(game.arms, game.features, width=1.0, discount=0.998)
    found["LinUCB .25"] = lambda game: rivals.LinUCB(game.arms, game.features, width=0.25)
    found["LinUCB 1"] = lambda game: rivals.LinUCB(game.arms, game.features, width=1.0)
    found["LinTS"] = lambda game: rivals.LinTS(game.arms, game.features, spread=0.25, seed=game.seed)
    found["uniform"] = lambda game: rivals.Uniform(game.arms, seed=game.seed)
    return found | {name: _vowpal(name) for name in stream_vw.POLICIES}


def _listed(algorithm: Any) -> Make:
    return lambda game: Listed(algorithm, game)


def _vowpal(policy: str) -> Make:
    return lambda game: stream_vw.VowpalWabbit(policy, game.arms, seed=game.seed)
