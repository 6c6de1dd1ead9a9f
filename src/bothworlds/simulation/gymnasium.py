"""`BanditEnv`: an environment with the interface of Gymnasium (optional: pip install '.[gym]')."""

from typing import Any

import numpy as np

from bothworlds.environments.environment import Environment, require_environment
from bothworlds.errors import MissingPackageError, not_installed
from bothworlds.kernels.contract import even_play
from bothworlds.kernels.random import CONTEXT, draw, key_from, stream_key, two_uniforms
from bothworlds.problem.checks import whole
from bothworlds.simulation.round_loop import expected_losses

try:
    import gymnasium
except ModuleNotFoundError:
    raise MissingPackageError(not_installed("this module needs", "gymnasium", "gym")) from None


class BanditEnv(gymnasium.Env[np.int64, np.int64]):
    """A bandit as a Gymnasium environment: observe a context, play an arm, the reward is minus the loss.

    Contexts and noise are those of the simulator for the same seed. Gymnasium does not pass on the learner's policy, so
    an adaptive adversary reacts to the uniform policy instead. Without a horizon an episode does not end.
    """

    def __init__(self, environment: Environment, *, horizon: int | None = None) -> None:
        require_environment(environment)
        problem = environment.problem
        rows = len(environment.path)
        horizon = None if horizon is None else whole(horizon, 1, "horizon")
        if rows and (horizon is None or horizon > rows):
            raise ValueError(f"the environment has parameters for {rows} rounds; give a horizon of at most that")
        self.environment, self.horizon = environment, horizon
        self.observation_space = gymnasium.spaces.Discrete(problem.n_contexts)
        self.action_space = gymnasium.spaces.Discrete(problem.n_arms)
        self._uniform = even_play(problem.available)
        self._t = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Restart at round 1; the same seed gives the same contexts and noise."""
        super().reset(seed=seed, options=options)
        self._key = stream_key(key_from(seed if seed is not None else int(self.np_random.integers(2**31))), 0)
        self._nature = self.environment.begin()
        self._t = 0
        return self._next(), {}

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Play an arm in the context observed last."""
        if self._t == 0:
            raise ValueError("no context has been observed yet: call reset() before step(arm)")
        problem = self.environment.problem
        if not (self.action_space.contains(action) and problem.available[self._x, action]):
            raise ValueError(f"arm {action} is not offered in context {problem.contexts[self._x]!r}")
        mean = self.environment.kernel.mean_loss(self._nature, self._x, int(action))
        loss = float(self.environment.kernel.noisy(self._nature, mean, self._v, self._key, self._t))
        self.environment.kernel.react(self._nature, int(action))
        self.environment.require_kernel_in_range(self._nature.state, self._t)
        is_last = self.horizon is not None and self._t >= self.horizon
        context = np.int64(self._x) if is_last else self._next()
        return context, -loss, False, is_last, {"mean_loss": float(mean)}

    def _next(self) -> np.int64:
        """Start the next round and return its context."""
        self._t += 1
        g = self.environment.problem.probabilities
        expected_losses(self._nature.tables, g, self._uniform, self._nature.expected_loss)
        self.environment.decide(self._nature, self._t, self._key, self._uniform)
        u, self._v = two_uniforms(self._key, self._t, CONTEXT, 0)
        self._x = int(draw(self.environment.problem.probabilities, u))
        return np.int64(self._x)
