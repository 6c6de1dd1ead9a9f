"""Compiling makes machine code for entries only, changes no bit, and leaves numba as it was."""

import gc
from typing import Any

import numba
import pytest
from numba.core import codegen, cpu

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


def test_with_another_numba_everything_is_compiled_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(lean.REPLACED, "a_method_that_is_gone", (cpu.CPUContext, lean._unless_text))
    before = cpu.CPUContext.get_executable
    with entries_only():
        assert cpu.CPUContext.get_executable is before
