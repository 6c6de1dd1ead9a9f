"""Fading of the matched tuning: evidence of a change by hand, what fades by hand, and that it keeps to its limits."""

import math

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.algorithms.lc_tsallis import fading
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.rates import ALLOWANCE, MOST_FADING
from worlds import coordinates, random_problem

PROBLEM = random_problem(5, S=4, K=3, d=3)
MEANS = PROBLEM.features @ np.random.default_rng(5).normal(size=3)
MEANS /= 1.2 * np.abs(MEANS).max()


def start(recency: float, *, rng: int = 3) -> bw.Policy:
    """Return a policy of the matched tuning with this recency."""
    return bw.LCTsallisINF(tuning=bw.Matched(leaning=0.0, recency=recency, forgetting=4.0)).start(PROBLEM, rng=rng)


def loss_of(made: bw.Decision, rng: np.random.Generator, sign: float) -> float:
    """Draw a loss of +-1 in the world with theta, or -theta."""
    mean = sign * MEANS[made.context, made.arm]
    return 1.0 if rng.random() < (1.0 + mean) / 2.0 else -1.0


def limits(policy: bw.Policy, beta: float, t: float, spent: float) -> Floats:
    """Return what chi_t may be: by a round, by the allowance, and by the first rate."""
    first = policy._machine.options.first
    return np.array([MOST_FADING, (ALLOWANCE * first * math.sqrt(t) - spent) / beta, beta / first - 1.0])


@pytest.mark.parametrize(("quick", "slow"), [(0.3, -0.2), (-0.9, -0.7), (0.0, 0.0), (1.5, 0.2), (-0.2, -1.0)])
def test_evidence_is_a_ratio_of_likelihoods(quick: float, slow: float) -> None:
    """For losses of +-1; others have the mean of such. Predictions are no surer than 0.99."""
    p, r = (np.clip(np.array([-1.0, 1.0]) * mean, -0.99, 0.99) / 2.0 + 0.5 for mean in (quick, slow))
    for loss, place in ((-1.0, 0), (1.0, 1)):
        assert fading.evidence(loss, quick, slow) == pytest.approx(math.log(p[place] / r[place]))
    mixed = 0.3 * fading.evidence(-1.0, quick, slow) + 0.7 * fading.evidence(1.0, quick, slow)
    assert fading.evidence(0.4, quick, slow) == pytest.approx(mixed)


