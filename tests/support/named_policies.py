"""Policies with names, and what they are at a moment."""

from typing import Any

import bothworlds as bw
from support.problems import bits, random_problem

NAMES = {"contexts": ["morning", "noon", "evening", "night"], "arms": ["red", "blue", "green"]}


def make(tuning: Any = "certified", rng: int = 7, **options: object) -> bw.Policy:
    """A policy whose contexts are times of day and whose arms are colours."""
    problem = random_problem(3, **{**NAMES, **options})  # type: ignore[arg-type]
    return bw.LCTsallisINF(tuning=tuning).start(problem, rng=rng)


def snapshot(policy: bw.Policy) -> tuple[bytes, int, int]:
    """What must stay where nothing may change."""
    return bits(policy), policy.rounds, policy.open_rounds
