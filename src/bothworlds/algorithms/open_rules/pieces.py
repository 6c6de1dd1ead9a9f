"""How many rows are learned between two plans: one at first and after a restart, later more where plans are costly."""

ROW_BY_ROW = 300  # rounds since a restart in which every row gets a plan,
ROWS_PER_PIECE = 64  # then it is made for one row more with every 64 of them,
CHEAP_PLAN = 2e5  # up to as many as a plan has units of this many operations,
LONGEST_PIECE = 16  # and at most this many


def longest_piece(operations: float) -> float:
    """Return the largest number of rows between two plans that take so many operations.

    >>> longest_piece(1e4), longest_piece(1e6), longest_piece(1e9)
    (1.0, 5.0, 16.0)
    """
    return float(min(max(round(operations / CHEAP_PLAN), 1), LONGEST_PIECE))
