"""The parts of the regret of LC-Tsallis-INF in a world of rare clicks, by tuning.

    python benchmarks/click_costs.py [--horizon 30000] [--replications 4] [--tunings paper certified matched]

Along a run the regret of a round, r(pi) = E_X <l(X), pi(X) - best(X)>, is split by enumeration into

    r(pi_t) - r(q_t)        exploration: plays that differ from the FTRL point
    r(q_t) - r(q'_t)        prediction: q'_t has the same plays and rates, but estimates with an exact control variate
                            and no regression drift
    r(q'_t) - r(q*_t)       noise: the remaining errors of the estimates, because clicks are random
    r(q*_t)                 rate: q*_t is the FTRL point of the exact losses at the same rates

which add up to the regret; every tenth round is split and counts for ten. "No prediction" is r(q_t) - r(q'_t) for
estimates without a control variate: the same if a tuning has none, more if its control variate helps. "Faster" is the
sum of r at four times the rate, with the same plays and estimates: below the regret if the rate is too slow. All are
sums over rounds, in units of losses (a click more is 2 less), mean and standard error over replications; the share is
that of the possible gain over uniform play.
"""

import argparse
from typing import Any, NamedTuple

import numpy as np

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.simulation.round_loop_python import play_in_python
from bothworlds.simulation.setting import make_setting

COLUMNS = ("rate", "noise", "prediction", "exploration", "no prediction", "faster")
FASTER = 4.0
TOLERANCE = 1e-6  # of recomputed points
EVERY = 10  # rounds: plans move slowly, so every tenth round is split and counts for ten


class Sums(NamedTuple):
    """Sums of estimates by kind of control variate (own includes the regression drift), and the number of rounds."""

    none: Any
    own: Any
    exact: Any
    rounds: float


def points(losses: Any, eta: float) -> Any:
    """Return the FTRL points (.., K) of losses (.., K), q = (eta (l - y))^-2: Newton's method from y = min l - 1/eta.

    The sum of q is increasing and convex in y, and at least 1 there, so that the steps go down to the root.
    """
    scaled = eta * (losses - losses.min(axis=-1, keepdims=True))
    y = np.full((*losses.shape[:-1], 1), -1.0)
    for _ in range(60):
        parts = 1.0 / (scaled - y)
        excess = (parts**2).sum(axis=-1, keepdims=True) - 1.0
        y -= excess / (2.0 * (parts**3).sum(axis=-1, keepdims=True))
        if excess.max() < 1e-12:
            break
    return (scaled - y) ** -2.0


