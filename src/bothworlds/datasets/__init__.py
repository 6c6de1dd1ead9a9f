"""Real data, read at run time from packages that carry them, with their licence and source; none is copied here."""

from bothworlds.datasets.purchases import Order, Purchases, ketchup, tuna, yogurt
from bothworlds.datasets.rounds import Rounds
from bothworlds.datasets.shop import zozo

__all__ = ["Order", "Purchases", "Rounds", "ketchup", "tuna", "yogurt", "zozo"]
