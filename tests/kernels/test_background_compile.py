"""First calls are interpreted while a thread compiles: with the same results, and not for long."""

import math
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bothworlds.kernels.jit import background_compile
from bothworlds.kernels.jit.background_compile import BackgroundCompiled, wait_for_compile, without_detour

WAIT = 60.0


class Dispatcher:
    """Replaces numba's dispatcher; its compiler finishes when ``may_end`` is set."""

    def __init__(self, folder: Path) -> None:
        self.may_end = threading.Event()
        self.kinds: tuple[type, ...] = ()
        self._cache: Any = self
        self._cache_file: Any = self
        self._index_path = folder / "index"

    def typeof_pyval(self, value: object) -> type:
        return type(value)

    def compile(self, kinds: tuple[type, ...]) -> None:
        assert self.may_end.wait(WAIT)
        self.kinds = kinds

    def __call__(self, value: Any) -> int:
        return 2


@pytest.fixture
def dispatcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dispatcher]:
    monkeypatch.delenv("BOTHWORLDS_BACKGROUND_COMPILE")
    dispatcher = Dispatcher(tmp_path)
    yield dispatcher
    dispatcher.may_end.set()
    background_compile.join_compilers()


def interpreted(value: float) -> int:
    return int(1.0 / value)


def test_calls_are_interpreted_until_there_is_machine_code(dispatcher: Dispatcher) -> None:
    call = BackgroundCompiled(interpreted, dispatcher)
    assert [call(1.0), call(1.0)] == [1, 1]
    assert without_detour(call) is call
    dispatcher.may_end.set()
    background_compile.join_compilers()
    assert call(1.0) == 2
    assert dispatcher.kinds == (float,)
    assert without_detour(call) is dispatcher


def test_a_call_waits_after_the_time_for_interpreting(dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_compile, "INTERPRETED_SECONDS", 1e-9)
    call = BackgroundCompiled(interpreted, dispatcher)
    assert call(1.0) == 1
    threading.Timer(0.05, dispatcher.may_end.set).start()
    assert call(1.0) == 2


def test_a_call_waits_inside_wait_for_compile(dispatcher: Dispatcher) -> None:
    call = BackgroundCompiled(interpreted, dispatcher)
    assert call(1.0) == 1
    threading.Timer(0.05, dispatcher.may_end.set).start()
    with wait_for_compile():
        assert call(1.0) == 2


def test_a_first_call_that_waits_starts_no_thread(dispatcher: Dispatcher) -> None:
    with wait_for_compile():
        assert BackgroundCompiled(interpreted, dispatcher)(1.0) == 2
    assert not background_compile._compilers


def test_machine_code_on_disk_is_loaded_without_a_thread(dispatcher: Dispatcher) -> None:
    dispatcher._index_path.touch()
    assert BackgroundCompiled(interpreted, dispatcher)(1.0) == 2
    assert not background_compile._compilers


def test_the_switch_always_waits(dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOTHWORLDS_BACKGROUND_COMPILE", "no")
    assert BackgroundCompiled(interpreted, dispatcher)(1.0) == 2


def test_machine_code_runs_where_python_raises(dispatcher: Dispatcher) -> None:
    assert BackgroundCompiled(interpreted, dispatcher)(0.0) == 2
    assert BackgroundCompiled(lambda value: int(math.sqrt(value)), dispatcher)(-1.0) == 2


def test_arrays_are_restored_before_machine_code_runs_instead(dispatcher: Dispatcher) -> None:
    """An interpreted call that raises may have changed its arrays already."""

    def half_done(memory: Any) -> int:
        memory += 1.0
        return int(1.0 / 0.0)

    memory = np.zeros(3)
    assert BackgroundCompiled(half_done, dispatcher)(memory) == 2
    assert memory.tolist() == [0.0, 0.0, 0.0]


def test_numbers_that_are_not_finite_cause_no_warning(dispatcher: Dispatcher) -> None:
    call = BackgroundCompiled(lambda value: int(np.isinf(np.float64(1.0) / np.float64(value))), dispatcher)
    assert call(0.0) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_fork_waits_for_compilers(dispatcher: Dispatcher) -> None:
    call = BackgroundCompiled(interpreted, dispatcher)
    assert call(1.0) == 1
    threading.Timer(0.05, dispatcher.may_end.set).start()
    child = os.fork()
    if child == 0:
        os._exit(call(1.0))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


POLICY = """
import threading
import numpy as np, bothworlds as bw
problem = bw.Problem(features=np.random.default_rng(0).normal(size=(3, 3, 2)), probabilities=[0.5, 0.3, 0.2])
policy = bw.LinUCB().start(problem, rng=7)
compiling = any(thread.name == "bothworlds-compiler" for thread in threading.enumerate())
for i in range(30):
    policy.update(policy.act(i % 3), loss=0.5 - i % 2)
print(compiling, policy.digest)
"""


def test_a_policy_on_a_new_machine_learns_the_same_bits(tmp_path: Path) -> None:
    outputs = []
    for changed in ({"BOTHWORLDS_CACHE_DIR": str(tmp_path), "BOTHWORLDS_BACKGROUND_COMPILE": "yes"}, {}):
        done = subprocess.run(
            [sys.executable, "-c", POLICY], capture_output=True, text=True, check=True, env={**os.environ, **changed}
        )
        outputs.append(done.stdout.split())
    assert [compiling for compiling, _ in outputs] == ["True", "False"]
    assert outputs[0][1] == outputs[1][1]
