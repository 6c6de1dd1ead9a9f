"""First calls are interpreted while machine code is made: never something else, and not for long."""

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

from bothworlds.kernels.jit import prompt
from bothworlds.kernels.jit.prompt import Prompt, patient, settled

WAIT = 60.0


class Machine:
    """Stands for numba's dispatcher: its compiler finishes when it is told to."""

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
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.delenv("BOTHWORLDS_PROMPT")
    made = Machine(tmp_path)
    yield made
    made.may_end.set()
    prompt.finish()


def interpreted(value: float) -> int:
    return int(1.0 / value)


def test_the_text_is_interpreted_until_there_is_machine_code(machine: Machine) -> None:
    call = Prompt(interpreted, machine)
    assert [call(1.0), call(1.0)] == [1, 1]
    assert settled(call) is call
    machine.may_end.set()
    prompt.finish()
    assert call(1.0) == 2
    assert machine.kinds == (float,)
    assert settled(call) is machine


def test_whoever_has_spent_the_time_waits(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt, "MEANWHILE", 1e-9)
    call = Prompt(interpreted, machine)
    assert call(1.0) == 1
    threading.Timer(0.05, machine.may_end.set).start()
    assert call(1.0) == 2


def test_whoever_is_patient_waits_too(machine: Machine) -> None:
    call = Prompt(interpreted, machine)
    assert call(1.0) == 1
    threading.Timer(0.05, machine.may_end.set).start()
    with patient():
        assert call(1.0) == 2


def test_a_patient_first_call_compiles_where_it_is_made(machine: Machine) -> None:
    with patient():
        assert Prompt(interpreted, machine)(1.0) == 2
    assert not prompt._working


def test_machine_code_on_disk_is_loaded_where_the_call_is_made(machine: Machine) -> None:
    machine._index_path.touch()
    assert Prompt(interpreted, machine)(1.0) == 2
    assert not prompt._working


def test_the_switch_always_waits(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOTHWORLDS_PROMPT", "no")
    assert Prompt(interpreted, machine)(1.0) == 2


def test_what_the_interpreter_cannot_compute_goes_to_the_processor(machine: Machine) -> None:
    assert Prompt(interpreted, machine)(0.0) == 2
    assert Prompt(lambda value: int(math.sqrt(value)), machine)(-1.0) == 2


def test_what_was_begun_is_taken_back_before_the_processor_begins(machine: Machine) -> None:
    """A step of a batch adds to a memory: half of it, and then all of it, would be too much."""

    def half_done(memory: Any) -> int:
        memory += 1.0
        return int(1.0 / 0.0)

    memory = np.zeros(3)
    assert Prompt(half_done, machine)(memory) == 2
    assert memory.tolist() == [0.0, 0.0, 0.0]


def test_numbers_that_are_not_finite_are_no_reason_to_warn(machine: Machine) -> None:
    call = Prompt(lambda value: int(np.isinf(np.float64(1.0) / np.float64(value))), machine)
    assert call(0.0) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_process_that_forks_lets_compilers_finish(machine: Machine) -> None:
    call = Prompt(interpreted, machine)
    assert call(1.0) == 1
    threading.Timer(0.05, machine.may_end.set).start()
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
    said = []
    for changed in ({"BOTHWORLDS_CACHE_DIR": str(tmp_path), "BOTHWORLDS_PROMPT": "yes"}, {}):
        done = subprocess.run(
            [sys.executable, "-c", POLICY], capture_output=True, text=True, check=True, env={**os.environ, **changed}
        )
        said.append(done.stdout.split())
    assert [compiling for compiling, _ in said] == ["True", "False"]
    assert said[0][1] == said[1][1]
