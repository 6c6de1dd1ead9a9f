"""`bothworlds serve` and `bothworlds service token`: settings, tokens, refusals, and access with a browser."""

import base64
import hashlib
import json
import re
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from bothworlds.cli import main
from bothworlds.service.auth import cross_site_refusal
from bothworlds.service.demo import TASTES, demo_settings
from bothworlds.service.server import address, placed
from bothworlds.service.settings import Settings, read_settings
from support.service_process import UNIFORM, got, posted, served


def called(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def with_contexts(contexts: str) -> str:
    """Return settings with other contexts."""
    return re.sub("contexts = .*", f"contexts = {contexts}", UNIFORM)


def written(text: str) -> str:
    Path("ads.toml").write_text(text, encoding="utf-8")
    return "ads.toml"


def test_the_example_is_valid_with_its_commented_settings() -> None:
    text = called("serve", "--example").output
    assert called("serve", "--check", written(text)).output == "ads.toml: ok, with banners\n"
    for line in ("most_bytes", "safe_arm", "other"):
        assert f"# {line} = " in text
        text = text.replace(f"# {line} = ", f"{line} = ")
    settings = read_settings(written(text))
    assert settings.most_bytes == 1_000_000
    assert settings.experiments["banners"].safe_arm == "loyalty card"
    assert read_settings(written(text.replace("default_reward", "# "))).experiments["banners"].default_reward == 0.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "experiments"),
        ("[experiments", "not valid TOML"),
        (UNIFORM.replace("arms", "arm"), "unknown setting of experiments.banners 'arm'; did you mean 'arms'?"),
        (f"durable = true\n{UNIFORM}", "unknown setting 'durable'; did you mean 'durability'?"),
        (f'store = "."\n{UNIFORM}', "store must be a file, but . is a folder"),
        ('[experiments.a]\nproblem = "ads.json"\nreward_range = [0, 5]', "reward_range belongs to the problem"),
        ('[experiments.a]\nproblem = "ads.json"\nother = "the rest"', "other belongs to the problem in ads.json"),
        (UNIFORM.replace('"blue"', ""), "at least two arms"),
        (f'host = "0.0.0.0"\n{UNIFORM}', "bothworlds service token NAME"),
        (f"{UNIFORM}\nwindow = '3 fortnights'", "a duration is a positive number and a unit"),
        (f"{UNIFORM}\nsafe_arm = 'green'", "'green' is not an arm"),
        (with_contexts("{ a = 0, b = 0 }"), "the share of context 'a' must be positive; got 0"),
        (with_contexts("{ a = 1, b = -1 }"), "the share of context 'b' must be positive; got -1"),
        (with_contexts('["a", "a", "b"]'), "contexts lists a context twice"),
        (f'store = "nowhere/ads.sqlite"\n{UNIFORM}', "there is no folder nowhere for the store"),
    ],
)
def test_invalid_settings_are_refused_with_a_message(text: str, words: str) -> None:
    done = called("serve", "--check", written(text))
    assert done.exit_code == 3
    assert words in done.output
    assert called("serve", written(text)).exit_code == 3


def test_check_finds_an_algorithm_that_does_not_fit_its_problem() -> None:
    """Each is right by itself; before, it was found when the service began."""
    text = with_contexts("[" + ", ".join(f'"{i}"' for i in range(12)) + "]")
    listing = text.replace('kind = "uniform"', 'kind = "LinearEXP4", horizon = 1000')
    done = called("serve", "--check", written(listing))
    assert done.exit_code == 3
    assert "experiments.banners: there are more than 2,000 linear policies" in done.output


@pytest.mark.parametrize(
    "arguments", [[], ["--check"], ["ads.toml", "--demo"], ["--demo", "--example"], ["ads.toml", "--folder", "here"]]
)
def test_options_that_exclude_each_other(arguments: list[str]) -> None:
    assert called("serve", *arguments).exit_code == 2


def test_a_port_in_use_is_reported_before_the_service_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = called("serve", written(UNIFORM), "--port", str(port))
    assert (done.exit_code, done.output) == (
        1,
        f"cannot listen on 127.0.0.1:{port}: another program listens there\n",
    )
    assert not Path("bothworlds.sqlite").exists()


def test_port_zero_finds_a_free_port() -> None:
    settings = placed(read_settings(written(UNIFORM)), 0)
    assert settings.port > 0
    assert address(settings) == f"http://127.0.0.1:{settings.port}"
    assert (
        address(msgspec.structs.replace(settings, host="::1", certificate="c", key="k"))
        == f"https://[::1]:{settings.port}"
    )


