"""Real data sets with their licence and source, read at run time from other packages; no data is stored here."""

from bothworlds.datasets.cells import Cells, listed_by_category, listed_by_cells
from bothworlds.datasets.purchases import Order, Purchases, ketchup, tuna, yogurt
from bothworlds.datasets.rounds import Rounds
from bothworlds.datasets.shop import zozo
from bothworlds.datasets.stream_sources import STREAMS, read_stream
from bothworlds.datasets.streams import Stream, StreamOrder, in_order

__all__ = [
    "STREAMS",
    "Cells",
    "Order",
    "Purchases",
    "Rounds",
    "Stream",
    "StreamOrder",
    "in_order",
    "ketchup",
    "listed_by_category",
    "listed_by_cells",
    "read_stream",
    "tuna",
    "yogurt",
    "zozo",
]
