"""PostgreSQL servers for tests: one per worker, with a schema per test, and servers that are killed."""

import atexit
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path

import psycopg
import pytest

USER = "nobody"  # the server refuses to run as root
QUICK = ("fsync=off", "full_page_writes=off", "max_wal_size=256MB")
START_SECONDS = 120  # on a busy machine


def folder_of_programs() -> Path | None:
    """Return the folder with initdb and postgres, None if there is no server on this machine."""
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda name: int(name.split("/")[-2]))
    found = shutil.which("initdb")
    folders += [str(Path(found).parent)] if found else []
    usable = bool(folders) and (os.getuid() != 0 or shutil.which("setpriv") is not None)
    return Path(folders[-1]) if usable else None


needs_postgres = pytest.mark.skipif(folder_of_programs() is None, reason="no PostgreSQL server is installed")


class PostgresServer:
    """A server in a temporary folder, which is reached by a socket there; it may be stopped and started again.

    ``mount`` may mount a disk at the folder before anything is in it.
    """

    def __init__(self, *options: str, mount: Callable[[Path], None] = lambda _: None) -> None:
        programs = folder_of_programs()
        if programs is None:
            pytest.skip("no PostgreSQL server is installed")
        self.folder = Path(tempfile.mkdtemp(prefix="bothworlds-pg-", dir="/tmp"))  # sockets need a short path
        mount(self.folder)
        self._programs, self._options = programs, options
        self._as_user: list[str] = []
        if os.getuid() == 0:
            shutil.chown(self.folder, USER)
            self._as_user = ["setpriv", f"--reuid={USER}", "--regid=nogroup", "--clear-groups"]
        initdb: list[str | Path] = [
            programs / "initdb",
            "-D",
            self.folder / "data",
            "-U",
            "service",
            "-A",
            "trust",
            "--no-sync",
        ]
        self._run(*initdb, "-E", "UTF8", "--locale=C")
        self.process: subprocess.Popen[bytes] | None = None
        atexit.register(self.remove)
        self.start()

    @property
    def dsn(self) -> str:
        """The address of the database."""
        return f"postgresql://service@/postgres?host={self.folder}"

    @property
    def socket(self) -> Path:
        """The socket on which the server listens."""
        return self.folder / ".s.PGSQL.5432"

    def _run(self, *command: str | Path) -> None:
        subprocess.run([*self._as_user, *command], check=True, stdout=subprocess.DEVNULL, cwd="/")

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = [part for option in self._options for part in ("-c", option)]
        command: list[str | Path] = [
            self._programs / "postgres",
            "-D",
            self.folder / "data",
            "-k",
            self.folder,
            "-h",
            "",
            *options,
        ]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([*self._as_user, *command], stdout=log, stderr=log, cwd="/")
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.dsn, connect_timeout=2).close()
            except psycopg.OperationalError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < end, "the server does not start"
                time.sleep(0.02)
            else:
                return

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT ends all sessions, SIGQUIT ends at once, as a crash would."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(START_SECONDS)
            self.process = None

    def remove(self) -> None:
        """Stop the server and remove its folder."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def schema(self) -> str:
        """Create an empty schema, and return the DSN with which it is the current one."""
        name = f"t{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{self.dsn}&options=-csearch_path%3D{name}"


@cache
def shared_server() -> PostgresServer:
    """Return the server of this worker."""
    return PostgresServer(*QUICK)


def schema_for(folder: Path) -> str:
    """Return the DSN of a schema that belongs to a folder of a test; the same folder gets the same one."""
    file = folder / "dsn"
    if not file.is_file():
        file.write_text(shared_server().schema())
    return file.read_text()
