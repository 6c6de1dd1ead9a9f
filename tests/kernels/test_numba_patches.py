"""Patched compilation generates machine code for entry points only, changes no bit, and restores numba afterwards."""

import gc
import platform
from typing import Any

import llvmlite.binding as llvm
import numba
import pytest
from numba.core import codegen, cpu

from bothworlds.kernels.jit import numba_patches
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.jit.numba_patches import INLINED, REPLACED, entries_only

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


def test_no_bit_changes_and_inlined_functions_have_no_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    inlined = []
    plain: Any = vars(codegen.CPUCodeLibrary)["_finalize_final_module"]

    def record(self: object) -> None:
        inlined.append(getattr(self, INLINED, False))
        plain(self)

    monkeypatch.setattr(codegen.CPUCodeLibrary, "_finalize_final_module", record)
    with entries_only():
        machine_code = compiled(entry)
        assert machine_code(1000) == entry(1000)
    assert inlined  # the entry point was finalized
    assert not any(inlined)  # and no inlined function was


def test_functions_compiled_with_patches_are_used_by_others_later() -> None:
    with entries_only():
        first = compiled(entry)
        first(10)

    def other(n: int) -> float:
        return twice(n) * harmonic(n)

    later = compiled(other)
    assert later(77) == other(77)


def test_numba_is_restored() -> None:
    before = {name: vars(owner)[name] for name, (owner, _) in REPLACED.items()}
    assert gc.isenabled()
    with pytest.raises(AssertionError), entries_only():
        assert gc.isenabled()
    assert gc.isenabled()
    assert before == {name: vars(owner)[name] for name, (owner, _) in REPLACED.items()}


def test_loop_strength_reduction_is_switched_on_again(monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[str] = []
    monkeypatch.setattr(llvm, "set_option", lambda program, option: options.append(option))
    monkeypatch.setattr(numba_patches, "KNOWN_LLVM", (0,))
    with pytest.raises(AssertionError), entries_only():
        assert options == []
    assert options == ["-disable-lsr=true", "-disable-lsr=false"]
    monkeypatch.setattr(numba_patches, "KNOWN_LLVM", (10**6,))  # its options cannot be reset
    with entries_only():
        assert len(options) == 2


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
def test_loops_are_not_unrolled_where_that_was_measured(
    machine: str, kind: numba_patches.Kind, rolled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: list[str] = []
    monkeypatch.setattr(llvm, "set_option", lambda program, option: options.append(option))
    monkeypatch.setattr(numba_patches, "KNOWN_LLVM", (0,))
    monkeypatch.setattr(platform, "machine", lambda: machine)
    with entries_only(kind):
        assert options == ["-disable-lsr=true"]
        assert llvm.create_pipeline_tuning_options(speed_level=3).loop_unrolling is not rolled
    assert llvm.create_pipeline_tuning_options(speed_level=3).loop_unrolling


def test_with_another_numba_everything_is_compiled_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(numba_patches.REPLACED, "a_missing_method", (cpu.CPUContext, numba_patches._unless_inlined))
    before = cpu.CPUContext.get_executable
    with entries_only():
        assert cpu.CPUContext.get_executable is before
