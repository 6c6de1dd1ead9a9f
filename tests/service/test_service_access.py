"""Access control: tokens, scopes, rate limits, certificates, and settings that are refused."""

import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bothworlds.service.auth import Access, RateLimiter, hash_of, new_token
from bothworlds.service.routes import POSTED
from bothworlds.service.server import placed
from bothworlds.service.settings import Token, read_settings
from support.service_http import Web, served

EXPERIMENT = """
[experiments.ads]
arms = ["red", "blue"]
contexts = ["mobile", "desktop"]
algorithm = {kind = "LinUCB"}
"""
SCOPES = {
    "all": ["decide", "reward", "local", "admin"],
    "decider": ["decide"],
    "rewarder": ["reward"],
    "elsewhere": ["local"],
    "keeper": ["admin"],
}
SECRETS = {name: f"secret of {name}" for name in (*SCOPES, "slow", "bulk")}
GETS = {"/v1/plan": "decide", "/v1/plan/file": "local", "/v1/decisions/a": "admin", "/": "admin", "/metrics": None}
BODIES = {
    "/v1/decide": {"context": 0},
    "/v1/reward": {"id": "a", "reward": 1},
    "/v1/activate": {"id": "a"},
    "/v1/decide/batch": {"decisions": [{"context": 0}]},
    "/v1/reward/batch": {"rewards": [{"id": "a", "reward": 1}]},
    "/v1/local/batch": {"decisions": [{"id": "a", "context": "mobile", "version": 9, "arm": "red", "propensity": 1}]},
    "/v1/change": {},
    "/v1/settings": {"holdout": 0.0},
    "/v1/rollback": {"version": 9},
}


def token(name: str, scopes: list[str], rate: str = "") -> str:
    hashed = hash_of(SECRETS.get(name, "a secret"))
    return f'[[tokens]]\nname = "{name}"\nsha256 = "{hashed}"\nscopes = {scopes}\n{rate}\n'


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """Serve with tokens, and with a certificate where openssl can make one."""
    folder = tmp_path_factory.mktemp("access")
    tokens = "".join(token(name, scopes) for name, scopes in SCOPES.items())
    tokens += token("slow", ["decide"], "rate = 3") + token("bulk", ["decide"], "rate = 10")
    files, context = "", None
    if shutil.which("openssl"):
        made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
        made += " -addext subjectAltName=DNS:localhost -keyout key.pem -out certificate.pem"
        subprocess.run(made.split(), cwd=folder, check=True, capture_output=True)
        files = 'certificate = "certificate.pem"\nkey = "key.pem"\n'
        context = ssl.create_default_context(cafile=str(folder / "certificate.pem"))
    with served(folder, f'durability = "process"\n{files}{tokens}{EXPERIMENT}', context=context) as started:
        yield started


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {SECRETS[name]}"}


def test_the_certificate_in_the_settings_is_used(web: Web) -> None:
    if web.context is None:
        pytest.skip("there is no openssl to make a certificate with")
    assert web.ask("GET", "/v1/health").status == 200
    with pytest.raises(ssl.SSLCertVerificationError):
        web._replace(context=ssl.create_default_context()).ask("GET", "/v1/health")
    assert b"200" not in web.raw(b"GET /v1/health HTTP/1.1\r\nhost: localhost\r\n\r\n"), "nothing is said in clear"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": "Bearer "},
        {"authorization": "Bearer wrong"},
        {"authorization": f"Basic {SECRETS['all']}"},
        {"authorization": SECRETS["all"]},
        {"authorization": f"Bearer {hash_of(SECRETS['all'])}"},
        {"authorization": "Bearer \xe4\xf6"},
    ],
    ids=repr,
)
def test_requests_without_a_valid_token_are_refused(web: Web, headers: dict[str, str]) -> None:
    for path in POSTED:
        assert web.ask("POST", path, BODIES[path], headers).status == 401
    for path in GETS:
        assert web.ask("GET", path, headers=headers).status == 401
    assert web.ask("GET", "/v1/health").status == 200
    assert web.ask("GET", "/openapi.json").status == 200


@pytest.mark.parametrize("name", SCOPES)
def test_a_token_allows_what_its_scopes_say(web: Web, name: str) -> None:
    for path, what in POSTED.items():
        status = web.ask("POST", path, BODIES[path], bearer(name)).status
        assert (status == 403) == (what.scope not in SCOPES[name]), (path, status)
        assert status != 401
    for path, scope in GETS.items():
        status = web.ask("GET", path, headers=bearer(name)).status
        assert (status == 403) == (scope is not None and scope not in SCOPES[name]), (path, status)
    assert web.ask("GET", "/v1/health").said["status"] == "ok"


def test_the_token_is_checked_before_the_body(web: Web) -> None:
    assert web.ask("POST", "/v1/decide", b"{" * 100, {}).status == 401
    assert web.ask("POST", "/v1/decide", b"{" * 100, bearer("keeper")).status == 403


def test_rate_limits_are_enforced_per_token(web: Web) -> None:
    many = [web.ask("POST", "/v1/decide", {"context": 0}, bearer("slow")).status for _ in range(12)]
    assert many[:3] == [200] * 3
    assert 429 in many
    assert set(many) == {200, 429}
    body = {"decisions": [{"context": 0}] * 50}
    assert web.ask("POST", "/v1/decide/batch", body, bearer("slow")).status == 429
    assert web.ask("POST", "/v1/decide", {"context": 0}, bearer("all")).status == 200, "other tokens are not affected"


def test_a_batch_larger_than_the_rate_is_allowed_and_paid_off(web: Web) -> None:
    body = {"decisions": [{"context": 0}] * 20}
    assert web.ask("POST", "/v1/decide/batch", body, bearer("bulk")).status == 200
    assert web.ask("POST", "/v1/decide", {"context": 0}, bearer("bulk")).status == 429, "it owes ten"


