"""The files for several hosts in deploy/: settings, commands, ports, probes and names fit the service."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml  # type: ignore[import-untyped]
from psycopg import pq

from bothworlds.cli import main
from bothworlds.service.routes import PROBES
from bothworlds.service.settings import Settings, read_settings

DEPLOY = Path(__file__).parents[2] / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SOURCES = [path.read_text(encoding="utf-8") for path in (DEPLOY.parent / "src").rglob("*.py")]


def documents(kind: str) -> list[Any]:
    """Return the Kubernetes objects of a kind."""
    texts = [path.read_text(encoding="utf-8") for path in MANIFESTS]
    return [one for text in texts for one in yaml.safe_load_all(text) if one["kind"] == kind]


def hosts() -> dict[str, Any]:
    """Return the services of the compose file that run this package."""
    return {name: one for name, one in COMPOSE["services"].items() if one["image"] == "bothworlds"}


def settings_in_kubernetes(folder: Path) -> Settings:
    (content,) = (one["data"]["ads.toml"] for one in documents("ConfigMap"))
    (folder / "ads.toml").write_text(content, encoding="utf-8")
    return read_settings(folder / "ads.toml")


def role_in(arguments: list[str], settings: str) -> str:
    """Check the arguments of `bothworlds`; return the role."""
    assert arguments[0] == "serve"
    parent = main.make_context("bothworlds", ["serve"])  # with its settings: a command keeps those of the first one
    serve = main.get_command(parent, "serve")
    assert serve is not None
    parsed = serve.make_context("serve", list(arguments[1:]), parent=parent).params
    assert str(parsed["settings"]) == settings
    return str(parsed["role"])


def is_known(variable: str) -> bool:
    """Return whether the client library of PostgreSQL or this package reads an environment variable."""
    libpq = {option.envvar.decode() for option in pq.Conninfo.get_defaults() if option.envvar}
    return variable in libpq or any(variable in source for source in SOURCES)


def seconds(text: str) -> int:
    return int(re.fullmatch(r"(\d+)s", text)[1])  # type: ignore[index]


@pytest.mark.parametrize(
    "path", [DEPLOY / "compose.yaml", DEPLOY / "haproxy.cfg", *MANIFESTS], ids=lambda path: path.name
)
def test_each_says_that_it_was_not_run(path: Path) -> None:
    assert "Not run here" in path.read_text(encoding="utf-8").splitlines()[0]


def test_both_have_the_same_settings_which_are_valid(tmp_path: Path) -> None:
    one, other = read_settings(DEPLOY / "several-hosts.toml"), settings_in_kubernetes(tmp_path)
    assert msgspec.structs.replace(one, folder="") == msgspec.structs.replace(other, folder="")
    one.rehearse()


def test_the_compose_file(tmp_path: Path) -> None:
    settings = read_settings(DEPLOY / "several-hosts.toml")
    roles = {}
    for name, host in hosts().items():
        (volume,) = host["volumes"]
        source, target, mode = volume.split(":")
        assert (DEPLOY / source).is_file()
        assert mode == "ro"
        roles[name] = role_in(host["command"], target)
        assert seconds(host["stop_grace_period"]) > settings.drain
        assert host["deploy"]["replicas"] >= 2
        (address,) = re.findall(r"http://127\.0\.0\.1:(\d+)(/[a-z0-9/]+)'", host["healthcheck"]["test"][-1])
        assert address == (str(settings.port), "/v1/live")
        assert set(host["depends_on"]) <= set(COMPOSE["services"])
    assert roles == {"decide": "decide", "learn": "learn"}
    database = COMPOSE["services"]["database"]
    user, name = database["environment"]["POSTGRES_USER"], database["environment"]["POSTGRES_DB"]
    assert settings.store == f"postgresql://{user}@database/{name}"
    head = (DEPLOY / "compose.yaml").read_text(encoding="utf-8").partition("\nservices:")[0]
    written = set(re.findall(r"([A-Z]+)=%s", head.replace("POSTGRES_", "")))
    assert written == {"PASSWORD", "PGPASSWORD"}
    assert is_known("PGPASSWORD")
    assert not is_known("PG_PASSWORD")


def test_the_balancer_asks_for_a_path_that_exists() -> None:
    text = (DEPLOY / "haproxy.cfg").read_text(encoding="utf-8")
    settings = read_settings(DEPLOY / "several-hosts.toml")
    (path,) = re.findall(r"^\s*option httpchk GET (\S+)$", text, flags=re.MULTILINE)
    assert path in PROBES
    ((count, name, port),) = re.findall(r"server-template \S+ (\d+) (\w+):(\d+)", text)
    assert (name in hosts(), int(port)) == (True, settings.port)
    assert int(count) >= hosts()[name]["deploy"]["replicas"]
    (bound,) = re.findall(r"bind :(\d+)", text)
    assert COMPOSE["services"]["balancer"]["ports"] == [f"127.0.0.1:8080:{bound}"]


def test_the_deployments(tmp_path: Path) -> None:
    settings, roles = settings_in_kubernetes(tmp_path), []
    for deployment in documents("Deployment"):
        pod, labels = deployment["spec"]["template"]["spec"], deployment["spec"]["template"]["metadata"]["labels"]
        (container,) = pod["containers"]
        (mount,), (volume,) = container["volumeMounts"], pod["volumes"]
        assert mount["name"] == volume["name"]
        assert volume["configMap"]["name"] in [one["metadata"]["name"] for one in documents("ConfigMap")]
        roles.append(role_in(container["args"], f"{mount['mountPath']}/ads.toml"))
        assert labels["role"] == roles[-1]
        assert deployment["spec"]["selector"]["matchLabels"] == labels
        assert deployment["spec"]["replicas"] >= 2
        assert pod["terminationGracePeriodSeconds"] > settings.drain
        (port,) = container["ports"]
        assert port["containerPort"] == settings.port
        probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
        assert {name: probe["path"] for name, probe in probes.items()} == {
            "startup": "/v1/live",
            "liveness": "/v1/live",
            "readiness": "/v1/ready",
        }
        assert {probe["path"] for probe in probes.values()} <= set(PROBES)
        assert {probe["port"] for probe in probes.values()} == {port["name"]}
        readiness = container["readinessProbe"]
        assert readiness["periodSeconds"] * readiness["failureThreshold"] < settings.drain
        assert all(is_known(variable["name"]) for variable in container["env"])
        assert f"--uid {container['securityContext']['runAsUser']}" in (DEPLOY / "Dockerfile").read_text()
    assert sorted(roles) == ["decide", "learn"]


def test_the_service_sends_to_the_hosts_that_decide() -> None:
    (service,), (budget,) = documents("Service"), documents("PodDisruptionBudget")
    (decide,) = (one for one in documents("Deployment") if one["metadata"]["name"] == "bothworlds-decide")
    labels = decide["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == budget["spec"]["selector"]["matchLabels"] == labels
    (port,) = service["spec"]["ports"]
    (named,) = decide["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert port["targetPort"] == named["name"]


def test_the_secret_that_the_comment_makes_is_the_one_that_is_used() -> None:
    text = (DEPLOY / "kubernetes" / "settings.yaml").read_text(encoding="utf-8")
    ((name, key),) = re.findall(r"create secret generic (\S+) --from-literal=(\w+)=", text)
    for deployment in documents("Deployment"):
        (variable,) = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
        assert variable["valueFrom"]["secretKeyRef"] == {"name": name, "key": key}


def test_the_image_has_what_several_hosts_need() -> None:
    extras = re.findall(r'"/src\[([a-z,]+)\]"', (DEPLOY / "Dockerfile").read_text(encoding="utf-8"))
    assert extras == ["serve,postgres"]
