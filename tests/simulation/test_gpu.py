"""GPU simulations in numba's CUDA simulator: the same numbers as on the CPU, slice by slice."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.simulation.gpu import launcher as gpu
from bothworlds.simulation.gpu.checkpoint import run_fingerprint
from bothworlds.simulation.setting import make_setting

COMPARE = """
import numpy as np
import bothworlds as bw
from bothworlds import environments as en
from bothworlds.simulation.gpu import launcher as gpu

gpu.FIRST_SLICE, gpu.SLICE_SECONDS, gpu.free_memory = 3, 0.0, lambda: 40_000
instance = en.random_instance(contexts=3, arms=2, dimension=2, gap=0.2, seed=1)
algorithms = {
    "paper": bw.LCTsallisINF(tuning="paper"),
    "certified": bw.LCTsallisINF(tuning="certified"),
    "matched": bw.LCTsallisINF(tuning="matched"),
    "shannon": bw.RealFTRL(),
    "exp3": bw.RealLinExp3(horizon=11, features="arm-dependent"),
    "ucb": bw.LinUCB(),
    "oful": bw.OFUL(),
    "thompson": bw.LinTS(draws=2),
    "fading": bw.DLinUCB(discount=0.9),
    "window": bw.SWLinUCB(window=4),
    "inverse gaps": bw.SquareCB(),
    "per context": bw.PerContextTsallisINF(),
    "fixed": bw.FixedPolicy(),
    "policies": bw.BoBWLinearEXP4(horizon=11, scale=0.0),
    "counted contexts": bw.LinearEXP4(horizon=11, contexts="empirical"),
    "counted, logdet": bw.LogdetFTRL(horizon=11, contexts="empirical", scale=0.0),
}
worlds = [
    en.corrupted(instance, budget=2.0),
    en.adaptive_adversary(instance.problem, [instance.theta, -instance.theta]),
    en.alternating(instance.problem, [instance.theta, -instance.theta], every=3),
    en.stochastic(instance, noise="normal"),
]
for number, (label, algorithm) in enumerate([*algorithms.items()] + [*algorithms.items()][2:7:4]):
    if number == len(algorithms):
        gpu.LARGEST_LOCAL = 0  # two over again, in the GPU's memory
        gpu.compiled_kernel.cache_clear()
    for world in worlds if number == 0 else worlds[:1]:
        options = dict(horizon=11, replications=3, rng=5, delay=1, batch=2, checkpoints=4)
        one = bw.simulate(world, {label: algorithm}, **options, device="gpu")[label]
        two = bw.simulate(world, {label: algorithm}, **options)[label]
        totals = ("expected", "realised", "own_best", "round_best", "corruption", "spent", "policy")
        for name in (*totals, "learning_rate", "exploration_rate"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=f"{label} {name}")
        for name in two.final:
            np.testing.assert_array_equal(one.final[name], two.final[name], err_msg=f"{label} {name}")
three = en.stochastic(en.random_instance(contexts=2, arms=3, dimension=2, gap=0.2, seed=1))
options = dict(horizon=6, replications=4, rng=5, delay=4, checkpoints=[1, 4, 6])
one, two = (bw.simulate(three, {"a": bw.LinTS(draws=1)}, **options, device=on)["a"] for on in ("gpu", "cpu"))
np.testing.assert_array_equal(one.expected, two.expected)
assert len(set(one.expected[:, 0])) > 1  # each replication draws its first plan
print("same")
"""


def test_the_simulated_gpu_gives_the_same_numbers() -> None:
    """Every algorithm in thread memory, two in global memory; several rules, delays, slices, and split replications."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([sys.executable, "-c", COMPARE], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "same", done.stderr[-2000:]


