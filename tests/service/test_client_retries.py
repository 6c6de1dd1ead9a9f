"""The client while the service restarts, loses its responses, is slow, or has another certificate."""

import contextlib
import http.client
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bothworlds.service.client import Changed, Client, Decided, Rewarded, ServiceError
from support.failing_service import Failing, asking, failing_service
from support.service_http import free_port, listening
from support.service_process import UNIFORM

ANSWER = {"id": "a", "experiment": "e", "context": "c", "arm": "red", "propensity": 0.5, "version": 3}
BUSY = (503, {"error": "nothing was stored"})


@contextlib.contextmanager
def running(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Serve on a port; kill the service in the end."""
    command = [sys.executable, "-m", "bothworlds", "serve", "ads.toml", "--port", str(port)]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
    try:
        listening(port, process)
        yield process
    finally:
        process.kill()
        process.wait()


def test_requests_during_a_restart_are_answered_after_it(tmp_path: Path) -> None:
    (tmp_path / "ads.toml").write_text(UNIFORM, encoding="utf-8")
    port, answers = free_port(), list[Any]()

    def ask() -> None:
        with Client(f"http://127.0.0.1:{port}", retry_for=60.0) as client:
            answers.extend((client.decide("mobile", id="visit 1"), client.reward("visit 1", 1.0)))
            answers.append(client.decide("mobile", id="visit 2"))

    with running(tmp_path, port), Client(f"http://127.0.0.1:{port}") as client:
        first = client.decide("mobile", id="visit 1")
    asking_thread = threading.Thread(target=ask)
    asking_thread.start()
    time.sleep(1.5)  # longer than a client of four tries waits
    with running(tmp_path, port):
        asking_thread.join()
    assert answers[:2] == [first, Rewarded("visit 1", "banners", 1.0, True)]
    assert answers[2].stored


class Losing:
    """Passes connections on to a service; loses the first response of each kind of request."""

    def __init__(self, port: int) -> None:
        self.port, self.lost, self.passed = port, set[str](), 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    def _work(self) -> None:
        while True:
            connection, _ = self.listener.accept()
            with connection, connection.makefile("rb") as stream:
                while line := stream.readline().decode():
                    if line == "end\n":
                        return
                    self._pass_on(connection, stream, line.split()[1])
                    if connection.fileno() < 0:
                        break

    def _pass_on(self, connection: socket.socket, stream: Any, path: str) -> None:
        headers = http.client.parse_headers(stream)
        body = stream.read(int(headers["content-length"]))
        onward = http.client.HTTPConnection("127.0.0.1", self.port)
        onward.request("POST", path, body)
        content = onward.getresponse().read()
        onward.close()
        self.passed += 1
        if path not in self.lost:
            self.lost.add(path)
            connection.shutdown(socket.SHUT_RDWR)
            return
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(content), content))

    def close(self) -> None:
        with socket.create_connection(self.listener.getsockname()) as connection:
            connection.sendall(b"end\n")
            self.thread.join()
        self.listener.close()


def test_a_lost_response_decides_and_rewards_once(tmp_path: Path) -> None:
    (tmp_path / "ads.toml").write_text(UNIFORM, encoding="utf-8")
    port = free_port()
    with running(tmp_path, port), Client(f"http://127.0.0.1:{port}") as direct:
        losing = Losing(port)
        with Client(f"http://127.0.0.1:{losing.listener.getsockname()[1]}", pause=0.001) as client:
            decided = client.decide("mobile")
            assert client.reward(decided.id, 1.0).learned
            (batched,) = client.decide_all(["desktop"])
            assert isinstance(batched, Decided)
            assert client.reward_all({batched.id: 0.5}) == [Rewarded(batched.id, "banners", 0.5, True)]
        losing.close()
        assert losing.passed == 8, "each of the four requests was sent twice"
        assert (direct.decision(decided.id).arm, direct.decision(decided.id).reward) == (decided.arm, 1.0)
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/metrics")
        counters = connection.getresponse().read().decode()
        connection.close()
    stored = [line.rpartition(" ")[2] for line in counters.splitlines() if "_total{" in line and "banners" in line]
    assert stored[:1] == ["2.0"], counters


def test_the_service_is_asked_again_for_15_seconds_by_default() -> None:
    assert Client().retry_for == 15.0


def test_retry_after_is_honoured() -> None:
    with failing_service([(*BUSY, ("retry-after", "1")), (200, ANSWER)]) as server, asking(server) as client:
        began = time.monotonic()
        assert client.decide("c").arm == "red"
        assert time.monotonic() - began >= 1.0


def test_a_retry_after_beyond_the_time_is_not_waited_for() -> None:
    with failing_service([(*BUSY, ("retry-after", "30"))]) as server, asking(server) as client:
        began = time.monotonic()
        with pytest.raises(ServiceError, match="nothing was stored"):
            client.decide("c")
        assert time.monotonic() - began < 5.0
        assert server.script == []


def test_the_fallback_arm_is_returned_in_time_and_never_rewarded() -> None:
    with failing_service([BUSY] * 999) as server, asking(server, experiment="e") as client:
        began = time.monotonic()
        decided = client.decide("c", id="visit 1", fallback="blue", within=0.1)
        assert time.monotonic() - began < 5.0
        assert decided == Decided("visit 1", "e", "c", "blue", None, -1, stored=False)
        server.script[:] = [(200, {**ANSWER, "id": "visit 2"}),
                            (200, {"answers": [{"status": 200, "body": {"id": "visit 2", "experiment": "e",
                                                                       "reward": 0.0, "learned": True}}]})]  # fmt: skip
        asked = len(server.received)
        unlearned = client.reward("visit 1", 1.0)
        client.activate("visit 1")
        assert not unlearned.learned
        assert "not logged" in str(unlearned.reason)
        assert len(server.received) == asked, "the service is not told about it"
        assert client.decide("c", id="visit 2", fallback="blue").stored
        assert client.reward_all({"visit 1": 1.0, "visit 2": 0.0}) == [unlearned, Rewarded("visit 2", "e", 0.0, True)]
        assert [body["id"] for body in server.received[-1][1]["rewards"]] == ["visit 2"]


def test_the_reward_of_a_decision_repeated_after_its_fallback_is_sent() -> None:
    rewarded = {"id": "a", "experiment": "e", "reward": 1.0, "learned": True}
    with failing_service([(*BUSY, ("retry-after", "30"))]) as server, asking(server) as client:
        assert not client.decide("c", id="a", fallback="blue", within=5.0).stored
        server.script[:] = [(200, ANSWER), (200, rewarded)]
        assert client.decide("c", id="a").stored
        assert client.reward("a", 1.0).learned


def test_a_silent_service_does_not_delay_the_fallback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(f"http://127.0.0.1:{silent.getsockname()[1]}")
        began = time.monotonic()
        assert client.decide("c", fallback="blue", within=0.2).arm == "blue"
        assert 0.2 <= time.monotonic() - began < 5.0
        client.close()


def test_a_refusal_is_raised_in_spite_of_a_fallback() -> None:
    refusal = (422, {"error": "unknown context"})
    with (
        failing_service([refusal]) as server,
        asking(server) as client,
        pytest.raises(ServiceError, match="unknown context") as refused,
    ):
        client.decide("c", fallback="blue")
    assert not refused.value.temporary


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"retry_for": -1.0}, "retry_for must be a number of seconds, at least 0"),
        ({"retry_for": float("nan")}, "retry_for"),
        ({"timeout": 0.0}, "timeout must be a positive number"),
        ({"pause": 0.0}, "pause must be a positive number"),
        ({"ssl": ssl.create_default_context()}, "ssl needs an https address"),
    ],
)
def test_invalid_options_are_refused(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Client(**arguments)


def test_within_needs_a_fallback() -> None:
    with pytest.raises(ValueError, match="give both"):
        Client().decide("c", within=1.0)
    with pytest.raises(ValueError, match="within must be a positive number"):
        Client().decide("c", fallback="red", within=0.0)


def test_changes_are_sent_with_their_arms() -> None:
    changed = (200, {"experiment": "e", "version": 4, "digest": "ab"})
    with failing_service([BUSY, changed, changed]) as server, asking(server, experiment="e") as client:
        assert client.change(add=["green"], retire=["red"]) == Changed("e", 4, "ab")
        assert client.change(add={"green": [1.0, 2.0]}, probabilities=[0.5, 0.5], trust=0.5, fresh=0.1).version == 4
    common = {"experiment": "e", "trust": 1.0}
    assert [body for _, body in server.received[1:]] == [
        {**common, "add": [{"name": "green"}], "retire": ["red"]},
        {**common, "add": [{"name": "green", "features": [1.0, 2.0]}], "retire": [], "trust": 0.5, "fresh": 0.1,
         "probabilities": [0.5, 0.5]},
    ]  # fmt: skip
    assert server.paths == ["/v1/change"] * 3
    with pytest.raises(ValueError, match="must be lists of arms"):
        Client().change(add="green")


def _change(client: Client) -> Changed:
    return client.change(add=["green"])


def _roll_back(client: Client) -> Changed:
    return client.rollback(3)


@pytest.mark.parametrize("failure", ["drop", (502, b"<html>"), (504, b"<html>")])
def test_a_change_that_may_have_been_made_is_not_repeated(failure: Any) -> None:
    for ask in (_change, _roll_back):
        with failing_service([failure, "drop"]) as server, asking(server) as client:
            with pytest.raises(ServiceError) as failed:
                ask(client)
            assert len(server.received) == 1
            assert failed.value.temporary
            assert "it may have been done, look at the plan" in str(failed.value)


def test_a_service_changes_and_rolls_back(tmp_path: Path) -> None:
    (tmp_path / "ads.toml").write_text(UNIFORM.replace("uniform", "LinUCB"), encoding="utf-8")
    port = free_port()
    with running(tmp_path, port), Client(f"http://127.0.0.1:{port}") as client:
        changed = client.change(add=["green"])
        assert client.plan().arms == ["red", "blue", "green"]
        assert (client.plan().version, client.plan().digest) == (changed.version, changed.digest)
        with pytest.raises(ServiceError) as refused:
            client.rollback(0)  # not across a change of arms
        assert refused.value.status == 422
        decided = client.decide("mobile")
        client.reward(decided.id, 1.0)
        while client.plan().version == changed.version:
            time.sleep(0.01)
        assert client.rollback(changed.version).version == changed.version + 2


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[tuple[str, Path, Failing]]:
    """A server with a certificate of its own."""
    if not shutil.which("openssl"):
        pytest.skip("there is no openssl to make a certificate with")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    command += " -addext subjectAltName=DNS:localhost -keyout key.pem -out certificate.pem"
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    with failing_service([(200, ANSWER)]) as server:
        server.secure(context)
        yield f"https://localhost:{server.server_address[1]}", tmp_path / "certificate.pem", server


def test_a_refused_certificate_is_not_tried_again(encrypted: tuple[str, Path, Failing]) -> None:
    address, certificate, server = encrypted
    began = time.monotonic()
    with (
        Client(address) as client,
        pytest.raises(ServiceError, match="certificate of the connection to localhost is refused") as refused,
    ):
        client.decide("c", fallback="blue")
    assert not refused.value.temporary
    assert time.monotonic() - began < 5.0
    assert server.connections == 1
    with Client(address, ssl=ssl.create_default_context(cafile=str(certificate))) as client:
        assert client.decide("c").arm == "red"
