"""The client against a service on the network, and against one that fails in every way."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bothworlds.service import client as clients
from bothworlds.service import messages
from bothworlds.service.client import Client, Decided, Rewarded, ServiceError
from served import UNIFORM, served

ANSWER = {"id": "a", "experiment": "e", "context": "c", "arm": "red", "propensity": 0.5, "version": 3, "newer": 1}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("client")
    (folder / "ads.toml").write_text(UNIFORM + UNIFORM.replace("banners", "more"), encoding="utf-8")
    with served(folder, "ads.toml") as found:
        yield found


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    with Client(address, experiment="banners") as made:
        yield made


def test_a_decision_and_its_reward(client: Client) -> None:
    decided = client.decide("mobile", id="visit 1")
    assert (decided.id, decided.experiment, decided.propensity, decided.stored) == ("visit 1", "banners", 0.5, True)
    assert client.decide("mobile", id="visit 1") == decided
    assert client.reward("visit 1", 1.0) == Rewarded(id="visit 1", experiment="banners", reward=1.0, learned=True)
    known = client.decision("visit 1")
    assert (known.arm, known.reward, known.probabilities) == (decided.arm, 1.0, {"red": 0.5, "blue": 0.5})
    assert client.decide(0).id != client.decide(0).id


def test_refusals_are_sentences_with_a_status(client: Client, address: str) -> None:
    client.decide("mobile", id="visit 2")
    nameless, third = Client(address), Client(address, experiment="third")
    for ask, status, words in (
        (lambda: client.decide("desktop", id="visit 2"), 409, "with another body"),
        (lambda: client.decide("noon"), 422, "unknown context 'noon'"),
        (lambda: client.reward("nobody", 1.0), 404, "there is no decision 'nobody'"),
        (lambda: client.reward("visit 2", 7.0), 422, "outside"),
        (lambda: client.decision("nobody"), 404, "there is no decision"),
        (nameless.plan, 404, "which experiment"),
        (lambda: third.decide("mobile"), 404, "there is no experiment 'third'"),
    ):
        with pytest.raises(ServiceError, match=words) as refused:
            ask()
        assert refused.value.status == status
    nameless.close()
    third.close()


def test_numbers_and_rows_of_other_libraries_are_taken(client: Client) -> None:
    ones: list[Any] = [True, np.True_, np.int64(1), np.float32(1), Decimal(1), Fraction(1)]
    first: Any = np.int64(0)
    for place, reward in enumerate(ones):
        assert client.decide(first, id=f"number {place}").context == "mobile"
        assert client.reward(f"number {place}", reward).reward == 1.0
    row: Any = pd.Series({"device": "mobile", "age": 20})
    with pytest.raises(ServiceError, match="no column names"):
        client.decide(row)
    others: list[Any] = [float("nan"), "1", None, 1j, pd.NA]
    for wrong in others:
        with pytest.raises(ValueError, match="the reward of 'number 0' must be a finite number"):
            client.reward("number 0", wrong)
        with pytest.raises(ValueError, match="must be a finite number"):
            client.reward_all({"number 0": wrong})


def test_what_cannot_be_asked_is_told_in_a_sentence(client: Client) -> None:
    with pytest.raises(ValueError, match="a row of texts and numbers by its columns"):
        client.decide({"day": pd.Timestamp("2026-01-01")})
    row: Any = pd.Series({"device": "mobile", "age": np.nan})
    with pytest.raises(ValueError, match="the row has nan as 'age'; fill what is missing, or say None"):
        client.decide(row)
    with pytest.raises(ValueError, match="contexts are a list"):
        client.decide_all("mobile")
    for token in ("secret\n", "sécret"):
        with pytest.raises(ValueError, match="plain letters only"):
            Client(token=token)


def test_inactive_decisions_are_activated(client: Client) -> None:
    assert not client.decide("mobile", id="mail", active=False).active
    with pytest.raises(ServiceError, match="not active"):
        client.reward("mail", 1.0)
    client.activate("mail")
    assert client.reward("mail", 1.0).learned


def test_several_at_once(client: Client) -> None:
    made, refused = client.decide_all(["mobile", "noon"], ids=["b1", "b2"])
    assert isinstance(made, Decided)
    assert isinstance(refused, ServiceError)
    assert (made.id, refused.status) == ("b1", 422)
    good, unknown = client.reward_all({"b1": 1.0, "b2": 0.0})
    assert isinstance(good, Rewarded)
    assert isinstance(unknown, ServiceError)
    assert unknown.status == 404
    assert client.decide_all([]) == []
    assert len(client.decide_all(["mobile"] * 3)) == 3
    with pytest.raises(ValueError, match="2 contexts need as many ids; got 1"):
        client.decide_all(["mobile", "desktop"], ids=["b3"])


@pytest.mark.parametrize("name", ["a/b?c#d%25", "ü 🎈", "..", "x" * 200, "'\"<>&+ "])
def test_any_id_is_found_again(client: Client, name: str) -> None:
    decided = client.decide("mobile", id=name)
    assert decided.id == name
    assert client.decision(name).id == name


def test_plan_and_failures(client: Client) -> None:
    plan = client.plan()
    assert (plan.arms, plan.contexts) == (["red", "blue"], ["mobile", "desktop"])
    assert plan.probabilities == [[0.5, 0.5], [0.5, 0.5]]
    assert client.failures() == []


def test_threads_have_connections_of_their_own(client: Client) -> None:
    found: dict[str, str] = {}

    def ask(thread: int) -> None:
        for visit in range(20):
            name = f"thread {thread} visit {visit}"
            found[name] = client.decide("mobile", id=name).id
        client.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(found) == 120
    assert all(name == told for name, told in found.items())


class Failing(ThreadingHTTPServer):
    """Does in turn what it is told: drop the connection, or answer with a status and a body."""

    def __init__(self, script: list[Any]) -> None:
        self.script, self.heard = list(script), list[tuple[str | None, Any]]()
        self.callers, self.paths = list[Any](), list[str]()
        super().__init__(("127.0.0.1", 0), Answering)


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Failing

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.callers.append(self.client_address)
        self.server.paths.append(self.path)
        self.server.heard.append((self.headers["authorization"], body))
        step = self.server.script.pop(0)
        if step == "drop":
            self.close_connection = True
            return
        status, told = step
        content = told if isinstance(told, bytes) else json.dumps(told).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def failing(request: pytest.FixtureRequest) -> Iterator[Failing]:
    server = Failing(request.param)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))  # how often it looks whether to end
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def asking(server: Failing, **options: Any) -> Client:
    return Client(f"http://127.0.0.1:{server.server_address[1]}", token="secret", pause=0.001, **options)


@pytest.mark.parametrize("failing", [["drop", (503, {"error": "full"}), (429, {"error": "slower"}), (200, ANSWER)]],
                         indirect=True)  # fmt: skip
def test_it_asks_again_with_the_same_id(failing: Failing) -> None:
    client = asking(failing)
    assert client.decide("c").arm == "red"  # and a field that it does not know is left out
    client.close()
    assert len(failing.heard) == 4
    assert len({body["id"] for _, body in failing.heard}) == 1
    assert {header for header, _ in failing.heard} == {"Bearer secret"}


@pytest.mark.parametrize("failing", [[(502, b"<html>"), (503, b""), (504, b"<html>"), (200, ANSWER)]], indirect=True)
def test_it_asks_again_where_a_proxy_does_not_reach_the_service(failing: Failing) -> None:
    with asking(failing) as client:
        assert client.decide("c").arm == "red"
    assert failing.script == []


@pytest.mark.parametrize("failing", [[(502, b"<html>Bad gateway")] * 2], indirect=True)
def test_it_gives_up_with_the_words_of_a_proxy(failing: Failing) -> None:
    with asking(failing, tries=2) as client, pytest.raises(ServiceError, match="no decision service: b'<html>Bad gate"):
        client.decide("c")
    assert failing.script == []


@pytest.mark.parametrize("failing", [[(200, ANSWER)] * 3], indirect=True)
def test_a_path_of_a_proxy_stands_before_every_other(failing: Failing) -> None:
    for path in ("", "/", "/bandit/api/"):
        with Client(f"http://127.0.0.1:{failing.server_address[1]}{path}") as client:
            client.decide("c")
    assert failing.paths == ["/v1/decide", "/v1/decide", "/bandit/api/v1/decide"]


@pytest.mark.parametrize("failing", [[(503, {"error": "nothing was stored"})] * 3], indirect=True)
def test_it_gives_up_with_the_service_s_sentence(failing: Failing) -> None:
    client = asking(failing, tries=3)
    with pytest.raises(ServiceError, match="nothing was stored"):
        client.decide("c")
    client.close()
    assert failing.script == []


@pytest.mark.parametrize("failing", [[(409, {"error": "another body"})]], indirect=True)
def test_what_is_refused_is_not_asked_again(failing: Failing) -> None:
    client = asking(failing)
    with pytest.raises(ServiceError, match="another body"):
        client.reward("a", 1.0)
    client.close()
    assert len(failing.heard) == 1


@pytest.mark.parametrize("failing", [[(200, b"<html>")]], indirect=True)
def test_something_else_than_a_service_is_named(failing: Failing) -> None:
    client = asking(failing)
    with pytest.raises(ServiceError, match="this is no decision service"):
        client.decide("c")
    client.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the process has threads; the child asks and ends
@pytest.mark.parametrize("failing", [[(200, ANSWER)] * 4], indirect=True)
def test_a_forked_process_has_a_connection_of_its_own(failing: Failing) -> None:
    client = asking(failing)
    client.decide("c")
    child = os.fork()
    if not child:
        code = 1
        try:
            client.decide("c")
            client.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    client.decide("c")
    client.close()
    first, forked, after = failing.callers
    assert forked != first == after


def test_nobody_answers() -> None:
    with pytest.raises(ServiceError, match="does not answer") as refused:
        Client("http://127.0.0.1:9", tries=2, pause=0.001).decide("c")
    assert refused.value.status == 0
    with pytest.raises(ValueError, match="address like"):
        Client("127.0.0.1:8080")


def test_it_reads_what_a_service_sends() -> None:
    usual, safe = messages.Decided("a", "e", "c", "red", 0.5, 3), messages.Decided("a", "e", "c", "red", None, 3, True)
    assert b"holdout" not in messages.encode(usual), "what is as it is mostly is not sent"
    for sent, read in (
        (usual, Decided("a", "e", "c", "red", 0.5, 3)),
        (safe, Decided("a", "e", "c", "red", None, 3, True)),
    ):
        assert clients._made(Decided, json.loads(messages.encode(sent))) == read


@pytest.mark.parametrize("module", ["bothworlds.service.client", "bothworlds.cli"])
def test_neither_client_nor_commands_need_the_packages_of_the_service(module: str, tmp_path: Path) -> None:
    check = f"import sys, {module}; print(*({{'msgspec', 'granian', 'prometheus_client'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == ""