def test_batches_of_any_size_respect_the_rate_on_average() -> None:
    now = 0.0
    limiter = RateLimiter(10.0, clock=lambda: now)
    for size in (1, 7, 10, 20, 1000):
        began, passed = now, 0
        while now < began + 1000.0:
            now += 0.05
            if limiter.allows(1) and limiter.allows(size, refund=1):
                passed += size
        assert 8_000 <= passed <= 10_000 + size + 10, size


def test_a_batch_that_is_refused_costs_nothing() -> None:
    limiter = RateLimiter(10.0, clock=lambda: 0.0)
    assert limiter.allows(5)
    assert [limiter.allows(1) and limiter.allows(6, refund=1) for _ in range(9)] == [False] * 9
    assert limiter.allows(1)
    assert limiter.allows(4)
    assert not limiter.allows(1)


def test_the_cost_of_a_batch_is_its_size() -> None:
    access = Access([Token("slow", hash_of("x"), ["decide"], 10.0)])
    answers = [access.refusal("Bearer x", "decide", count) for count in (1, 9, 1)]
    assert [None if answer is None else answer[0] for answer in answers] == [None, None, 429]


def test_new_tokens_are_random_and_hashed() -> None:
    secret, hashed = new_token()
    assert len(secret) >= 43
    assert secret not in hashed
    assert hash_of(secret) == hashed
    assert new_token()[0] != secret


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('host = "0.0.0.0"', "can be reached from other machines and needs tokens"),
        ('host = "::"', "needs tokens"),
        ('host = "example.org"', "needs tokens"),
        ('certificate = "c.pem"', "give both certificate and key"),
        ('key = "k.pem"', "give both certificate and key"),
        ('certificate = "c.pem"\nkey = "k.pem"', "there is no file .*c.pem"),
        ('[[tokens]]\nname = "a"\nsha256 = "my secret"\nscopes = ["decide"]', "sha256"),
        ('[[tokens]]\nname = "a"\nsha256 = "' + "0" * 64 + '"\nscopes = ["all"]', "scopes"),
        (token("a", ["decide"]) + token("b", ["admin"]), "the tokens 'a' and 'b' have the same sha256"),
        (token("a", ["decide"]) + token("a", ["decide"]), "the tokens 'a' and 'a' have the same sha256"),
        (token("", ["decide"]), "the name of a token must not be empty"),
        (token(r"a\r\nset-cookie: b", ["decide"]), "the name of a token must not contain line breaks"),
        (token("a", ["decide"]).replace('"\nscopes', r'\n"' + "\nscopes"), "sha256"),
        ('[experiments." "]\narms = ["a", "b"]\ncontexts = ["c"]', "the name of an experiment must not be empty"),
        ('[experiments."a\\nb"]\narms = ["a", "b"]\ncontexts = ["c"]', "an experiment must not contain line breaks"),
        ('[experiments.e]\narms = ["a", ""]\ncontexts = ["c"]', "experiments.e: the name of an arm must not be empty"),
        ('[experiments.e]\narms = ["a", "b\\r"]\ncontexts = ["c"]', "an arm must not contain line breaks"),
        ('[experiments.e]\narms = ["a", "b"]\ncontexts = ["c"]\ndefault_reward = "nothing"', "default_reward"),
        ("port = 99999", "port"),
        ("colour = 1", "colour"),
        ('durability = "none"', "durability"),
    ],
)
def test_invalid_settings_are_refused(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "ads.toml"
    path.write_text(text + EXPERIMENT)
    with pytest.raises(ValueError, match=sentence):
        read_settings(path)


@pytest.mark.parametrize("window", ["1000000000000 days", "3651 days", "9" * 400 + " seconds"])
def test_windows_of_more_than_ten_years_are_refused(tmp_path: Path, window: str) -> None:
    path = tmp_path / "ads.toml"
    path.write_text(f'{EXPERIMENT}window = "{window}"')
    with pytest.raises(ValueError, match=r"experiments\.ads: window is at most 3,650 days; got"):
        read_settings(path)
    path.write_text(f'{EXPERIMENT}window = "3650 days"')
    assert read_settings(path).experiments["ads"].seconds == 3650 * 86400


def test_settings_can_leave_unanswered_decisions_out(tmp_path: Path) -> None:
    path = tmp_path / "ads.toml"
    path.write_text(f'{EXPERIMENT}default_reward = "none"')
    assert read_settings(path).experiments["ads"].default_reward == "none"


def test_new_arms_have_names_that_fit_one_line(web: Web) -> None:
    for name in ("green\r\n", " ", "\u2028"):
        refused = web.ask("POST", "/v1/change", {"add": [{"name": name}]}, bearer("keeper"))
        assert refused.status == 400
        assert "the name of an arm must not" in refused.said["error"]


def test_with_tokens_a_service_may_listen_on_any_address(tmp_path: Path) -> None:
    path = tmp_path / "ads.toml"
    path.write_text('host = "0.0.0.0"\n' + token("all", SCOPES["all"]) + EXPERIMENT)
    assert read_settings(path).host == "0.0.0.0"


def test_the_command_reports_invalid_settings(tmp_path: Path) -> None:
    path = tmp_path / "ads.toml"
    path.write_text('host = "0.0.0.0"' + EXPERIMENT)
    done = subprocess.run(
        [sys.executable, "-m", "bothworlds", "serve", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "needs tokens" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_address_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "ads.toml"
    path.write_text("port = 0" + EXPERIMENT)
    settings = msgspec.structs.replace(read_settings(path), host="no-such-host.invalid")
    with pytest.raises(OSError, match=r"cannot listen on no-such-host\.invalid:0"):
        placed(settings, None)
