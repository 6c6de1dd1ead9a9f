"""Building blocks for kernels of algorithms: functions on records, run interpreted, compiled, in lanes or on a GPU.

The module exports declarations of memory (`learnt`, `planned`, `scratch`, ...), the records that kernels take (`Known`,
`Draw`, `Play`), arithmetic on one number or many at once, linear algebra on small matrices (`product`, `cholesky`,
`solve`), ridge regression (`add_to_ridge`, `ridge_estimate`), and `build_kernel` and `Machine`, which assemble an
algorithm. The tutorial is docs/tutorials/own-algorithm.md.
"""

from bothworlds.arrays import Floats
from bothworlds.kernels.arithmetic import (
    Number,
    Place,
    absolute,
    add_at,
    at,
    both,
    either,
    every,
    exponential,
    feature,
    larger,
    logarithm,
    over_contexts,
    root,
    smaller,
    where,
)
from bothworlds.kernels.contract import (
    Beliefs,
    Draw,
    Earlier,
    Kernel,
    Known,
    Machine,
    Play,
    build_kernel,
    even_play,
    known_of,
)
from bothworlds.kernels.exact_ftrl import choose_only, draw_arm
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import carries, given, learnt, planned, recalled, scratch
from bothworlds.kernels.least_squares import add_to_ridge, ridge_estimate
from bothworlds.kernels.linalg import cholesky, product, solve
from bothworlds.kernels.status import NOT_FINITE, NOT_POSITIVE, OK

__all__ = [
    "NOT_FINITE",
    "NOT_POSITIVE",
    "OK",
    "Beliefs",
    "Draw",
    "Earlier",
    "Floats",
    "Kernel",
    "Known",
    "Machine",
    "Number",
    "Place",
    "Play",
    "absolute",
    "add_at",
    "add_to_ridge",
    "at",
    "both",
    "build_kernel",
    "carries",
    "cholesky",
    "choose_only",
    "draw_arm",
    "either",
    "even_play",
    "every",
    "exponential",
    "feature",
    "given",
    "kernel",
    "known_of",
    "larger",
    "learnt",
    "logarithm",
    "over_contexts",
    "planned",
    "product",
    "recalled",
    "ridge_estimate",
    "root",
    "scratch",
    "smaller",
    "solve",
    "where",
]
