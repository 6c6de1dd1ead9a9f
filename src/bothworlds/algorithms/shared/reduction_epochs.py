"""Epochs of the reduction by Dann, Wei and Zimmert (2023): when another candidate takes over. Kernel functions.

An epoch ends when it is at least twice as long as the previous one and another candidate has half of its plays.
"""

from typing import Any

from bothworlds.arrays import Floats
from bothworlds.kernels.contract import Known
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.linalg import erase


@kernel
def restart(state: Any) -> None:
    """Start an epoch: reset everything but the candidate and the plays."""
    state.master.previous[0] = state.master.clock[0] - 1.0
    state.master.epoch[0] += 1.0
    state.master.clock[0] = 1.0
    erase(state.master.losses)
    state.master.total[0] = 0.0
    state.master.worst[0] = 0.0
    erase(state.theta)


@kernel
def forget_plays(counts: Floats) -> None:
    """Set the counts of an epoch to zero."""
    for x in range(counts.shape[0]):
        for a in range(counts.shape[1]):
            counts[x, a] = 0.0


@kernel
def other_arm(state: Any) -> int:
    """Return an arm, not the candidate, with at least half of the plays of the epoch, or -1."""
    S, K = state.counts.shape
    present = -1.0
    for x in range(S):
        present = max(present, state.candidate[x])
    for a in range(K):
        plays = 0.0
        for x in range(S):
            plays += state.counts[x, a]
        if a != present and 2.0 * plays >= state.master.clock[0] - 1.0:
            return a
    return -1


@kernel
def favourite(state: Any, x: int) -> int:
    """Return the arm most played in a context during the epoch; the candidate only if it leads all others."""
    best = int(state.candidate[x])
    favourite_arm = -1
    plays = 0.0
    for a in range(state.counts.shape[1]):
        if a != best and state.counts[x, a] > plays:
            plays = state.counts[x, a]
            favourite_arm = a
    return favourite_arm if favourite_arm >= 0 and plays >= state.counts[x, best] else best


@kernel
def other_map(state: Any) -> bool:
    """Return whether the map of favourites differs from the candidate and agrees with at least half of the plays."""
    plays = 0.0
    differs = False
    for x in range(state.counts.shape[0]):
        a = favourite(state, x)
        plays += state.counts[x, a]
        differs = differs or a != int(state.candidate[x])
    return differs and 2.0 * plays >= state.master.clock[0] - 1.0


@kernel
def end_epoch(known: Known, state: Any, maps: bool) -> bool:
    """Take a new candidate and start an epoch, if this one is long enough and another candidate has a majority.

    Return whether it did: a base with state that `restart` does not reset must then reset it too.
    """
    if state.master.clock[0] - 1.0 < 2.0 * state.master.previous[0]:
        return False
    if maps:
        if not other_map(state):
            return False
        for x in range(state.counts.shape[0]):
            state.candidate[x] = favourite(state, x)
    else:
        arm = other_arm(state)
        if arm < 0:
            return False
        for x in range(state.counts.shape[0]):
            state.candidate[x] = arm if known.blocked[x, arm] == 0.0 else -1.0
    restart(state)
    forget_plays(state.counts)
    return True


@kernel
def other_policy(state: Any) -> int:
    """Return a policy, not the candidate, that was drawn in at least half of the rounds of the epoch, or -1."""
    for p in range(state.counts.shape[0]):
        if p != state.candidate[0] and 2.0 * state.counts[p] >= state.master.clock[0] - 1.0:
            return p
    return -1


@kernel
def end_epoch_of_policies(state: Any) -> None:
    """Take a new candidate policy and start an epoch, if this one is long enough and another policy has a majority.

    ``counts`` are those of the policies drawn.
    """
    if state.master.clock[0] - 1.0 < 2.0 * state.master.previous[0]:
        return
    p = other_policy(state)
    if p >= 0:
        state.candidate[0] = p
        restart(state)
        erase(state.counts)
