"""Logs of decisions and rewards in one schema, and readers and writers of other formats.

A log is append-only. A `Row` is a decision with everything that learning and analysis need; its reward has its own
line (`Reward`). A learner records the ends of its batches (`Batch`) and changes of the context distribution
(`ContextDistribution`) or the problem (`Change`), because what it learns depends on them.

`read` and `write` handle files of this schema, JSON lines and Parquet; other readers handle the formats of other
libraries. All of them stream a file row by row and refuse inconsistent rows with the row's number (`LogError`).
"""

from bothworlds.logs.column_mapping import from_records
from bothworlds.logs.files import Log, read, write
from bothworlds.logs.formats.coba import from_coba, to_coba
from bothworlds.logs.formats.csv_files import read_csv
from bothworlds.logs.formats.dsjson import read_dsjson, write_dsjson
from bothworlds.logs.formats.obp import from_obp, to_obp
from bothworlds.logs.formats.open_bandit import read_open_bandit, write_open_bandit
from bothworlds.logs.formats.parquet import read_parquet, write_parquet
from bothworlds.logs.json_lines import read_jsonl, write_jsonl
from bothworlds.logs.log_health import health
from bothworlds.logs.log_learner import LogLearner
from bothworlds.logs.schema import SCHEMA, Batch, Change, ContextDistribution, Record, Reward, Row, joined, row_of
from bothworlds.logs.validation import LogError, checked

__all__ = [
    "SCHEMA",
    "Batch",
    "Change",
    "ContextDistribution",
    "Log",
    "LogError",
    "LogLearner",
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