class Account:
    """A policy that splits its regret into parts."""

    def __init__(self, policy: Any, world: en.Environment, z: Any) -> None:
        self.policy, self.g, self.z = policy, world.problem.probabilities, z
        self.gaps = world.gaps
        S, K, d = z.shape
        self.truth = np.linalg.lstsq(z.reshape(S * K, d), world.tables[0].reshape(-1), rcond=None)[0]
        zero = np.zeros(d)
        self.sums = Sums(zero, zero, zero, 0.0)
        self.ahead = 0.0  # 1 if q_t looks one prediction ahead
        self.costs = dict.fromkeys(COLUMNS, 0.0)
        self.rates = np.zeros(2)

    def probabilities(self) -> Any:
        """Return pi_t."""
        return self.policy.probabilities()

    def act(self, x: int) -> Any:
        """Decide as the policy does."""
        return self.policy.act(x)

    def update(self, decision: Any, *, loss: float) -> None:
        """Split the regret of the round, learn, and update the sums of estimates."""
        state, x, a = self.policy.state, decision.context, decision.arm
        pi, q, theta = state.pi, state.q, state.theta.copy()
        eta, gamma = map(float, state.rates)
        baseline = np.array(getattr(state, "baseline", 0.0 * theta))
        if self.policy.updates % EVERY == 0:
            self._split(pi, q, eta, baseline)
        self.rates = np.array([eta, self.rates[1] + gamma])
        self.policy.update(decision, loss=loss)
        direction = np.array(decision.direction)
        estimates = [m + direction * (loss - self.z[x, a] @ m) for m in (0.0 * theta, baseline, self.truth)]
        after, sums = self.policy.state, self.sums
        if np.abs(theta + estimates[1] - after.theta).max() > TOLERANCE * (1.0 + np.abs(after.theta).max()):
            raise ValueError("the estimates of this tuning cannot be reproduced by this account")
        own = after.theta + getattr(after, "drift", 0.0)
        self.sums = Sums(sums.none + estimates[0], own, sums.exact + estimates[2], sums.rounds + 1.0)

    def _split(self, pi: Any, q: Any, eta: float, baseline: Any) -> None:
        """Add the parts of a round's regret to the account."""
        sums = self.sums
        if not self.ahead:
            self.ahead = self._looks_ahead(q, eta, baseline)
        forward = self.ahead * self.truth
        others = np.stack([sums.none, sums.exact + forward, sums.rounds * self.truth + forward])
        none, exact, known = points(np.einsum("xai,ji->jxa", self.z, others), eta)
        faster = points(self.z @ (sums.own + self.ahead * baseline), FASTER * eta)
        played, wanted, bare, least, rate = (self._regret(one) for one in (pi, q, none, exact, known))
        parts = (rate, least - rate, wanted - least, played - wanted, bare - least, self._regret(faster))
        for name, part in zip(COLUMNS, parts, strict=True):
            self.costs[name] += EVERY * part

    def _looks_ahead(self, q: Any, eta: float, baseline: Any) -> float:
        """Return 1 if q_t is the FTRL point of the sums plus a prediction of this round, 0 if of the sums alone."""
        for ahead in (0.0, 1.0):
            if np.abs(points(self.z @ (self.sums.own + ahead * baseline), eta) - q).max() <= TOLERANCE:
                return ahead
        raise ValueError("the plan of this tuning is not an FTRL point of its estimates, with or without a prediction")

    def _regret(self, pi: Any) -> float:
        return float(np.einsum("x,xa,xa->", self.g, pi, self.gaps))


def account(world: en.Environment, tuning: str, horizon: int, number: int) -> dict[str, float]:
    """Play one replication and return its account."""
    algorithm = bw.LCTsallisINF(tuning=tuning)  # type: ignore[arg-type]
    accounts: list[Account] = []

    def start(problem: bw.Problem, *, rng: Any) -> Account:
        accounts.append(Account(algorithm.start(problem, rng=rng), world, algorithm.machine(problem).known.z))
        return accounts[0]

    play_in_python(start, make_setting(world, horizon=horizon, rng=1, checkpoints=[horizon]), number)
    (played,) = accounts
    regret = sum(played.costs[name] for name in COLUMNS[:4])
    last = {"1/eta at T": 1.0 / float(played.rates[0]), "sum gamma": float(played.rates[1])}
    share = float(en.captured_gain(world, regret, horizon=horizon))
    return {"regret": regret, **played.costs, **last, "share": 100.0 * share}


def row_of(tuning: str, results: list[dict[str, float]]) -> str:
    """Return one row of the table, with standard errors if there are several replications."""
    words = []
    for name in results[0]:
        values = np.array([one[name] for one in results])
        error = f" ± {values.std(ddof=1) / np.sqrt(len(values)):.0f}" if len(values) > 1 else ""
        words.append(f"{values.mean():,.0f}{error}")
    return f"| {tuning} | " + " | ".join(words) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", type=int, default=30_000)
    parser.add_argument("--replications", type=int, default=4)
    parser.add_argument("--tunings", nargs="+", default=["paper", "certified", "matched"])
    parser.add_argument("--seed", type=int, default=0, help="of the world's rates")
    parser.add_argument("--rarity", type=float, default=520.0)
    options = parser.parse_args()
    world = en.clicks(seed=options.seed, rarity=options.rarity)
    print(f"{world}, uniform play {en.possible_gain(world, horizon=options.horizon):.0f}")
    heads = ("tuning", "regret", *COLUMNS, "1/eta at T", "sum of gamma", "share, %")
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for tuning in options.tunings:
        results = [account(world, tuning, options.horizon, number) for number in range(options.replications)]
        print(row_of(tuning, results), flush=True)


if __name__ == "__main__":
    main()
