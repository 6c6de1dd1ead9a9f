"""Statements of the store in PostgreSQL, with named parameters."""

from bothworlds.service.records import Kind

COLUMNS = "seq, experiment, kind, id, time, flag, body"
PAGE = 1000  # rows of one statement
FIRST_PAGE = 50  # of those that are often not read to the end


def columns_of(table: str) -> str:
    """Return the columns of a record, of one of several tables in a statement.

    >>> columns_of("d")
    'd.seq, d.experiment, d.kind, d.id, d.time, d.flag, d.body'
    """
    return ", ".join(f"{table}.{column}" for column in COLUMNS.split(", "))


_ROWS = "%(experiments)b::int[], %(kinds)b::smallint[], %(ids)b::bytea[], %(times)b::float8[], %(flags)b::bool[], "
_ROWS += "%(bodies)b::bytea[], %(term)s::bigint"
APPEND = f"SELECT append({_ROWS})"


def _composed(table: str, *types: str) -> str:
    """Return the expression of an array of rows of a table, from one array parameter per column."""
    arrays = ", ".join(f"%({table}{number})b::{kind}[]" for number, kind in enumerate(types))
    letters = ", ".join("abcdefgh"[: len(types)])
    return f"ARRAY(SELECT ROW({letters})::{table} FROM unnest({arrays}) AS one ({letters}))"


