"""VowpalWabbit's contextual bandits as players on streams: ``--cb_explore_adf -q sa``, a model per arm."""

import importlib
from typing import Any

import numpy as np

from bothworlds.arrays import Floats

COMMON = "--cb_explore_adf -q sa --quiet"
COSTS = "--cb_min_cost -1 --cb_max_cost 0"
POLICIES = {
    "VW squarecb": f"--squarecb {COSTS}",
    "VW regcb": f"--regcbopt --mellowness 0.01 {COSTS}",
    "VW cover": "--cover 16",
    "VW epsilon": "--epsilon 0.05",
}
MISSING = "VowpalWabbit's players need the package vowpalwabbit, which is not installed: pip install vowpalwabbit"


def package() -> Any:
    """Return the module vowpalwabbit, None if it is not installed."""
    try:
        return importlib.import_module("vowpalwabbit")
    except ImportError:
        return None


class VowpalWabbit:
    """Cost is -reward; the arm is drawn from VW's probabilities with a generator of our own."""

    def __init__(self, policy: str, arms: int, *, seed: int) -> None:
        module = package()
        if module is None:
            raise ModuleNotFoundError(MISSING)
        self.workspace = module.Workspace(f"{COMMON} {POLICIES[policy]} --random_seed {seed + 1}")
        self.actions = [f"|a arm{arm}" for arm in range(arms)]
        self.rng = np.random.default_rng([seed, 3])

    def act(self, row: Floats) -> int:
        self.shared = "shared |s " + " ".join(f"f{i}:{value:.6g}" for i, value in enumerate(row))
        weights = np.array(self.workspace.predict([self.shared, *self.actions]))
        self.probabilities = weights / weights.sum()
        self.arm = int(self.rng.choice(len(weights), p=self.probabilities))
        return self.arm

    def update(self, reward: float) -> None:
        lines = list(self.actions)
        lines[self.arm] = f"0:{-reward:g}:{self.probabilities[self.arm]:.9g} {lines[self.arm]}"
        self.workspace.learn([self.shared, *lines])
