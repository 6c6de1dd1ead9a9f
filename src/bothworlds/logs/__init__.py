"""Decisions and rewards as rows: one schema, for files and whatever reads them.

A log is only ever added to. A `Row` is a decision, with all that later analysis and learning need; its reward comes as
a line of its own (`Reward`), and a learner notes where its batches end (`Batch`) and when the law of contexts changed
(`Law`), for what is learnt depends on that.
"""

from bothworlds.logs.counting import health
from bothworlds.logs.files import Log
from bothworlds.logs.learner import Learner
from bothworlds.logs.schema import SCHEMA, Batch, Law, Record, Reward, Row, joined, row_of

__all__ = ["SCHEMA", "Batch", "Law", "Learner", "Log", "Record", "Reward", "Row", "health", "joined", "row_of"]
