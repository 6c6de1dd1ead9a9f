"""What can go wrong inside a kernel, as the number it returns; errors.py turns it into a sentence."""

OK = 0
NOT_FINITE = 1
NOT_CONVERGED = 2
NOT_POSITIVE = 3
TRACE_BROKEN = 4
DAMAGED = 5
