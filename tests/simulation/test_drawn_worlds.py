"""Random draws of studies: `draw` in all environments, sizes of user environments, the rarity of clicks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bothworlds import FixedPolicy
from bothworlds.environments import Environment
from bothworlds.environments.registry import WORLDS, make_environment
from bothworlds.studies.comparison import comparison

SIZES: dict[str, Any] = {"contexts": 4, "arms": 3, "dimension": 3, "gap": 0.2, "rarity": None, "margin": None}
SETTINGS = {"seed": 3, "horizon": 400}
WORLD = """
import bothworlds as bw
from bothworlds import environments as en

def of_arms(arms=2):
    return en.lower_bound(arms=arms, horizon=100)

def of_a_seed(seed):
    return en.lower_bound(arms=99, horizon=100, seed=seed)

def of_an_instance(instance):
    return en.stochastic(instance)

def of_anything(**options):
    return en.lower_bound(horizon=100, **options)

def of_nothing():
    return en.lower_bound(arms=2, horizon=100)

ready = of_nothing()
"""


def made(kind: str, **options: Any) -> Environment:
    return make_environment({"kind": kind, **options}, SIZES, SETTINGS)


def content_of(world: Environment) -> bytes:
    return b"".join(np.ascontiguousarray(part).tobytes() for part in (world.problem.features, *world.begin()[2:5]))


@pytest.mark.parametrize("kind", WORLDS)
def test_draw_gives_every_world_another_instance(kind: str) -> None:
    other = make_environment({"kind": kind}, SIZES, {**SETTINGS, "seed": 8})
    assert content_of(made(kind, draw=8)) == content_of(other)  # the seed of whatever is drawn
    assert content_of(made(kind, draw=3)) == content_of(made(kind))


@pytest.fixture
def mine(tmp_path: Path) -> str:
    (tmp_path / "my_world.py").write_text(WORLD)
    return f"{tmp_path / 'my_world.py'}:"


def test_what_a_table_asks_for_reaches_a_world_of_ones_own(mine: str) -> None:
    assert made(f"{mine}of_arms", arms=5).problem.n_arms == 5
    assert made(f"{mine}of_anything", arms=6).problem.n_arms == 6
    assert made(f"{mine}of_an_instance", arms=4, contexts=2).problem.available.shape == (2, 4)
    seeds = [content_of(made(f"{mine}of_a_seed", **options)) for options in ({}, {"draw": 3}, {"draw": 4}, {"seed": 4})]
    assert seeds[0] == seeds[1] != seeds[2] == seeds[3]
    one, two = (made(f"{mine}of_an_instance", draw=number) for number in (1, 2))
    assert content_of(one) != content_of(two)


@pytest.mark.parametrize("options", [{"draw": 2}, {"arms": 4}, {"margin": 1.0}])
@pytest.mark.parametrize("name", ["of_nothing", "ready"])
def test_what_a_world_of_ones_own_would_not_look_at_is_refused(mine: str, name: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"does not use {next(iter(options))}|takes no options"):
        made(f"{mine}{name}", **options)


@pytest.mark.parametrize(("contexts", "asked"), [(1, 60.0), (24, 24.0), (4, 60.0)])
def test_clicks_have_the_rarity_of_the_study_however_many_contexts_it_has(contexts: int, asked: float) -> None:
    world = make_environment({"kind": "clicks"}, {**SIZES, "contexts": contexts, "rarity": asked}, SETTINGS)
    assert world.problem.rarity == pytest.approx(asked)


def test_two_algorithms_of_one_name_are_both_compared(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text("from bothworlds import FixedPolicy as Mine\nuniform = Mine()\n")
    files = [f"{tmp_path / name}.py:{part}" for name, part in (("one", "Mine"), ("two", "Mine"), ("one", "uniform"))]
    study = comparison(algorithms=[*files, "uniform"], regimes=["stochastic"], horizon=50)
    assert list(study.algorithms) == ["Mine", "Mine (two.py)", "uniform (one.py)", "uniform"]
    assert study.algorithms["uniform"] == {"kind": "uniform"}
    assert all(isinstance(cell.make_algorithm(), FixedPolicy) for cell in study.cells())
