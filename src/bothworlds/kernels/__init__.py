"""The mathematics of a round as kernel text, and the contract between an algorithm and everything that plays it.

What the author of an algorithm needs can be imported from here: the words that declare memory (`learnt`, `planned`,
...), the records that functions take (`Known`, `Draw`, `Play`), arithmetic that works on one number or on many at once,
the steps that algorithms share, and `kernel_text` and `Machine`, which put it together: docs/own-algorithm.md.
"""

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
from bothworlds.kernels.arrays import Floats
from bothworlds.kernels.contract import (
    Beliefs,
    Draw,
    Earlier,
    KernelText,
    Known,
    Machine,
    Play,
    even_play,
    kernel_text,
    known_of,
)
from bothworlds.kernels.jit.compile import kernel
from bothworlds.kernels.layout import carries, given, learnt, planned, recalled, scratch
from bothworlds.kernels.plan import choose_only, draw_arm
from bothworlds.kernels.status import NOT_FINITE, NOT_POSITIVE, OK

__all__ = [
    "NOT_FINITE",
    "NOT_POSITIVE",
    "OK",
    "Beliefs",
    "Draw",
    "Earlier",
    "Floats",
    "KernelText",
    "Known",
    "Machine",
    "Number",
    "Place",
    "Play",
    "absolute",
    "add_at",
    "at",
    "both",
    "carries",
    "choose_only",
    "draw_arm",
    "either",
    "even_play",
    "every",
    "exponential",
    "feature",
    "given",
    "kernel",
    "kernel_text",
    "known_of",
    "larger",
    "learnt",
    "logarithm",
    "over_contexts",
    "planned",
    "recalled",
    "root",
    "scratch",
    "smaller",
    "where",
]
