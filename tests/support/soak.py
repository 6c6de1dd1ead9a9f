"""How long the long tests last: in short, or as a whole (`make soak`)."""

import os

WHOLE = os.environ.get("BOTHWORLDS_SOAK") == "whole"


def size(short: int, whole: int) -> int:
    """Return how often, or how large: the first in continuous integration, the second in `make soak`."""
    return whole if WHOLE else short
