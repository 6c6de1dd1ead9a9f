"""Every algorithm and tuning computes what it always did: interpreted, alone, in lanes, as a policy, after loading."""

import json
from pathlib import Path

import pytest

from support.golden_values import CASES, FILE, as_policy, comparable, simulated, world
from support.soak import WHOLE

GOLDEN = json.loads(FILE.read_text())
pytestmark = [
    pytest.mark.soak,
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.skipif(not comparable(), reason="another C library, with other last bits"),
]


compiles = pytest.mark.skipif(not WHOLE, reason="compiling every learner takes minutes: `make soak` does")


@compiles
@pytest.mark.parametrize("name", CASES)
def test_simulations_leave_the_golden_values(name: str) -> None:
    expected = GOLDEN["cases"][name]["simulated"]
    assert simulated(CASES[name], "alone") == expected
    assert simulated(CASES[name], "interpreted") == expected[:1]
    if CASES[name].machine(world().problem).kernel.wide:
        assert simulated(CASES[name], "lanes") == expected


@pytest.mark.parametrize(
    "interpreted", [pytest.param(False, marks=compiles, id="compiled"), pytest.param(True, id="interpreted")]
)
@pytest.mark.parametrize("name", CASES)
def test_policies_reach_the_golden_values(name: str, interpreted: bool, tmp_path: Path) -> None:
    assert as_policy(CASES[name], tmp_path, interpreted=interpreted) == GOLDEN["cases"][name]["policy"]
