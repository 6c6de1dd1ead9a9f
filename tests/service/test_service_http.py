"""The HTTP API: every path, every limit, and arbitrary input."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from bothworlds.service.routes import GOT, POSTED, PROBES
from support.postgres import needs_postgres, shared_server
from support.service_http import Answer, Web, served
from support.services import wait_until
from support.soak import size

SETTINGS = """
durability = "process"
most_bytes = 60000
[experiments.ads]
arms = ["red", "blue", "green"]
contexts = ["mobile", "desktop"]
algorithm = {kind = "LinUCB"}
"""
DECIDE = {"context": "mobile"}


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=needs_postgres)])
def web(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """Serve with each kind of store."""
    store = f'store = "{shared_server().schema()}"' if request.param == "postgres" else ""
    with served(tmp_path_factory.mktemp("web"), store + SETTINGS) as made:
        wait_until(lambda: made.post("/v1/change", {}).status != 503)  # until it has the learner's term
        yield made


@pytest.fixture(autouse=True)
def _healthy_after(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "web" in request.fixturenames:
        health = request.getfixturevalue("web").ask("GET", "/v1/health")
        assert (health.status, health.said["status"], health.said["failures"]) == (200, "ok", [])


def test_every_path_answers(web: Web) -> None:
    decided = web.post("/v1/decide", {"context": "mobile", "id": "a"})
    assert decided.status == 200
    assert decided.headers["content-type"] == "application/json"
    assert set(decided.said) == {"id", "experiment", "context", "arm", "propensity", "version"}
    assert web.post("/v1/reward", {"id": "a", "reward": 1}).said["learned"] is True
    later = web.post("/v1/decide", {"context": 1, "id": "b", "active": False})
    assert later.said["active"] is False
    assert web.post("/v1/activate", {"id": "b"}).said == {"id": "b", "experiment": "ads", "active": True}
    several = web.post("/v1/decide/batch", {"decisions": [{"context": "mobile", "id": "a"}, {"context": "tablet"}]})
    assert [part["status"] for part in several.said["answers"]] == [200, 422]
    assert several.said["answers"][0]["body"] == decided.said
    several = web.post("/v1/reward/batch", {"rewards": [{"id": "b", "reward": 0.5}, {"id": "c", "reward": 0.5}]})
    assert [part["status"] for part in several.said["answers"]] == [200, 404]
    mixed = [{"context": 0, "experiment": name} for name in ("none", "ads", "none")]
    several = web.post("/v1/decide/batch", {"decisions": mixed})
    assert [part["status"] for part in several.said["answers"]] == [404, 200, 404]
    assert several.said["answers"][0]["body"] == web.post("/v1/decide", mixed[0]).said
    plan = web.ask("GET", "/v1/plan?experiment=ads").said
    assert [len(row) for row in plan["probabilities"]] == [len(plan["arms"])] * len(plan["contexts"])
    known = web.ask("GET", "/v1/decisions/a").said
    assert (known["arm"], known["reward"]) == (decided.said["arm"], 1.0)
    metrics = web.ask("GET", "/metrics")
    assert metrics.headers["content-type"].startswith("text/plain")
    assert b'bothworlds_records_total{experiment="ads",kind="decisions"} ' in metrics.body
    page = web.ask("GET", "/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_changes_and_rollbacks(web: Web) -> None:
    before = web.ask("GET", "/v1/plan").said
    assert web.post("/v1/change", {"add": [{"name": "violet"}]}).said["version"] > before["version"]
    assert web.ask("GET", "/v1/plan").said["arms"] == [*before["arms"], "violet"]
    assert web.post("/v1/change", {"retire": ["violet"]}).status == 200
    assert web.post("/v1/rollback", {"version": 10**6}).status == 422
    assert web.post("/v1/rollback", {"version": 0}).status == 422, "the problem has changed since"


def test_the_openapi_document_is_complete(web: Web) -> None:
    document = web.ask("GET", "/openapi.json").said
    assert document["openapi"] == "3.1.0"
    assert set(POSTED) | {"/v1/plan", "/v1/plan/file", "/v1/decisions/{id}", *PROBES} == set(document["paths"])
    text = json.dumps(document)
    for part in text.split('"$ref": "')[1:]:
        place: Any = document
        for name in part.split('"')[0].removeprefix("#/").split("/"):
            place = place[name]


@pytest.mark.parametrize(
    "name", ["plain", "a b/c", "100%", "%41", "ä🙂", "?x=1", "null\0inside", "#", "+", "..", "x" * 200]
)
def test_any_id_can_be_looked_up(web: Web, name: str) -> None:
    assert web.post("/v1/decide", {"context": "mobile", "id": name}).status == 200
    found = web.ask("GET", f"/v1/decisions/{quote(name, safe='')}")
    assert (found.status, found.said.get("id")) == (200, name)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/decide", b"", 400),
        ("/v1/decide", b"{", 400),
        ("/v1/decide", b"\xff\xfe", 400),
        ("/v1/decide", b'{"context": "\xff"}', 400),
        ("/v1/decide", rb'{"context": "\ud800"}', 400),
        ("/v1/decide", b"[" * 50_000, 400),
        ("/v1/decide", b'{"context": ' + b'{"a": ' * 8_000 + b"1" + b"}" * 8_001, 400),
        ("/v1/decide", b'{"context": {"a": {"b": 1}}}', 400),
        ("/v1/decide", b'{"context": 1.5}', 400),
        ("/v1/decide", b'{"context": null}', 400),
        ("/v1/decide", b'{"context": 0} x', 400),
        ("/v1/decide", b'{"context": NaN}', 400),
        ("/v1/decide", b'{"context": ' + b"9" * 5000 + b"}", 400),
        ("/v1/decide", {"context": 0, "id": ""}, 400),
        ("/v1/decide", {"context": 0, "id": "x" * 201}, 400),
        ("/v1/decide", {"context": 0, "id": 7}, 400),
        ("/v1/decide", {"context": 0, "id": "@7"}, 422),
        ("/v1/decide", {"context": 0, "active": 1}, 400),
        ("/v1/decide", {"context": 0, "colour": "red"}, 400),
        ("/v1/decide", {"context": 0, "experiment": "none"}, 404),
        ("/v1/decide", {"context": "x" * 1001}, 400),
        ("/v1/decide", {"context": {str(place): 0 for place in range(101)}}, 400),
        ("/v1/decide/batch", {"decisions": []}, 400),
        ("/v1/decide/batch", {"decisions": [{"context": 0}] * 1001}, 400),
        ("/v1/decide/batch", {"decisions": [{"context": 0}] * 1000}, 200),
        ("/v1/reward", {"id": "a"}, 400),
        ("/v1/reward", {"id": "unknown", "reward": 1}, 404),
        ("/v1/reward", {"id": "unknown", "reward": "1"}, 400),
        ("/v1/reward", b'{"id": "unknown", "reward": 1e999}', 400),
        ("/v1/reward", {"id": "y" * 200, "reward": 1}, 404),
        ("/v1/reward", {"id": "x" * 201, "reward": 1}, 400),
        ("/v1/reward", {"id": "", "reward": 1}, 400),
        ("/v1/reward", {"id": "@7", "reward": 1}, 404),
        ("/v1/reward/batch", {"rewards": [{"id": "x" * 201, "reward": 1}]}, 400),
        ("/v1/activate", {"id": "unknown"}, 404),
        ("/v1/activate", {"id": "x" * 201}, 400),
        ("/v1/activate", {"id": "@7"}, 404),
        ("/v1/change", {"add": [{"name": "red"}]}, 422),
        ("/v1/change", {"retire": ["unknown"]}, 422),
        ("/v1/change", {"retire": ["red", "blue", "green"]}, 422),
        ("/v1/change", {"probabilities": [1]}, 422),
        ("/v1/change", {"probabilities": [-1, 2]}, 422),
        ("/v1/change", {"add": [{"name": "new", "features": [[1], [1, 2]]}]}, 422),
        ("/v1/change", {"trust": 2}, 400),
        ("/v1/rollback", {"version": -1}, 400),
        ("/v1/settings", {}, 422),
        ("/v1/settings", {"holdout": 1}, 400),
        ("/v1/settings", {"window": "soon"}, 422),
        ("/v1/settings", {"algorithm": {"kind": "mine.py:Greedy"}}, 422),
        ("/v1/nowhere", {}, 404),
    ],
    ids=lambda value: repr(value)[:50],
)
def test_invalid_bodies_are_refused(web: Web, path: str, body: Any, status: int) -> None:
    answer = web.post(path, body)
    assert answer.status == status, answer.body
    if status != 200:
        assert list(answer.said) == ["error"]
        assert len(answer.said["error"]) > 10


def test_long_bodies_are_not_read(web: Web) -> None:
    assert web.post("/v1/decide", b" " * 60_001).status == 413
    assert web.post("/v1/decide", b" " * 59_980 + b'{"context": 0}').status == 200
    head = b"POST /v1/decide HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
    piece = b"1000\r\n" + b" " * 4096 + b"\r\n"
    assert b" 413 " in web.raw(head + piece * 20 + b"0\r\n\r\n")
    assert b" 413 " in web.raw(head + piece * 20), "before it has ended"
    text = b'{"context": 0}'
    assert b" 200 " in web.raw(head + piece + f"{len(text):x}\r\n".encode() + text + b"\r\n0\r\n\r\n")
    assert b" 413 " in web.raw(b"POST /v1/decide HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n")


def test_input_that_is_not_http_does_no_harm(web: Web) -> None:
    for content in [
        b"\0" * 100,
        b"HELLO\r\n\r\n",
        b"POST /v1/decide HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        b"GET / HT",
    ]:
        web.raw(content)
    web.raw(b"POST /v1/decide HTTP/1.1\r\nhost: localhost\r\ncontent-length: 14\r\n\r\n{")  # and closes
    web.raw(b"GET /v1/plan?experiment=%ff%00&&&= HTTP/1.1\r\nhost: localhost\r\n\r\n")
    assert web.ask("GET", "/v1/health").status == 200


@pytest.mark.parametrize("path", [*POSTED, *GOT, "/v1/decisions/a"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_a_wrong_method_is_refused_with_the_allowed_one(web: Web, path: str, method: str) -> None:
    right = "POST" if path in POSTED else "GET"
    answer = web.ask(method, path)
    if method != right:
        assert (answer.status, answer.headers["allow"].split(", ")[0]) == (405, right)
    else:
        assert answer.status in (200, 400, 404)


def test_head_returns_the_headers_of_get(web: Web) -> None:
    got, head = web.ask("GET", "/openapi.json"), web.ask("HEAD", "/openapi.json")
    assert (head.status, head.headers["content-type"], head.body) == (200, got.headers["content-type"], b"")
    assert web.ask("HEAD", "/v1/nowhere").status == 404


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20)
)
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
FIELDS = {
    "/v1/decide": ("context", "id", "experiment", "active"),
    "/v1/reward": ("id", "reward", "experiment"),
    "/v1/activate": ("id", "experiment"),
    "/v1/decide/batch": ("decisions",),
    "/v1/reward/batch": ("rewards",),
    "/v1/change": ("experiment", "add", "retire", "probabilities", "trust", "fresh"),
    "/v1/settings": ("experiment", "holdout", "window", "algorithm"),
    "/v1/rollback": ("version", "experiment"),
}
VALID: dict[str, dict[str, Any]] = {
    "/v1/decide": {"context": "mobile", "id": "fuzz"},
    "/v1/reward": {"id": "fuzz", "reward": 0.5},
    "/v1/activate": {"id": "fuzz"},
    "/v1/decide/batch": {"decisions": [DECIDE]},
    "/v1/reward/batch": {"rewards": [{"id": "fuzz", "reward": 0.5}]},
    "/v1/change": {"trust": 0.5},
    "/v1/settings": {"holdout": 0.0},
    "/v1/rollback": {"version": 0},
}
LIKELY = st.sampled_from(["fuzz", "mobile", "ads", "red", 0, 1, -1, 2**63, 10**30, 0.5, 1e300, "", "@", [], {}, [[]]])
ARM = st.fixed_dictionaries(
    {"name": st.text(max_size=5) | LIKELY}, optional={"features": st.lists(st.floats(-9, 9) | ANYTHING, max_size=4)}
)
fuzzed = hypothesis_settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])


def answered(answer: Answer) -> None:
    """Check that an answer is no internal error, and that a refusal has a message."""
    assert answer.status < 500, answer.body
    if answer.status != 200:
        assert answer.said["error"]


@pytest.mark.parametrize("path", FIELDS)
@pytest.mark.parametrize("count", [20, pytest.param(size(40, 1500), marks=pytest.mark.soak)], ids=["some", "many"])
def test_any_value_of_any_field_is_answered(web: Web, path: str, count: int) -> None:
    @hypothesis_settings(fuzzed, max_examples=count, derandomize=count == 20)
    @given(st.sampled_from(FIELDS[path]), ANYTHING | LIKELY | st.lists(ARM | LIKELY | st.just(DECIDE), max_size=3))
    def one_field(field: str, value: Any) -> None:
        answered(web.post(path, {**VALID[path], field: value}))

    one_field()
    if path == "/v1/change":  # restore the arms
        arms = web.ask("GET", "/v1/plan").said["arms"]
        add = [{"name": name} for name in ("red", "blue", "green") if name not in arms]
        assert web.post("/v1/change", {"add": add}).status == 200


@fuzzed
@given(st.sampled_from(sorted(POSTED)), ANYTHING)
def test_any_json_is_answered(web: Web, path: str, body: Any) -> None:
    answered(web.post(path, body))


@fuzzed
@given(st.sampled_from(sorted(POSTED)), st.binary(max_size=60))
def test_any_bytes_are_refused(web: Web, path: str, body: bytes) -> None:
    assert web.post(path, body).status == 400


@fuzzed
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.text(max_size=10))
def test_any_address_is_answered(web: Web, path: str, query: str) -> None:
    for front in ("/", "/v1/", "/v1/decisions/"):
        answered(web.ask("GET", f"{front}{quote(path)}?experiment={quote(query, errors='replace')}"))


@pytest.mark.soak
@pytest.mark.skipif(importlib.util.find_spec("schemathesis") is None, reason="schemathesis is not installed")
def test_responses_conform_to_the_openapi_document(tmp_path: Path) -> None:
    """No answer that the document does not describe, and no failure (the group `oracles` brings schemathesis)."""
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    options = ["--checks", f"{checks},negative_data_rejection,unsupported_method", "--max-examples", f"{size(5, 100)}"]
    with served(tmp_path, SETTINGS.replace("most_bytes = 60000", "")) as web:
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"http://127.0.0.1:{web.port}/openapi.json"]
        done = subprocess.run([*command, *options, "--no-color"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:]
        assert web.ask("GET", "/v1/health").status == 200
