"""The examples of docs/how-to/service.md against a running service: the answers have the documented shape."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bothworlds.service.client import Client
from bothworlds.service.demo import EXAMPLE
from bothworlds.service.openapi import GETS, POSTS
from support.service_process import got, posted, served

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "service.md"
EXAMPLES = re.findall(
    r"^```bash\n(curl .*)\n```\n\n```text\n(\{.*)\n```$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE
)
VARIABLE = {
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


def shape(answer: Any) -> Any:
    """Return an answer without random values and times."""
    if isinstance(answer, dict):
        return {name: shape(part) for name, part in answer.items() if name not in VARIABLE}
    return [shape(part) for part in answer] if isinstance(answer, list) else answer


def without_learned(answer: Any) -> Any:
    """Return an answer without whether a reward was learned: decisions are randomly in the holdout."""
    if isinstance(answer, dict):
        if "learned" in answer:
            return {name: part for name, part in answer.items() if name not in ("learned", "reason")}
        return {name: without_learned(part) for name, part in answer.items()}
    return [without_learned(part) for part in answer] if isinstance(answer, list) else answer


def test_examples_with_curl_have_the_documented_answers(address: str) -> None:
    assert len(EXAMPLES) >= 5
    for command, documented in EXAMPLES:
        words = shlex.split(command)
        assert words[:2] == ["curl", "-s"]
        path = words[2].removeprefix("localhost:8080")
        assert path.startswith("/")
        answer = posted(address, path, words[4])[1] if words[3:4] == ["-d"] else got(address, path)[2]
        assert without_learned(shape(json.loads(answer))) == without_learned(shape(json.loads(documented))), command


def test_every_path_is_documented() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for path in [*POSTS, *GETS, "/v1/health", "/metrics", "/openapi.json"]:
        assert path.partition("{")[0] in text, path


def test_the_python_example_runs(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    lines = [line.removeprefix(">>> ") for line in block.splitlines() if line.startswith(">>> ")]
    names: dict[str, Any] = {}
    exec("\n".join(lines).replace("http://127.0.0.1:8080", address), names)
    client = names["client"]
    assert isinstance(client, Client)
    assert client.decision("visit 10").reward == 1.0
    client.close()
