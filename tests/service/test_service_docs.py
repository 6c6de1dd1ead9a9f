"""The lines of docs/service.md, asked of a service that runs: answers have the shape that stands there."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bothworlds.service.client import Client
from bothworlds.service.example import EXAMPLE
from bothworlds.service.openapi import GETS, POSTS
from served import got, posted, served

PAGE = Path(__file__).parents[2] / "docs" / "service.md"
ASKED = re.findall(r"^\$ (curl .*)\n(\{.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
DRAWN = {
    "arm",
    "propensity",
    "version",
    "digest",
    "time",
    "reward_time",
    "learned_in",
    "probabilities",
    "holdout",
    "confirmed",
    "versions",
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("docs")
    (folder / "ads.toml").write_text(EXAMPLE, encoding="utf-8")
    with served(folder, "ads.toml") as found:
        yield found


def shape(told: Any) -> Any:
    """Return what is told without what is drawn by lot or depends on the time."""
    if isinstance(told, dict):
        return {name: shape(part) for name, part in told.items() if name not in DRAWN}
    return [shape(part) for part in told] if isinstance(told, list) else told


def replaced(learned: Any) -> Any:
    """A reward of a decision that was held out is not learnt, which is rare, and by lot."""
    if isinstance(learned, dict):
        if "learned" in learned:
            return {name: part for name, part in learned.items() if name not in ("learned", "reason")}
        return {name: replaced(part) for name, part in learned.items()}
    return [replaced(part) for part in learned] if isinstance(learned, list) else learned


def test_answers_are_what_the_page_says(address: str) -> None:
    assert len(ASKED) >= 12
    for command, answer in ASKED:
        words = shlex.split(command)
        assert words[:2] == ["curl", "-s"]
        path = words[2].removeprefix("localhost:8080")
        assert path.startswith("/")
        told = posted(address, path, words[4])[1] if words[3:4] == ["-d"] else got(address, path)[2]
        assert replaced(shape(json.loads(told))) == replaced(shape(json.loads(answer))), command


def test_every_path_stands_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for path in [*POSTS, *GETS, "/v1/health", "/metrics", "/openapi.json"]:
        assert path.partition("{")[0] in text, path


def test_the_page_goes_back_to_no_version_before_its_last_change() -> None:
    """That would be refused: whoever pastes the page from its beginning to its end sees what it says."""
    text = PAGE.read_text(encoding="utf-8")
    changed = max(int(json.loads(answer)["version"]) for command, answer in ASKED if "/v1/change" in command)
    wanted = re.findall(r"""/v1/rollback -d '\{"version": (\d+)\}'|bothworlds rollback \S+ (\d+)""", text)
    assert len(wanted) == 2
    assert all(int(http or command) >= changed for http, command in wanted)


def test_the_python_lines_run(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix(">>> ") for line in block.splitlines() if line.startswith(">>> ")]
    names: dict[str, Any] = {}
    exec("\n".join(lines).replace("http://127.0.0.1:8080", address), names)
    client = names["client"]
    assert isinstance(client, Client)
    assert client.decision("visit 10").reward == 1.0
    client.close()