SNAPSHOT_TYPES = "int", "bigint", "bigint", "text", "text", "bytea", "bigint", "float8"
PUBLISH = (
    f"SELECT publish({_ROWS}, {_composed('snapshots', *SNAPSHOT_TYPES)}, "
    f"{_composed('frames', 'text', 'bytea')}, {_composed('notes', 'text', 'bigint')}, "
    f"{_composed('plans', 'int', 'bigint', 'text', 'bytea')}, %(kept)s::int, %(spacing)s::bigint, "
    "%(thinned)b::int[], %(seconds)b::float8[])"
)
NEW_EXPERIMENT = "INSERT INTO experiments SELECT coalesce(max(number), 0) + 1, %s FROM experiments"
END = "greatest(through, ordered_through)"  # of a snapshot: the sequence number up to which something is learned
BECAME_ACTIVE = f"({{0}}.kind = {Kind.ACTIVATION:d} OR {{0}}.kind = {Kind.DECISION:d} AND {{0}}.flag)"
UNRECORDED = (  # experiments without a record, that have not erased any
    "SELECT name, number FROM experiments WHERE NOT EXISTS (SELECT 1 FROM log WHERE experiment = number) "
    f"AND NOT EXISTS (SELECT 1 FROM snapshots WHERE experiment = number AND {END} > 0) ORDER BY number"
)
DROP_UNUSED = (
    "DELETE FROM frames WHERE fingerprint IN (SELECT fingerprint FROM snapshots WHERE experiment = %(number)s) "
    "AND fingerprint NOT IN (SELECT fingerprint FROM snapshots WHERE experiment <> %(number)s)",
    "DELETE FROM snapshots WHERE experiment = %(number)s",
    "DELETE FROM plans WHERE experiment = %(number)s",
    "DELETE FROM experiments WHERE number = %(number)s",
)
ERASE_RECORDS = (
    "DELETE FROM log WHERE experiment = %(experiment)s AND id IN (SELECT id FROM log l "
    "WHERE experiment = %(experiment)s AND seq > %(after)s AND seq <= %(end)s AND "
    f"(kind IN ({Kind.REWARD:d}, {Kind.UNANSWERED:d}) AND seq <= %(through)s "
    f"OR {BECAME_ACTIVE.format('l')} AND seq <= %(ordered_through)s))"
)
ERASE_SNAPSHOTS = (
    "DELETE FROM snapshots WHERE experiment = %(experiment)s AND version < %(version)s "
    "AND version <> (SELECT min(version) FROM snapshots WHERE experiment = %(experiment)s)"
)
SET_NOTE = "INSERT INTO notes VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
FIND = f"SELECT {COLUMNS} FROM log WHERE experiment = %(experiment)s AND id = ANY(%(ids)b::bytea[])"
NEWEST = (
    f"SELECT {COLUMNS} FROM log WHERE seq > %(after)s AND experiment = %(experiment)s AND kind = %(kind)s "
    "ORDER BY seq DESC LIMIT %(most)s"
)
COUNTS = (
    "SELECT kind, flag, count(*) FROM log WHERE experiment = %(experiment)s AND seq > %(after)s AND seq <= %(through)s "
    "AND id IS NOT NULL "
    "GROUP BY kind, flag"
)
LAST = "SELECT coalesce(max(seq), 0) FROM log"
PAGE_END = f"ORDER BY {{}}.seq LIMIT {PAGE}"
READ = f"SELECT {COLUMNS} FROM log l WHERE seq > %(after)s AND seq <= %(through)s {PAGE_END.format('l')}"
BLOCKS = (
    "SELECT seq, kind, id, body FROM log l WHERE seq > %(after)s AND seq <= %(through)s "
    f"AND experiment = %(experiment)s {PAGE_END.format('l')}"
)
MARKS = (
    f"SELECT {COLUMNS} FROM log l WHERE id IS NULL AND experiment = %(experiment)s AND seq > %(after)s "
    f"{PAGE_END.format('l')}"
)
REWARDS = (
    f"SELECT {columns_of('r')}, {columns_of('d')} FROM log r JOIN log d ON d.experiment = r.experiment AND d.id = r.id "
    f"AND d.kind = {Kind.DECISION:d} WHERE r.seq > %(after)s AND r.seq <= %(through)s AND r.kind = {Kind.REWARD:d} "
    "AND r.experiment = %(experiment)s AND (%(active_after)s = 0 OR NOT EXISTS (SELECT 1 FROM log a "
    f"WHERE a.experiment = r.experiment AND a.id = r.id AND {BECAME_ACTIVE.format('a')} "
    f"AND a.seq <= %(active_after)s)) {PAGE_END.format('r')}"
)
TURNS = (
    "SELECT a.seq, a.id, d.body, r.seq, r.body, r.seq IS NULL AND EXISTS (SELECT 1 FROM log u "
    f"WHERE u.experiment = a.experiment AND u.id = a.id AND u.kind = {Kind.UNANSWERED:d}) FROM log a "
    f"JOIN log d ON d.experiment = a.experiment AND d.id = a.id AND d.kind = {Kind.DECISION:d} "
    f"LEFT JOIN log r ON r.experiment = a.experiment AND r.id = a.id AND r.kind = {Kind.REWARD:d} "
    "WHERE a.seq > %(after)s AND a.seq <= %(through)s AND a.experiment = %(experiment)s "
    f"AND {BECAME_ACTIVE.format('a')} ORDER BY a.seq LIMIT %(most)s"
)
TIMES = "SELECT seq, time FROM log WHERE seq > %(after)s ORDER BY seq LIMIT %(most)s"
OVERDUE = (
    "SELECT l.id FROM log l WHERE l.seq > %(after)s AND l.seq <= %(through)s AND l.experiment = %(experiment)s "
    f"AND {BECAME_ACTIVE.format('l')} AND NOT EXISTS (SELECT 1 FROM log r "
    f"WHERE r.experiment = l.experiment AND r.id = l.id AND r.kind IN ({Kind.REWARD:d}, {Kind.UNANSWERED:d})) "
    "ORDER BY l.seq"
)
HISTORY = (
    f"SELECT {columns_of('d')}, {columns_of('r')}, {columns_of('l')} FROM log d "
    f"LEFT JOIN log r ON r.experiment = d.experiment AND r.id = d.id AND r.kind = {Kind.REWARD:d} "
    f"LEFT JOIN log l ON l.experiment = d.experiment AND l.id = d.id AND l.kind = {Kind.LATE:d} "
    f"WHERE d.seq > %(after)s AND d.kind = {Kind.DECISION:d} AND d.experiment = %(experiment)s AND (d.flag OR EXISTS "
    f"(SELECT 1 FROM log a WHERE a.experiment = d.experiment AND a.id = d.id AND a.kind = {Kind.ACTIVATION:d})) "
    f"{PAGE_END.format('d')}"
)
OUTCOMES = (
    "SELECT a.seq, a.time, d.time, d.body, r.time, r.body FROM log a "
    f"JOIN log d ON d.experiment = a.experiment AND d.id = a.id AND d.kind = {Kind.DECISION:d} "
    f"LEFT JOIN log r ON r.experiment = a.experiment AND r.id = a.id AND r.kind = {Kind.REWARD:d} "
    "WHERE a.seq > %(after)s AND a.seq <= %(through)s AND a.experiment = %(experiment)s "
    f"AND {BECAME_ACTIVE.format('a')} {PAGE_END.format('a')}"
)
SNAPSHOTS = (
    "SELECT experiment, version, through, digest, fingerprint, ''::bytea, ordered_through, time FROM snapshots "
    "WHERE experiment = %s ORDER BY version DESC"
)
CONTENT = "SELECT content FROM snapshots WHERE experiment = %s AND version = %s"
FRAME = "SELECT content FROM frames WHERE fingerprint = %s"
NOTE = "SELECT value FROM notes WHERE name = %s"
NEWER_PLANS = (
    "SELECT p.experiment, p.fingerprint, p.content FROM plans p JOIN unnest(%b::int[], %b::bigint[]) AS known (n, v) "
    "ON p.experiment = known.n AND p.version > known.v"
)
TABLES = ("log", "snapshots", "frames", "plans", "notes")
SPACE = " UNION ALL ".join(f"SELECT '{table}', pg_total_relation_size('{table}')" for table in TABLES)
SET_POSITION = (  # newest sequence number ever used, as far as known; its record may have been erased
    "UPDATE position SET last = greatest((SELECT max(seq) FROM log), "
    f"(SELECT max({END}) FROM snapshots), "
    "(SELECT max(value) FROM notes WHERE name LIKE 'expired %'), 0)"
)
