"""The client against a real service, and against a server that fails in scripted ways."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bothworlds.service import client as clients
from bothworlds.service import messages
from bothworlds.service.client import Client, Decided, Rewarded, ServiceError
from support.failing_service import Failing, asking, failing_service
from support.service_process import UNIFORM, served

ANSWER = {"id": "a", "experiment": "e", "context": "c", "arm": "red", "propensity": 0.5, "version": 3, "newer": 1}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("client")
    (folder / "ads.toml").write_text(UNIFORM + UNIFORM.replace("banners", "more"), encoding="utf-8")
    with served(folder, "ads.toml") as url:
        yield url


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


def test_more_headers_are_sent_with_every_request(address: str) -> None:
    made = iter(f"00-4bf92f3577b34da6a3ce929d0e0e4736-{number:016x}-01" for number in range(1, 99))
    with Client(address, experiment="banners", headers=lambda: {"traceparent": next(made)}) as client:
        client.decide("mobile", id="traced 1")
        client.decide("mobile", id="traced 2")
        found = [client.decision(f"traced {number}").traceparent for number in (1, 2)]
    assert found == [f"00-4bf92f3577b34da6a3ce929d0e0e4736-{number:016x}-01" for number in (1, 2)]


def test_refusals_have_a_message_and_a_status(client: Client, address: str) -> None:
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


def test_numbers_and_rows_of_other_libraries_are_accepted(client: Client) -> None:
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


def test_invalid_arguments_are_refused_with_a_message(client: Client) -> None:
    with pytest.raises(ValueError, match="a mapping from columns to texts and numbers"):
        client.decide({"day": pd.Timestamp("2026-01-01")})
    row: Any = pd.Series({"device": "mobile", "age": np.nan})
    with pytest.raises(ValueError, match="column 'age' of the row is nan; replace missing values by numbers or None"):
        client.decide(row)
    with pytest.raises(ValueError, match="contexts must be a list"):
        client.decide_all("mobile")
    for token in ("secret\n", "sécret"):
        with pytest.raises(ValueError, match="printable ASCII"):
            Client(token=token)


def test_inactive_decisions_are_activated(client: Client) -> None:
    assert not client.decide("mobile", id="mail", active=False).active
    with pytest.raises(ServiceError, match="not active"):
        client.reward("mail", 1.0)
    client.activate("mail")
    assert client.reward("mail", 1.0).learned


def test_batches(client: Client) -> None:
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
def test_any_id_can_be_looked_up(client: Client, name: str) -> None:
    decided = client.decide("mobile", id=name)
    assert decided.id == name
    assert client.decision(name).id == name


def test_plan_and_failures(client: Client) -> None:
    plan = client.plan()
    assert (plan.arms, plan.contexts) == (["red", "blue"], ["mobile", "desktop"])
    assert plan.probabilities == [[0.5, 0.5], [0.5, 0.5]]
    assert client.failures() == []


def test_each_thread_has_its_own_connection(client: Client) -> None:
    answers: dict[str, str] = {}

    def ask(thread: int) -> None:
        for visit in range(20):
            name = f"thread {thread} visit {visit}"
            answers[name] = client.decide("mobile", id=name).id
        client.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(answers) == 120
    assert all(name == answered for name, answered in answers.items())


@pytest.fixture
def failing(request: pytest.FixtureRequest) -> Iterator[Failing]:
    with failing_service(request.param) as server:
        yield server


@pytest.mark.parametrize("failing", [["drop", (503, {"error": "full"}), (429, {"error": "slower"}), (200, ANSWER)]],
                         indirect=True)  # fmt: skip
def test_retries_use_the_same_id(failing: Failing) -> None:
    client = asking(failing)
    assert client.decide("c").arm == "red"  # and a field that it does not know is left out
    client.close()
    assert len(failing.received) == 4
    assert len({body["id"] for _, body in failing.received}) == 1
    assert {header for header, _ in failing.received} == {"Bearer secret"}


@pytest.mark.parametrize("failing", [[(502, b"<html>"), (503, b""), (504, b"<html>"), (200, ANSWER)]], indirect=True)
def test_retries_when_a_proxy_does_not_reach_the_service(failing: Failing) -> None:
    with asking(failing) as client:
        assert client.decide("c").arm == "red"
    assert failing.script == []


@pytest.mark.parametrize("failing", [[(502, b"<html>Bad gateway")]], indirect=True)
def test_the_last_error_quotes_the_proxy(failing: Failing) -> None:
    with (
        asking(failing, retry_for=0.0) as client,
        pytest.raises(ServiceError, match="not a response of a decision service: b'<html>Bad gate"),
    ):
        client.decide("c")
    assert failing.script == []


@pytest.mark.parametrize("failing", [[(200, ANSWER)] * 3], indirect=True)
def test_the_path_in_the_url_prefixes_every_path(failing: Failing) -> None:
    for path in ("", "/", "/bandit/api/"):
        with Client(f"http://127.0.0.1:{failing.server_address[1]}{path}") as client:
            client.decide("c")
    assert failing.paths == ["/v1/decide", "/v1/decide", "/bandit/api/v1/decide"]


@pytest.mark.parametrize("failing", [[(503, {"error": "nothing was stored"})] * 99], indirect=True)
def test_the_last_error_has_the_message_of_the_service(failing: Failing) -> None:
    with asking(failing, retry_for=0.05) as client, pytest.raises(ServiceError, match="nothing was stored") as refused:
        client.decide("c")
    assert refused.value.temporary
    assert 2 <= len(failing.received) < 99


@pytest.mark.parametrize("failing", [[(409, {"error": "another body"})]], indirect=True)
def test_refusals_are_not_retried(failing: Failing) -> None:
    client = asking(failing)
    with pytest.raises(ServiceError, match="another body"):
        client.reward("a", 1.0)
    client.close()
    assert len(failing.received) == 1


@pytest.mark.parametrize("failing", [[(200, b"<html>")]], indirect=True)
def test_a_response_of_another_program_is_an_error(failing: Failing) -> None:
    client = asking(failing)
    with pytest.raises(ServiceError, match="not a response of a decision service"):
        client.decide("c")
    client.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the process has threads; the child asks and ends
@pytest.mark.parametrize("failing", [[(200, ANSWER)] * 4], indirect=True)
def test_a_forked_process_has_its_own_connection(failing: Failing) -> None:
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


def test_no_service_at_the_address() -> None:
    with pytest.raises(ServiceError, match="does not answer") as refused:
        Client("http://127.0.0.1:9", retry_for=0.01, pause=0.001).decide("c")
    assert refused.value.status == 0
    with pytest.raises(ValueError, match="address like"):
        Client("127.0.0.1:8080")


def test_responses_of_the_service_are_decoded() -> None:
    usual, safe = messages.Decided("a", "e", "c", "red", 0.5, 3), messages.Decided("a", "e", "c", "red", None, 3, True)
    assert b"holdout" not in messages.encode(usual), "what is as it is mostly is not sent"
    for sent, read in (
        (usual, Decided("a", "e", "c", "red", 0.5, 3)),
        (safe, Decided("a", "e", "c", "red", None, 3, True)),
    ):
        assert clients._response(Decided, json.loads(messages.encode(sent))) == read


@pytest.mark.parametrize("module", ["bothworlds.service.client", "bothworlds.cli"])
def test_client_and_commands_do_not_import_the_packages_of_the_service(module: str, tmp_path: Path) -> None:
    check = f"import sys, {module}; print(*({{'msgspec', 'granian', 'prometheus_client'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == ""
