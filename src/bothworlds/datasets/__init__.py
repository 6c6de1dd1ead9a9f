"""Real data sets with their licence and source, read at run time from other packages; no data is stored here."""

from bothworlds.datasets.purchases import Order, Purchases, ketchup, tuna, yogurt
from bothworlds.datasets.rounds import Rounds
from bothworlds.datasets.shop import zozo

__all__ = ["Order", "Purchases", "Rounds", "ketchup", "tuna", "yogurt", "zozo"]
