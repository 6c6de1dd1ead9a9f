"""Counter-based random numbers in kernel code: Philox 4x32-10 (Salmon et al., SC 2011).

A draw is a pure function of (key, round, purpose, index). There is no state: the numbers are the same on every device,
in any order and for any number of threads. All arithmetic is on integers masked to 32 bits, which is exact for Python's
integers and for wrapping 64-bit integers.
"""

import math
from typing import TypeAlias

import numpy as np

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import Number, Place, where
from bothworlds.kernels.jit.compile import kernel

Seed: TypeAlias = int | np.random.SeedSequence | np.random.Generator | None
Two: TypeAlias = tuple[float, float]
MASK = 0xFFFFFFFF
TO_UNIT = 1.0 / 9007199254740992.0  # 2**-53

# Purposes of draws; each has its own stream of random numbers.
ARM = 0
RESAMPLING = 1
CONTEXT = 2  # and the loss of the round: the second uniform of the pair
NOISE = 3
NATURE = 4
STREAM = 5
POSTERIOR = 6
SIMPLEX = 7


@kernel
def philox(c0: int, c1: int, c2: int, c3: int, k0: int, k1: int) -> tuple[int, int, int, int]:
    """Return four 32-bit words from a 128-bit counter and a 64-bit key."""
    for _ in range(10):
        p0 = 0xD2511F53 * c0
        p1 = 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (
            ((p1 >> 32) & MASK) ^ c1 ^ k0,
            p1 & MASK,
            ((p0 >> 32) & MASK) ^ c3 ^ k1,
            p0 & MASK,
        )
        k0 = (k0 + 0x9E3779B9) & MASK
        k1 = (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


@kernel
def two_uniforms(key: int, time: int, purpose: int, index: int) -> Two:
    """Return two independent uniforms on [0, 1) with 53 bits each.

    ``key`` is that of the stream (0 to 2**63 - 1), ``time`` the round, ``purpose`` one of the constants above, and
    ``index`` counts the draws of a round (both below 2**32).
    """
    w0, w1, w2, w3 = philox(
        time & MASK, (time >> 32) & MASK, index & MASK, purpose & MASK, key & MASK, (key >> 32) & MASK
    )
    u = ((w0 >> 5) * 67108864 + (w1 >> 6)) * TO_UNIT
    v = ((w2 >> 5) * 67108864 + (w3 >> 6)) * TO_UNIT
    return u, v


@kernel
def two_normals(key: int, time: int, purpose: int, index: int) -> Two:
    """Return two independent standard normals (Box-Muller) from the two uniforms of the same counter."""
    u, v = two_uniforms(key, time, purpose, index)
    length = math.sqrt(-2.0 * math.log(1.0 - u))
    return length * math.cos(2.0 * math.pi * v), length * math.sin(2.0 * math.pi * v)


@kernel
def stream_key(seed: int, replication: int) -> int:
    """Return the key of a replication's stream, an integer in [0, 2**62), computed from the seed."""
    w0, w1, _, _ = philox(replication & MASK, (replication >> 32) & MASK, 0, STREAM, seed & MASK, (seed >> 32) & MASK)
    return (w0 & 0x3FFFFFFF) * 4294967296 + w1


@kernel
def draw(probabilities: Floats, u: Number) -> Place:
    """Return the index that a uniform u draws from probabilities (K,); never one of probability zero."""
    drawn = 0
    total = 0.0
    for a in range(probabilities.shape[0]):
        drawn, total = draw_step(drawn, total, a, probabilities[a], u)
    return drawn


@kernel
def draw_step(drawn: Place, total: Number, a: int, p: Number, u: Number) -> tuple[Place, Number]:
    """Return the drawn index and the total after index a of probability p: a, unless u is below the total before it."""
    possible = p > 0.0
    return where(possible, where(total <= u, a, drawn), drawn), where(possible, total + p, total)


def key_from(rng: Seed) -> int:
    """Return the key of a stream, an integer in [0, 2**63), for a user's argument ``rng``.

    >>> key_from(7)
    7
    """
    if rng is None:
        rng = np.random.SeedSequence()
    if isinstance(rng, np.random.SeedSequence):
        return int(rng.generate_state(1, np.uint64)[0] >> np.uint64(1))
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if type(rng) is bool or not hasattr(rng, "__index__") or not 0 <= int(rng) < 2**63:
        raise ValueError(
            f"rng must be an integer in [0, 2**63), a numpy SeedSequence, a numpy Generator or None; got {rng!r}"
        )
    return int(rng)
