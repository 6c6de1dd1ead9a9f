"""The files in deploy/: alerts and dashboard name metrics and labels that exist, and the rest names what is there."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml  # type: ignore[import-untyped]
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from bothworlds.cli import main
from support.service_http import served

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
FROM_PROMETHEUS = {"instance", "job", "le"}
METRIC = re.compile(r"\b(?:bothworlds|process)_[a-z_]+\b")
SELECTOR = re.compile(r"\b([a-z_]+)\{([^}]*)\}")
MATCHER = re.compile(r'([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
GROUPING = re.compile(r"\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)")
FUNCTION = re.compile(r"\b([a-z_]+)\s*\(")
KNOWN_FUNCTIONS = {
    *("absent", "sum", "max", "min", "rate", "increase", "delta", "changes", "histogram_quantile", "predict_linear"),
    *("clamp_min", "by", "on", "and", "or", "unless"),
}
SETTINGS = """
durability = "process"
[experiments.ads]
arms = ["red", "blue"]
contexts = ["mobile", "desktop"]
algorithm = { kind = "uniform" }
holdout = 0.5
window = "0.1 seconds"
"""


class Scrape(NamedTuple):
    """Names of the metrics in a scrape, and the values of each label by name of the metric."""

    names: set[str]
    labels: dict[str, dict[str, set[str]]]


@pytest.fixture(scope="module")
def scrape(tmp_path_factory: pytest.TempPathFactory) -> Scrape:
    """The real output of /metrics after some requests."""
    with served(tmp_path_factory.mktemp("deploy"), SETTINGS) as web:
        for number in range(20):
            web.post("/v1/decide", {"context": "mobile", "id": f"{number}"})
        web.post("/v1/reward", {"id": "1", "reward": 1.0})
        while True:
            text = web.ask("GET", "/metrics").body.decode()
            if 'arm="red"' in text and 'kind="late"' in text:
                break
            web.post("/v1/reward", {"id": "2", "reward": 1.0})
    found = Scrape(set(), {})
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.names.add(sample.name)
            for label, value in sample.labels.items():
                found.labels.setdefault(sample.name, {}).setdefault(label, set()).add(value)
    return found


def rules() -> list[dict[str, Any]]:
    content = yaml.safe_load((DEPLOY / "prometheus-alerts.yml").read_text(encoding="utf-8"))
    return [rule for group in content["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((DEPLOY / "grafana-dashboard.json").read_text())["panels"]
    return found


def expressions() -> Iterator[tuple[str, str]]:
    """Yield all expressions with the text that shows their result."""
    for rule in rules():
        yield rule["expr"], " ".join(rule["annotations"].values())
    for panel in panels():
        for target in panel["targets"]:
            yield target["expr"], target["legendFormat"]


def faults(expression: str, shown: str, scrape: Scrape) -> Iterator[str]:
    """Yield what is wrong with an expression."""
    names = set(METRIC.findall(expression))
    if not names:
        yield "no metric"
    yield from (f"unknown metric {name}" for name in names - scrape.names)
    labels = FROM_PROMETHEUS.union(*(scrape.labels.get(name, {}) for name in names))
    for name, matchers in SELECTOR.findall(expression):
        for label, operator, value in MATCHER.findall(matchers):
            values = scrape.labels.get(name, {}).get(label)
            if values is None:
                yield f"{name} has no label {label}"
            elif operator == "=" and value not in values:
                yield f"{name} has no {label}={value}"
            elif operator == "=~" and label == "route" and not any(re.fullmatch(value, one) for one in values):
                yield f"no {label} of {name} matches {value}"
    grouped = {word.strip() for group in GROUPING.findall(expression) for word in group.split(",") if word.strip()}
    yield from (f"unknown label {label}" for label in grouped - labels)
    yield from (f"unknown label {label} is shown" for label in set(_shown(shown)) - labels)
    yield from (f"unknown function {name}" for name in set(FUNCTION.findall(expression)) - KNOWN_FUNCTIONS)
    if any(expression.count(a) != expression.count(b) for a, b in ("()", "{}", "[]")):
        yield "brackets"


def _shown(text: str) -> Iterable[str]:
    return re.findall(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}", text)


def test_alerts_and_dashboard_name_metrics_and_labels_that_exist(scrape: Scrape) -> None:
    checked = list(expressions())
    assert len(checked) > 30
    found = {expression: list(faults(expression, shown, scrape)) for expression, shown in checked}
    assert {expression: wrong for expression, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("expression", "shown", "fault"),
    [
        ("bothworlds_absent > 0", "", "unknown metric bothworlds_absent"),
        ('bothworlds_records_total{kind="decision"}', "", "bothworlds_records_total has no kind=decision"),
        ('bothworlds_ready{experiment="ads"}', "", "bothworlds_ready has no label experiment"),
        ("sum by (arm) (bothworlds_ready)", "", "unknown label arm"),
        ("bothworlds_ready", "{{ $labels.experiment }}", "unknown label experiment is shown"),
        ("rates(bothworlds_ready[5m])", "", "unknown function rates"),
        ("rate(bothworlds_ready[5m]", "", "brackets"),
        ("up == 0", "", "no metric"),
    ],
)
def test_the_check_finds_what_is_wrong(expression: str, shown: str, fault: str, scrape: Scrape) -> None:
    assert fault in list(faults(expression, shown, scrape))


def test_every_metric_of_ours_is_shown_or_alerted_on(scrape: Scrape) -> None:
    used = {name for expression, _ in expressions() for name in METRIC.findall(expression)}
    ours = {name for name in scrape.names if name.startswith("bothworlds_")}
    unused = ours - used - {name for name in ours if name.endswith(("_created", "_sum", "_count"))}
    assert unused == {"bothworlds_commits_total"}


def test_alerts_say_how_urgent_they_are_and_what_is_wrong() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"]
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))


def test_the_panels_of_the_dashboard_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in panels()]
    cells = [(x, y) for p in places for x in range(p["x"], p["x"] + p["w"]) for y in range(p["y"], p["y"] + p["h"])]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


@pytest.mark.parametrize("file", ["bothworlds.service", "Dockerfile"])
def test_the_commands_in_the_files_exist(file: str) -> None:
    text = (DEPLOY / file).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith(("ExecStart", "RUN bothworlds", "CMD"))]
    assert lines
    for line in lines:
        if "serve" in line:
            assert CliRunner().invoke(main, ["serve", "--help"]).exit_code == 0
        else:
            assert line == "RUN bothworlds warm --algorithms matched"
            assert "--algorithms" in CliRunner().invoke(main, ["warm", "--help"]).output


def test_the_image_copies_files_that_exist() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    copied = [part for line in re.findall(r"^COPY (.+)$", text, flags=re.MULTILINE) for part in line.split()[:-1]]
    assert copied
    assert all((ROOT / part).exists() for part in copied)
    assert "Not built here" in text.splitlines()[0]


def test_the_scrape_configuration_names_the_rules() -> None:
    content = yaml.safe_load((DEPLOY / "prometheus-scrape.yml").read_text(encoding="utf-8"))
    assert all((DEPLOY / name).exists() for name in content["rule_files"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "bothworlds.service"
    text = (DEPLOY / "bothworlds.service").read_text(encoding="utf-8")
    unit.write_text(re.sub(r"(ExecStart=)\S+", r"\1/bin/sh", text), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert [line for line in done.stderr.splitlines() if "bothworlds.service" in line] == []
