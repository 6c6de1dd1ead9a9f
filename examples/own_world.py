"""A world of your own, at full speed: a market whose fashion changes, nobody knows when.

    python examples/own_world.py

The rule is kernel text: a plain function on numbers and small arrays, which runs compiled in `simulate` and interpreted
in the debugger (`replay`).
"""

from typing import Any

import numpy as np

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.kernels.random import NATURE, two_uniforms

ROUNDS = 20_000


def fashion(nature: Any, t: int, key: int) -> None:
    """Nature of round t: theta_t = c[0] bright + c[1] dark.

    The fashion (state[0], 0 or 1) changes in any round with the probability constants[0], and starts bright.
    """
    u, _ = two_uniforms(key, t, NATURE, 0)
    if u < nature.constants[0]:
        nature.state[0] = 1.0 - nature.state[0]
    nature.c[0] = 1.0 - nature.state[0]
    nature.c[1] = nature.state[0]


def world() -> en.Environment:
    """Three colours in two seasons; the losses of every pair are a parameter of its own."""
    problem = bw.Problem(
        features=np.eye(6).reshape(2, 3, 6),
        probabilities=[0.6, 0.4],
        contexts=["summer", "winter"],
        arms=["yellow", "grey", "black"],
    )
    bright = [-0.5, 0.0, 0.3, -0.3, 0.1, 0.0]
    dark = [0.4, 0.0, -0.3, 0.4, -0.1, -0.6]
    return en.kernel_environment(
        problem, [bright, dark], decide=fashion, state_size=1, constants=[1 / 2000], name="fashion"
    )


def played() -> bw.Results:
    """Let algorithms play in it."""
    algorithms = {
        "LinUCB": bw.LinUCB(),
        "LC-Tsallis-INF matched": bw.LCTsallisINF(tuning="matched"),
        "uniform": bw.FixedPolicy(),
    }
    return bw.simulate(world(), algorithms, horizon=ROUNDS, replications=20, rng=7)


def main() -> None:
    """Check the world, then play in it."""
    for sentence in bw.check_environment(world()) or ["the world conforms"]:
        print(sentence)
    print(played().summary())


if __name__ == "__main__":
    main()
