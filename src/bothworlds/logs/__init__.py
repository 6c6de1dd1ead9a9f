"""Decisions and rewards as rows: one schema, for files and whatever reads them.

A log is only ever added to. A `Row` is a decision, with all that later analysis and learning need; its reward comes as
a line of its own (`Reward`), and a learner notes where its batches end (`Batch`) and when the law of contexts (`Law`)
or the problem changed (`Change`), for what is learnt depends on that.

`read` and `write` take files of this schema, JSON lines and Parquet; other readers take those of other libraries. All
of them go through a file row by row, and refuse what cannot be relied on in a sentence with the row's number
(`LogError`).
"""

from bothworlds.logs.checking import checked
from bothworlds.logs.coba import from_coba, to_coba
from bothworlds.logs.counting import health
from bothworlds.logs.csv_files import read_csv
from bothworlds.logs.dsjson import read_dsjson, write_dsjson
from bothworlds.logs.faults import LogError
from bothworlds.logs.files import Log
from bothworlds.logs.json_lines import read_jsonl, write_jsonl
from bothworlds.logs.learner import Learner
from bothworlds.logs.named import from_records
from bothworlds.logs.obp import from_obp, to_obp
from bothworlds.logs.open_bandit import read_open_bandit, write_open_bandit
from bothworlds.logs.parquet import read_parquet, write_parquet
from bothworlds.logs.schema import SCHEMA, Batch, Change, Law, Record, Reward, Row, joined, row_of
from bothworlds.logs.suffixes import read, write

__all__ = [
    "SCHEMA",
    "Batch",
    "Change",
    "Law",
    "Learner",
    "Log",
    "LogError",
    "Record",
    "Reward",
    "Row",
    "checked",
    "from_coba",
    "from_obp",
    "from_records",
    "health",
    "joined",
    "read",
    "read_csv",
    "read_dsjson",
    "read_jsonl",
    "read_open_bandit",
    "read_parquet",
    "row_of",
    "to_coba",
    "to_obp",
    "write",
    "write_dsjson",
    "write_jsonl",
    "write_open_bandit",
    "write_parquet",
]