@pytest.mark.parametrize("recency", [0.0, 1.0, 40.0])
def test_the_rule_by_hand(recency: float) -> None:
    """A world that turns around every 150 rounds: evidence, chi_t, and what it leaves of all that is learnt."""
    policy, rng, z = start(recency), np.random.default_rng(0), coordinates(start(recency))
    evidence, spent, counted, predicted, reasons = 0.0, 0.0, 0.0, np.zeros(3), [0, 0, 0, 0, 0]
    for t in range(1, 601):
        state = policy.state
        state.inverse_rate[0] *= 8.0 if t == 300 and recency == 40.0 else 1.0
        theta, m, beta = state.theta.copy(), state.baseline.copy(), float(state.inverse_rate[0])
        made = policy.act(int(rng.choice(4, p=PROBLEM.probabilities)))
        loss = loss_of(made, rng, 1.0 if t // 150 % 2 == 0 else -1.0)
        own = z[made.context, made.arm]
        policy.update(made, loss=loss)
        news = fading.evidence(loss, own @ m, own @ predicted / max(counted, 1.0))
        evidence = min(max(evidence + news, 0.0), 12.0)
        wanted = recency * min(max(evidence / 4.0 - 1.0, 0.0), 1.0) / t
        most = limits(policy, beta, t, spent)
        chi = max(min(wanted, *most), 0.0)
        reasons[int(np.argmin([*most, wanted])) if chi > 0.0 else 4] += 1
        keep = 1.0 / (1.0 + chi)
        spent, counted, predicted = spent + chi * beta, keep * (counted + 1.0), keep * (predicted + m)
        after = policy.state
        assert after.evidence[0] == pytest.approx(evidence, abs=1e-9)
        assert after.spent[0] == pytest.approx(spent, abs=1e-9)
        assert after.counted[0] == pytest.approx(counted)
        assert after.predicted == pytest.approx(predicted, abs=1e-9)
        assert after.theta == pytest.approx(keep * (theta + m + made.direction * (loss - own @ m)), abs=1e-9)
        assert after.inverse_rate[0] >= keep * beta * (1 - 1e-12)
    faded = 600.0 - counted
    assert (faded == spent == 0.0) if recency == 0.0 else (faded > 50.0)
    assert reasons[3] > 50 or recency != 1.0, "many rounds fade by recency"
    assert min(reasons) > 0 or recency != 40.0, "every limit is met"


@pytest.mark.parametrize("recency", [1.0, 200.0])
def test_fading_keeps_to_its_allowance_whatever_is_seen(recency: float) -> None:
    """With evidence from round 200 on: the sum of chi_s beta_s is at most 0.4 beta_1 sqrt(t), beta at least beta_1."""
    policy, rng, used = start(recency), np.random.default_rng(1), 0.0
    first, before = policy._machine.options.first, 0.0
    for t in range(1, 900):
        policy.state.evidence[0] = 1e9 if t > 200 else 0.0  # no more is kept than counts
        policy.state.inverse_rate[0] *= 5.0 if t % 200 == 0 else 1.0
        beta = float(policy.state.inverse_rate[0])
        made = policy.act(int(rng.choice(4, p=PROBLEM.probabilities)))
        policy.update(made, loss=loss_of(made, rng, 1.0))
        state = policy.state
        taken = float(state.spent[0]) - before
        assert 0.0 <= taken <= min(MOST_FADING, recency / t) * beta * (1 + 1e-9)
        assert state.inverse_rate[0] >= first * (1 - 1e-12)
        before = float(state.spent[0])
        used = max(used, before / (ALLOWANCE * first * math.sqrt(t)))
        assert used <= 1 + 1e-12
    assert used > (0.99 if recency > 1.0 else 0.3)


def test_a_world_that_stays_is_not_forgotten_and_one_that_turns_is() -> None:
    """What is left of 1,500 rounds, and how soon it is seen that the second world is the opposite of the first."""
    left: list[float] = []
    seen: list[int] = []
    for seed in range(6):
        policy, rng = start(1.0, rng=seed), np.random.default_rng(seed)
        for t in range(1, 2001):
            made = policy.act(int(rng.choice(4, p=PROBLEM.probabilities)))
            policy.update(made, loss=loss_of(made, rng, 1.0 if t <= 1500 else -1.0))
            if t == 1500:
                left.append(float(policy.state.counted[0]))
            elif t > 1500 and len(seen) == seed and policy.state.evidence[0] > 2.0 * fading.CLEAR:
                seen.append(t - 1500)
        assert policy.state.counted[0] < 1900.0
    assert np.mean(left) > 1350.0
    assert len(seen) == 6
    assert max(seen) < 150


def test_compiled_and_interpreted_fade_alike() -> None:
    """Bit for bit, in a world that turns around after 100 rounds."""
    tuning = bw.LCTsallisINF(tuning=bw.Matched(leaning=0.0, recency=5.0))
    both = [tuning.start(PROBLEM, rng=4, interpreted=interpreted) for interpreted in (True, False)]
    for policy in both:
        rng = np.random.default_rng(4)
        for t in range(200):
            made = policy.act(int(rng.choice(4, p=PROBLEM.probabilities)))
            policy.update(made, loss=loss_of(made, rng, 1.0 if t < 100 else -1.0))
    here, there = (policy.learnt() for policy in both)
    assert here["counted"][0] < 195.0
    assert {name: part.tobytes() for name, part in here.items()} == {
        name: part.tobytes() for name, part in there.items()
    }


def test_answers_of_a_batch_fade_one_after_the_other() -> None:
    """Each by what those before it have left of beta; the plan after them has what is left of it, grown."""
    policy, rng = start(3.0), np.random.default_rng(2)
    for _ in range(40):
        made = policy.act(int(rng.choice(4, p=PROBLEM.probabilities)))
        policy.update(made, loss=loss_of(made, rng, 1.0))
    policy.state.evidence[0] = 1e9
    beta, spent, t = float(policy.state.inverse_rate[0]), float(policy.state.spent[0]), float(policy.state.t[0])
    batch = policy.act(rng.choice(4, size=5, p=PROBLEM.probabilities))
    policy.update(batch, loss=[0.1] * 5)
    left, taken = 1.0, 0.0
    for n in range(5):
        most = limits(policy, left * beta, t + n, spent + taken)
        chi = min(3.0 / (t + n), *most)
        taken, left = taken + chi * left * beta, left / (1.0 + chi)
    assert taken > 0.0
    assert policy.state.spent[0] == pytest.approx(spent + taken)
    assert policy.state.inverse_rate[0] >= left * beta * (1 - 1e-12)
