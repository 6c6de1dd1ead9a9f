"""What a regime is, in a sentence for somebody who has never heard of bandits."""

from typing import Any

from bothworlds.environments import Environment

SENTENCES: dict[str, str] = {
    "stochastic": "The world stays as it is: every choice has a fixed average, hidden by chance.",
    "stacked": "The world stays as it is, and is described in a way that hides what choices have in common.",
    "alternating": "Two opposite worlds take turns, round after round.",
    "growing-phases": "What is good turns bad and good again, in phases that become longer and longer.",
    "flip": "Once, half way through unless said otherwise, what was good turns bad.",
    "random-walk": "The world drifts a little in every round, nobody knows where to.",
    "sine": "The world swings to and fro like the seasons.",
    "adaptive-adversary": "An opponent sees how the learner is about to choose, and answers with what hurts most.",
    "corrupted": "A world that stays as it is, but somebody has tampered with a part of the feedback.",
    "moving-level": "All choices become better and worse together; which one is best never changes.",
    "lower-bound": "One choice is better by a hair: as hard as a world that stays as it is can be.",
    "ad-fatigue": "An ad that is shown often works less: every choice changes what it will earn later.",
    "clicks": "Rewards are rare, a few clicks in a hundred visits, and most kinds of visitors hardly ever come.",
}
MARGIN = "The world stays as it is; for some visitors the best choice is far ahead, for others it is nearly a tie."
CHANGES = " Now and then every choice takes over the click rates of another."


def sentence_of(environment: Environment, options: dict[str, Any]) -> str:
    """Return the sentence of a regime; for a world of the user's own, the little that is known of it."""
    kind = str(options.get("kind", ""))
    if kind == "stochastic" and options.get("margin") not in (None, "none"):
        return MARGIN
    if kind == "clicks" and options.get("changes"):
        return SENTENCES[kind] + CHANGES
    if kind in SENTENCES:
        return SENTENCES[kind]
    steady = "stays as it is" if environment.stochastic else "may change"
    return f"A world of its own, {environment.name!r}; it {steady}."