@pytest.mark.parametrize(
    "command",
    [
        ["serve", "ads.toml"],
        ["serve", "--demo"],
        ["service", "token", "me", "--scope", "admin"],
        ["service", "verify", "ads.sqlite"],
        ["evaluate", "ads.sqlite", "--policy", "uniform"],
    ],
    ids=" ".join,
)
def test_missing_packages_are_reported(command: list[str]) -> None:
    written(UNIFORM)
    program = f"import sys; sys.modules['msgspec'] = None; from bothworlds.cli import main; main({command})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith(
        "needs msgspec, which is not installed; from a clone of the repository: pip install '.[serve]'\n"
    )


def test_the_settings_contain_only_the_hash_of_a_token() -> None:
    done = called(
        "service", "token", 'the "shop"', "--scope", "decide", "--scope", "decide", "--scope", "reward", "--rate", "5"
    )
    secret = done.stderr.split()[-1]
    (made,) = tomllib.loads(done.stdout)["tokens"]
    hashed = hashlib.sha256(secret.encode()).hexdigest()
    assert made == {"name": 'the "shop"', "sha256": hashed, "scopes": ["decide", "reward"], "rate": 5.0}
    assert secret not in done.stdout
    assert len(secret) >= 43
    assert called("serve", "--check", written(UNIFORM + done.stdout)).exit_code == 0
    token = json.loads(called("service", "token", "me", "--scope", "admin", "--json").stdout)
    assert token["sha256"] == hashlib.sha256(token["secret"].encode()).hexdigest()
    assert called("service", "token", "me").exit_code == 2
    assert called("service", "token", "me\n", "--scope", "admin").exit_code == 2


SECRETS = {"shop": "shop-secret", "me": "my-secret"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service with a token that decides, and one of an admin."""
    folder = tmp_path_factory.mktemp("tokens")
    lines = [
        f'[[tokens]]\nname = "{name}"\nscopes = ["{scope}"]\nsha256 = "{hashlib.sha256(secret.encode()).hexdigest()}"'
        for (name, secret), scope in zip(SECRETS.items(), ("decide", "admin"), strict=True)
    ]
    (folder / "ads.toml").write_text("\n".join([UNIFORM, *lines]), encoding="utf-8")
    with served(folder, "ads.toml") as found:
        yield found


def basic(secret: str) -> str:
    return f"Basic {base64.b64encode(f'whoever:{secret}'.encode()).decode()}"


def test_browsers_send_the_token_as_a_password(guarded: str) -> None:
    status, headers, _ = got(guarded, "/")
    assert status == 401
    assert headers["www-authenticate"].startswith("Basic realm=")
    status, headers, text = got(guarded, "/", authorization=basic("my-secret"))
    assert status == 200
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert "<h1>banners</h1>" in text
    assert got(guarded, "/", authorization="Bearer my-secret")[0] == 200
    assert got(guarded, "/", authorization=basic("shop-secret"))[0] == 403
    for wrong in (basic("wrong"), "Basic !!!", "Basic", "Bearer", "Digest x", basic("")):
        assert got(guarded, "/", authorization=wrong)[0] == 401


def test_passwords_are_not_accepted_by_post(guarded: str) -> None:
    body = '{"context": "mobile"}'
    assert posted(guarded, "/v1/decide", body, authorization=basic("shop-secret"))[0] == 401
    assert posted(guarded, "/v1/decide", body, authorization="Bearer shop-secret")[0] == 200
    assert posted(guarded, "/v1/change", "{}", authorization=basic("my-secret"))[0] == 401


def test_with_tokens_any_host_and_origin_is_allowed(guarded: str) -> None:
    assert got(guarded, "/v1/plan", host="ads.example", authorization="Bearer shop-secret")[0] == 200
    headers = {"origin": "https://ads.example", "authorization": "Bearer shop-secret"}
    assert posted(guarded, "/v1/decide", '{"context": "mobile"}', **headers)[0] == 200


@pytest.mark.parametrize("host", [None, "localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]", "[::1]:8080"])
def test_names_of_this_machine(host: str | None) -> None:
    assert cross_site_refusal(host, None) is None
    assert cross_site_refusal(host, "http://evil.example") is not None


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:80", "[2001:db8::1]:80", "localhost.evil", ":80"]
)
def test_names_of_other_machines(host: str) -> None:
    assert cross_site_refusal(host, None) is not None


def test_the_demo_uses_the_example_settings(tmp_path: Path) -> None:
    settings = demo_settings(tmp_path, port=0)
    settings.check()
    assert isinstance(settings, Settings)
    banners = settings.experiments["banners"]
    for tastes in TASTES:
        assert list(tastes) == list(banners.contexts)
        assert {len(rates) for rates in tastes.values()} == {len(banners.arms)}


@pytest.mark.parametrize("arguments", [["verify"], ["rollback", "3"], ["erase"], ["export", "log.jsonl"]])
def test_a_missing_store_is_a_bad_input(arguments: list[str]) -> None:
    """And not one that is not as its log says, which has exit code 1."""
    command, *rest = arguments
    done = called("service", command, "no.sqlite", *rest)
    assert done.exit_code == 3
    assert "no such store: no.sqlite" in done.output
