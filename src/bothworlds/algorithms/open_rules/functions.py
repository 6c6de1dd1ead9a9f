"""The compiled functions of a rule for open problems, and scratch space of its decisions."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.errors import NumericalError
from bothworlds.kernels.jit.compile import compiled
from bothworlds.kernels.status import OK, sentence
from bothworlds.open_contexts.rule_contract import Choices, PlanArrays


class Functions(NamedTuple):
    """``learn`` changes a state in place, ``decide`` reads a plan; both return a status."""

    learn: Callable[..., int]
    decide: Callable[..., int]

    def choices(self, plan: PlanArrays, z: Floats, offered: Floats, keys: Ints, times: Ints) -> Choices:
        """Decide for requests (n, rows, p), offers (n, candidates), keys and times of their draws."""
        n, candidates = offered.shape
        out = Choices(np.zeros(n, dtype=np.int64), np.zeros((n, candidates)), np.zeros((n, z.shape[2])))
        status = self.decide(plan, z, offered, keys, times, np.zeros(candidates), np.zeros(z.shape[2]), out)
        if status != OK:
            raise NumericalError(f"{sentence(status)}: no decision was made. Are features far larger than usual?")
        return out


@cache
def _compiled(learn: Callable[..., int], decide: Callable[..., int]) -> Functions:
    return Functions(compiled(learn), compiled(decide))


def functions_of(learn: Callable[..., int], decide: Callable[..., int], *, interpreted: bool) -> Functions:
    """Return the functions of a rule, interpreted or compiled on their first call."""
    return Functions(_interpreted(learn), _interpreted(decide)) if interpreted else _compiled(learn, decide)


def _interpreted(function: Callable[..., int]) -> Callable[..., int]:
    """Return a function without warnings of NumPy, since machine code gives none."""

    def run(*arguments: Any) -> int:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return run
