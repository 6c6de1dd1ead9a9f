"""Tables and functions of a store in PostgreSQL, and their migrations.

Every commit of records is one call of ``append`` or ``publish``, sent in one message: no host can hold a lock across
its network or while it is paused. ``append`` takes the next sequence numbers from the single row of ``position``, whose
lock is released after the commit is durable. The order of sequence numbers is therefore the order of commits, without
gaps, and whoever has read up to a sequence number has missed nothing before it.

A learner passes the ``epoch`` of its term. The call fails with SQLSTATE ``BW001`` once another host has begun a term.
"""

from psycopg import Connection

from bothworlds.service.records import FORMAT

TERM_OVER = "BW001"
FIRST = """
CREATE TABLE about (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE experiments (number integer PRIMARY KEY, name text NOT NULL UNIQUE);
CREATE TABLE log (
    seq bigint PRIMARY KEY, experiment integer NOT NULL, kind smallint NOT NULL, id bytea,
    time double precision NOT NULL, flag boolean NOT NULL, body bytea NOT NULL
);
CREATE UNIQUE INDEX log_by_id ON log (id, experiment, kind) WHERE id IS NOT NULL;
CREATE INDEX log_marks ON log (experiment, seq) WHERE id IS NULL;
CREATE TABLE position (last bigint NOT NULL);
INSERT INTO position VALUES (0);
CREATE TABLE notes (name text PRIMARY KEY, value bigint NOT NULL);
CREATE TABLE frames (fingerprint text PRIMARY KEY, content bytea NOT NULL);
CREATE TABLE snapshots (
    experiment integer NOT NULL, version bigint NOT NULL, through bigint NOT NULL,
    digest text NOT NULL, fingerprint text NOT NULL, content bytea NOT NULL, ordered_through bigint NOT NULL,
    time double precision NOT NULL, PRIMARY KEY (experiment, version)
);
CREATE TABLE plans (
    experiment integer PRIMARY KEY, version bigint NOT NULL, fingerprint text NOT NULL, content bytea NOT NULL
);
CREATE TABLE learner (epoch bigint NOT NULL, beat timestamptz NOT NULL);
INSERT INTO learner VALUES (0, '-infinity');

CREATE FUNCTION check_term(term bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM learner WHERE epoch = term FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another host has begun to learn' USING ERRCODE = 'BW001';
    END IF;
END $$;

CREATE FUNCTION append(
    experiments integer[], kinds smallint[], ids bytea[], times double precision[], flags boolean[], bodies bytea[],
    term bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    first bigint;
BEGIN
    IF term IS NOT NULL THEN
        PERFORM check_term(term);
    END IF;
    UPDATE position SET last = last + cardinality(kinds) RETURNING last - cardinality(kinds) + 1 INTO STRICT first;
    INSERT INTO log SELECT first + r.n - 1, r.e, r.k, r.i, r.t, r.f, r.b
        FROM unnest(experiments, kinds, ids, times, flags, bodies) WITH ORDINALITY AS r (e, k, i, t, f, b, n);
    RETURN first;
END $$;

CREATE FUNCTION publish(
    experiments integer[], kinds smallint[], ids bytea[], times double precision[], flags boolean[], bodies bytea[],
    term bigint, saved snapshots[], framed frames[], noted notes[], planned plans[], kept integer, spacing bigint,
    thinned integer[], seconds double precision[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    first bigint := append(experiments, kinds, ids, times, flags, bodies, term);
    one integer;
    apart double precision;
BEGIN
    INSERT INTO notes SELECT * FROM unnest(noted) ON CONFLICT (name) DO UPDATE SET value = excluded.value;
    INSERT INTO frames SELECT * FROM unnest(framed) ON CONFLICT DO NOTHING;
    INSERT INTO snapshots SELECT * FROM unnest(saved)
        ON CONFLICT (experiment, version) DO UPDATE SET through = excluded.through, digest = excluded.digest,
        fingerprint = excluded.fingerprint, content = excluded.content, ordered_through = excluded.ordered_through,
        time = excluded.time;
    FOR one, apart IN SELECT * FROM unnest(thinned, seconds) LOOP
        PERFORM drop_snapshots(one, kept, spacing, apart);
    END LOOP;
    INSERT INTO plans SELECT * FROM unnest(planned)
        ON CONFLICT (experiment) DO UPDATE SET version = excluded.version, fingerprint = excluded.fingerprint,
        content = excluded.content;
    IF cardinality(planned) > 0 THEN
        PERFORM pg_notify(plan_channel(), '');
    END IF;
    RETURN first;
END $$;

CREATE FUNCTION drop_snapshots(one integer, kept integer, spacing bigint, apart double precision)
RETURNS void LANGUAGE sql AS $$
    DELETE FROM snapshots s WHERE s.experiment = one
        AND version NOT IN (SELECT min(version) FROM snapshots WHERE experiment = one GROUP BY fingerprint)
        AND version <> coalesce((SELECT value FROM notes WHERE name = 'sealed ' || one), -1)
        AND version NOT IN (SELECT version FROM snapshots WHERE experiment = one ORDER BY version DESC LIMIT kept)
        AND greatest(through, ordered_through) / spacing IN
            (SELECT greatest(o.through, o.ordered_through) / spacing FROM snapshots o
            WHERE o.experiment = one AND o.version < s.version)
        AND (apart = 0 OR floor(time / nullif(apart, 0)) IN (SELECT floor(o.time / nullif(apart, 0)) FROM snapshots o
            WHERE o.experiment = one AND o.version < s.version))
$$;

CREATE FUNCTION plan_channel() RETURNS text LANGUAGE sql AS $$
    SELECT 'bothworlds_' || md5(current_schema())
$$;
"""
MIGRATIONS = (FIRST,)  # from schema version i to i + 1
START_LOCK = "SELECT pg_advisory_lock(1651995513, hashtext(current_schema()))"
SETUP_LOCK = "SELECT pg_advisory_xact_lock(1651995511, hashtext(current_schema()))"


def is_store(connection: Connection) -> bool:
    """Return whether the current schema of the database has the tables of a store."""
    row = connection.execute("SELECT to_regclass(quote_ident(current_schema()) || '.about')").fetchone()
    return row is not None and row[0] is not None


def migrate(connection: Connection) -> None:
    """Create the tables, or bring them to the current schema version; one host at a time.

    Raises
    ------
    ValueError
        If the store has another format, or a later schema version.
    """
    with connection.transaction():
        connection.execute(SETUP_LOCK)
        version = check_format(connection) if is_store(connection) else 0
        for script in MIGRATIONS[version:]:
            connection.execute(script)
        if version == 0:
            connection.execute("INSERT INTO about VALUES ('format', %s), ('schema', '')", (FORMAT,))
        if version < len(MIGRATIONS):
            connection.execute("UPDATE about SET value = %s WHERE name = 'schema'", (str(len(MIGRATIONS)),))


def check_format(connection: Connection) -> int:
    """Return the schema version of a store; refuse another format and a later version."""
    found: dict[str, str] = dict(
        connection.execute("SELECT name, value FROM about WHERE name IN ('format', 'schema')").fetchall()
    )
    if found.get("format") != FORMAT:
        raise ValueError(
            f"the store in this database has format {found.get('format')!r}, but this version reads {FORMAT!r}; export "
            "the log with the version of the library that wrote it (bothworlds service export), and start a new store"
        )
    version = int(found["schema"])
    if version > len(MIGRATIONS):
        raise ValueError(
            f"the store in this database has schema version {version}, this version of the library knows "
            f"{len(MIGRATIONS)}: update the library on this host"
        )
    return version
