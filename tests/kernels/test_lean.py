"""Compiling makes machine code for entries only, changes no bit, and leaves numba as it was."""

import gc
import platform
from typing import Any

import llvmlite.binding as llvm
import numba
import pytest
from numba.core import codegen, cpu, event
from numba.core.types import functions

from bothworlds.kernels.jit import lean
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.jit.lean import REPLACED, TEXT, entries_only

compiled: Any = numba.njit(error_model="numpy", _nrt=False)  # type: ignore[call-overload]


@kernel
def harmonic(n: int) -> float:
    total = 0.0
    for i in range(1, n + 1):
        total += 1.0 / i
    return total


@kernel
def twice(n: int) -> float:
    return harmonic(n) + harmonic(n + 1)


def entry(n: int) -> float:
    return twice(n) / 3.0


def test_no_bit_changes_and_pieces_have_no_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []
    plain: Any = vars(codegen.CPUCodeLibrary)["_finalize_final_module"]

    def noting(self: object) -> None:
        ended.append(getattr(self, TEXT, False))
        plain(self)

    monkeypatch.setattr(codegen.CPUCodeLibrary, "_finalize_final_module", noting)
    with entries_only():
        made = compiled(entry)
        assert made(1000) == entry(1000)
    assert ended  # the entry itself went to the machine
    assert not any(ended)  # and no piece did


def test_text_that_was_compiled_so_serves_others_later() -> None:
    with entries_only():
        first = compiled(entry)
        first(10)

    def other(n: int) -> float:
        return twice(n) * harmonic(n)

    later = compiled(other)
    assert later(77) == other(77)


def test_numba_is_left_as_it_was() -> None:
    before = {name: vars(owner)[name] for name, (owner, _) in REPLACED.items()}
    assert gc.isenabled()
    with pytest.raises(AssertionError), entries_only():
        assert gc.isenabled()
    assert gc.isenabled()
    assert before == {name: vars(owner)[name] for name, (owner, _) in REPLACED.items()}


def test_a_signature_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    plain: Any = vars(functions.BaseFunction)["get_call_type"]

    def noting(self: Any, context: Any, args: Any, kws: Any) -> Any:
        asked.append((self, args))
        return plain(self, context, args, kws)

    monkeypatch.setattr(functions.BaseFunction, "get_call_type", noting)
    with entries_only():
        compiled(lambda x: x * x + x * x * x)(2.0)
    assert asked
    assert len(asked) == len(set(asked))


def test_passes_are_told_and_locks_are_not() -> None:
    heard = {kind: event.RecordingListener() for kind in ("numba:run_pass", "numba:compiler_lock", "numba:llvm_lock")}
    made = compiled(lambda x: x + 1.0)
    with entries_only():
        for kind, listener in heard.items():
            event.register(kind, listener)
        try:
            made.compile("float64(float64)")
        finally:
            for kind, listener in heard.items():
                event.unregister(kind, listener)
    assert heard["numba:run_pass"].buffer
    assert not heard["numba:compiler_lock"].buffer
    assert not heard["numba:llvm_lock"].buffer


def test_llvm_searches_for_loop_counters_again_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(llvm, "set_option", lambda program, option: said.append(option))
    monkeypatch.setattr(lean, "KNOWN_LLVM", (0,))
    with pytest.raises(AssertionError), entries_only():
        assert said == []
    assert said == ["-disable-lsr=true", "-disable-lsr=false"]
    monkeypatch.setattr(lean, "KNOWN_LLVM", (10**6,))  # whose options cannot be taken back
    with entries_only():
        assert len(said) == 2


@pytest.mark.parametrize(
    ("machine", "kind", "rolled"),
    [
        ("arm64", "call", False),
        ("arm64", "run", False),
        ("x86_64", "call", False),
        ("x86_64", "run", True),
        ("AMD64", "lanes", False),
    ],
)
def test_loops_stay_as_written_where_that_was_measured(
    machine: str, kind: lean.Kind, rolled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(llvm, "set_option", lambda program, option: said.append(option))
    monkeypatch.setattr(lean, "KNOWN_LLVM", (0,))
    monkeypatch.setattr(platform, "machine", lambda: machine)
    with entries_only(kind):
        assert said == ["-disable-lsr=true"]
        assert llvm.create_pipeline_tuning_options(speed_level=3).loop_unrolling is not rolled
    assert llvm.create_pipeline_tuning_options(speed_level=3).loop_unrolling


def test_with_another_numba_everything_is_compiled_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(lean.REPLACED, "a_method_that_is_gone", (cpu.CPUContext, lean._unless_text))
    before = cpu.CPUContext.get_executable
    with entries_only():
        assert cpu.CPUContext.get_executable is before
