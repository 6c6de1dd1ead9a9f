# %% [markdown]
# # From a table of visits to decisions
#
# The practitioner's side of `bothworlds` in one sitting. This notebook is made from `examples/tutorial.py` by
# `python tools/notebook.py`.

# %%
import json

import numpy as np

import bothworlds as bw
from bothworlds import environments as en

# %% [markdown]
# ## The problem: who comes, what can be shown
#
# Distinct rows of past visits become the contexts, their frequencies the probabilities. `reward_range` says what a
# reward is: here a click.

# %%
visits = [("mobile", "new"), ("mobile", "known"), ("desktop", "new"), ("mobile", "new"), ("desktop", "known")]
problem = bw.Problem.from_sample(visits, arms=["red", "blue", "green"], reward_range=(0, 1))
print(problem.describe())

# %% [markdown]
# ## Decide, log, learn
#
# A decision carries everything that its feedback will need. The log line may wait for hours, in another process.

# %%
policy = bw.LCTsallisINF().start(problem, rng=7)
decision = policy.act("mobile, new")
line = json.dumps(decision.to_dict())
print(decision.arm_name, "with probability", round(decision.propensity, 3))

policy.update(bw.Decision.from_dict(json.loads(line)), reward=1)
print("after a click:", policy.probabilities("mobile, new").round(3))

# %% [markdown]
# ## A thousand visitors
#
# The click rates are known to this cell only; they are linear in the columns, as the problem assumes. No
# click is `reward=0`, not "no update".

# %%
rates = np.array([[0.10, 0.35, 0.15], [0.40, 0.15, 0.05], [0.10, 0.30, 0.35], [0.40, 0.10, 0.25]])
visitors = np.random.default_rng(1)
clicks = 0
for _ in range(1000):
    context = int(visitors.choice(4, p=problem.probabilities))
    decision = policy.act(context)
    click = int(visitors.random() < rates[context, decision.arm])
    policy.update(decision, reward=click)
    clicks += click
at_random, at_best = (1000 * float(problem.probabilities @ of) for of in (rates.mean(axis=1), rates.max(axis=1)))
print(f"{clicks} clicks; at random about {at_random:.0f}, always the best about {at_best:.0f}")

# %% [markdown]
# ## What was learnt, and keeping it

# %%
for name, row in zip(problem.contexts, policy.probabilities(), strict=True):
    print(f"{name:<16}", {arm: round(float(share), 2) for arm, share in zip(problem.arms, row, strict=True)})
policy.save("tutorial-policy.npz")
again = bw.load("tutorial-policy.npz")
print(again.updates, "updates are still there")

# %% [markdown]
# ## Rehearse: a calm world and a hostile one
#
# Regret is what the best fixed plan would have spared. An optimist (LinUCB) is hard to beat in the calm world; in the
# other one it loses.

# %%
instance = en.random_instance(contexts=5, arms=4, dimension=4, gap=0.2, seed=7)
hostile = en.adaptive_adversary(instance.problem, en.opposite(instance.theta))
algorithms = {"LinUCB": bw.LinUCB(), "matched": bw.LCTsallisINF(), "uniform": bw.FixedPolicy()}
for world in (en.stochastic(instance), hostile):
    print(bw.simulate(world, algorithms, horizon=5000, replications=5, rng=7).summary(), end="\n\n")

# %% [markdown]
# ## What is promised
#
# Every theorem of the paper, for this problem, in units of loss.

# %%
print(bw.bounds(problem, horizon=1_000_000, gap=0.2).select(name="LC-Tsallis-INF"))
