"""A network between a host and the database that is really cut: what is sent meanwhile is lost."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bothworlds.service.auth import hash_of
from bothworlds.service.client import Client, Decided, ServiceError
from bothworlds.service.service import Service
from bothworlds.service.verification import verify
from support.namespaces import Network, network
from support.postgres import QUICK, PostgresServer, needs_postgres
from support.service_http import free_port
from support.services import settings, wait_until
from support.soak import size

pytestmark = [pytest.mark.soak, needs_postgres]
CUT_SECONDS = 5.0
SETTINGS = """
host = "{host}"
port = {port}
store = "{dsn}"
[[tokens]]
name = "shop"
sha256 = "{hashed}"
scopes = ["decide", "reward", "admin"]
[experiments.ads]
arms = ["red", "blue", "green"]
contexts = ["mobile", "desktop"]
algorithm = {{kind = "LinUCB"}}
"""


@pytest.fixture
def cut_off() -> Iterator[Network]:
    with network() as made:
        yield made


@pytest.fixture
def server(cut_off: Network) -> Iterator[PostgresServer]:
    made = PostgresServer(*QUICK, f"listen_addresses={cut_off.database}")
    try:
        made.stop()
        with (made.folder / "data" / "pg_hba.conf").open("a") as file:
            file.write("host all all 10.213.0.0/16 trust\n")
        made.start()
        yield made
    finally:
        made.remove()


@pytest.fixture
def client(cut_off: Network, server: PostgresServer, tmp_path: Path) -> Iterator[Client]:
    """A host that decides in the network of its own; another one learns beside the database."""
    schema = server.schema()
    learner = Service(settings(tmp_path, store=schema), role="learn")
    port, search_path = free_port(), schema.partition("options=")[2]
    dsn = f"postgresql://service@{cut_off.database}/postgres?options={search_path}"
    text = SETTINGS.format(host=cut_off.host, port=port, dsn=dsn, hashed=hash_of("open sesame"))
    (tmp_path / "ads.toml").write_text(text, encoding="utf-8")
    (tmp_path / "dsn").write_text(schema, encoding="utf-8")
    command = [sys.executable, "-m", "bothworlds", "serve", str(tmp_path / "ads.toml"), "--role", "decide"]
    process = subprocess.Popen([*cut_off.command, *command], stderr=subprocess.PIPE, text=True)
    try:
        with Client(f"http://{cut_off.host}:{port}", token="open sesame", retry_for=0.0, timeout=10.0) as made:
            wait_until(lambda: process.poll() is not None or answers(made), seconds=120)
            yield made
    finally:
        process.terminate()
        said = process.communicate(timeout=60)[1]
        learner.close()
    assert process.returncode == 0, said


def answers(client: Client) -> bool:
    """Return whether a host answers and everything works."""
    try:
        return client.failures() == []
    except ServiceError:
        return False


def test_a_host_whose_network_is_cut_refuses_and_comes_back(client: Client, cut_off: Network, tmp_path: Path) -> None:
    known: dict[str, Decided] = {}

    def visit(name: str) -> None:
        known[name] = client.decide("mobile", id=name)
        client.reward(name, float(known[name].arm == "blue"))

    for cut in range(size(2, 10)):
        for number in range(20):
            visit(f"{cut} {number}")
        cut_off.cut()
        began, refused = time.monotonic(), 0
        try:
            while time.monotonic() < began + CUT_SECONDS:
                asked = time.monotonic()
                with pytest.raises(ServiceError) as refusal:
                    client.decide("mobile", id=f"{cut} lost {refused}")
                assert (refusal.value.status, refusal.value.temporary) == (503, True)
                assert time.monotonic() - asked < 8.0, "refused, not left hanging"
                refused += 1
            assert client.failures()
        finally:
            cut_off.mend()
        wait_until(lambda: answers(client), seconds=60)
        for name in [f"{cut} lost {number}" for number in range(refused)]:
            visit(name)
        for name, decided in known.items():
            assert client.decide("mobile", id=name) == decided
    wait_until(lambda: client.plan().version == len(known), seconds=60)
    report = verify((tmp_path / "dsn").read_text(), processes=1)
    assert (report.faults, report.decisions) == ([], len(known))
