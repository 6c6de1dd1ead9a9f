"""A sentence for each regime, for readers who know nothing about bandits."""

from collections.abc import Mapping
from typing import Any

from bothworlds.environments import Environment

SENTENCES: dict[str, str] = {
    "stochastic": "The world stays as it is: every choice has a fixed average, hidden by chance.",
    "stacked": "The world stays as it is, and is described in a way that hides what choices have in common.",
    "alternating": "Two opposite worlds take turns, round after round.",
    "growing-phases": "What is good turns bad and good again, in phases that become longer and longer.",
    "flip": "Once, half way through unless said otherwise, what was good turns bad.",
    "random-walk": "The world drifts a little in every round, in a random direction.",
    "sine": "The world swings back and forth like the seasons.",
    "adaptive-adversary": "An opponent sees how the learner is about to choose, and picks the worst losses.",
    "change-point": "Once, half way through, the world becomes another one; judged by how well it is followed.",
    "seasons": "Two worlds take turns, a few times in all; judged by how well the best choice of the day is followed.",
    "jumps": "Every so often the world becomes a new one; judged by how well the best choice of the day is followed.",
    "slow-turn": "The world turns slowly, once around; judged by how well the best choice of the day is followed.",
    "corrupted": "A world that stays as it is, but somebody has tampered with a part of the feedback.",
    "moving-level": "All choices become better and worse together; which one is best never changes.",
    "lower-bound": "One choice is better by a hair: as hard as a world that stays as it is can be.",
    "ad-fatigue": "An ad that is shown often works less: every choice changes what it will earn later.",
    "clicks": "Rewards are rare, a few clicks in a hundred visits, and most kinds of visitors hardly ever come.",
}
MARGIN = "The world stays as it is; for some visitors the best choice is far ahead, for others it is nearly a tie."
CHANGES = " Now and then every choice takes over the click rates of another."


def known_sentence(options: Mapping[str, Any]) -> str | None:
    """Return the sentence for a regime with these options, None for an environment of the user's own.

    >>> known_sentence({"kind": "flip"})
    'Once, half way through unless said otherwise, what was good turns bad.'
    """
    kind = str(options.get("kind", ""))
    if kind == "stochastic" and options.get("margin") not in (None, "none"):
        return MARGIN
    if kind == "clicks" and options.get("changes"):
        return SENTENCES[kind] + CHANGES
    return SENTENCES.get(kind)


def sentence_of(environment: Environment, options: Mapping[str, Any]) -> str:
    """Return the sentence for a regime; for the user's own, its name and whether it is stochastic."""
    known = known_sentence(options)
    if known is not None:
        return known
    steady = "stays as it is" if environment.stochastic else "may change"
    return f"A world of the user's own, {environment.name!r}; it {steady}."