CONTINUE = """
import sys
from pathlib import Path
import numpy as np
import bothworlds as bw
from bothworlds import environments as en
from bothworlds.simulation.gpu import launcher as gpu

gpu.FIRST_SLICE, gpu.SLICE_SECONDS, gpu.CHECKPOINT_SECONDS = 3, 0.0, 0.0
gpu.split_by_memory = lambda *_: [range(2), range(2, 3)]
world = en.corrupted(en.random_instance(contexts=3, arms=2, dimension=2, gap=0.2, seed=1), budget=2.0)
options = dict(horizon=12, replications=3, rng=5, delay=1, batch=2, checkpoints=4, device="gpu")
file = Path(sys.argv[1]) / "folder" / "run.npz"
played = 0

def stop(rounds):
    global played
    played += rounds
    if played > 30:
        raise KeyboardInterrupt

whole = bw.simulate(world, bw.LCTsallisINF(tuning="certified"), **options)
try:
    bw.simulate(world, bw.LCTsallisINF(tuning="certified"), **options, progress=stop, resume_file=file)
except KeyboardInterrupt:
    print("stopped")
kept = sorted(file.parent.iterdir())
assert len(kept) == 2, kept  # the first part is done, the second is not
try:
    bw.simulate(world, bw.LCTsallisINF(tuning="certified"), **{**options, "rng": 6}, resume_file=file)
except ValueError as error:
    print("belongs to a run with other" in str(error))
seen = []
rest = bw.simulate(world, bw.LCTsallisINF(tuning="certified"), **options, progress=seen.append, resume_file=file)
[one], [two] = whole.runs.values(), rest.runs.values()
for name in ("expected", "realised", "own_best", "round_best", "corruption", "policy", "exploration_rate"):
    np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
print(seen[0], sum(seen), list(file.parent.iterdir()))
"""


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-c", CONTINUE, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[:2] == ["stopped", "True"], done.stderr[-2000:]
    assert done.stdout.split("\n")[2] == "24 36 []"  # the first part was not played again, and nothing is left over


DISOBEY = """
import bothworlds as bw
from bothworlds import environments as en
from bothworlds.simulation.gpu import launcher as gpu

gpu.free_memory = lambda: 40_000

def too_much(nature, t, key):
    nature.c[0] = 1.0 if t < 5 else 3.0

instance = en.random_instance(contexts=3, arms=2, dimension=2, gap=0.2, seed=1)
world = en.kernel_environment(instance.problem, [instance.theta], decide=too_much)
for device in ("cpu", "gpu"):
    try:
        bw.simulate(world, bw.FixedPolicy(), horizon=11, replications=2, device=device)
    except ValueError as error:
        print(str(error).partition(" made a mean loss")[1])
"""


def test_a_rule_whose_losses_leave_their_range_is_refused_on_a_gpu_too() -> None:
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([sys.executable, "-c", DISOBEY], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [" made a mean loss"] * 2, done.stderr[-2000:]


def still(nature: Any, t: int, key: int) -> None:
    nature.c[0] = 1.0


def half(nature: Any, t: int, key: int) -> None:
    nature.c[0] = 0.5


def test_an_unfinished_run_under_another_rule_is_another_run() -> None:
    instance = en.random_instance(contexts=3, arms=2, dimension=2, gap=0.2, seed=1)
    machine, names = bw.FixedPolicy().machine(instance.problem), []
    half.__qualname__ = still.__qualname__  # as if the text had been edited
    for rule in (still, still, half):
        world = en.kernel_environment(instance.problem, [instance.theta], decide=rule)
        names.append(run_fingerprint(machine, make_setting(world, horizon=50, rng=1, checkpoints=10), range(2)))
    assert names[0] == names[1] != names[2]


@pytest.mark.skipif(gpu.is_available(), reason="there is a GPU")
def test_without_a_gpu_a_sentence_says_so() -> None:
    world = en.stochastic(en.random_instance(contexts=2, arms=2, dimension=2, gap=0.2))
    with pytest.raises(ValueError, match="needs an NVIDIA GPU"):
        bw.simulate(world, bw.LinUCB(), horizon=10, device="gpu")
    assert bw.simulate(world, bw.LinUCB(), horizon=10, device="auto").checkpoints[-1] == 10


def test_wrong_devices_and_what_a_gpu_cannot_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    world = en.stochastic(en.random_instance(contexts=2, arms=2, dimension=2, gap=0.2))
    with pytest.raises(ValueError, match="device must be"):
        bw.simulate(world, bw.LinUCB(), horizon=10, device="tpu")  # type: ignore[arg-type]
    machine = bw.LinUCB().machine(world.problem)
    setting = make_setting(world, horizon=1_000_000, rng=0, checkpoints=10, delay=900_000)
    monkeypatch.setattr(gpu, "free_memory", lambda: 10_000_000)
    with pytest.raises(ValueError, match="use device='cpu'"):
        gpu.split_by_memory(machine, setting, range(3))
