"""Documentation: every relative link leads somewhere, every dotted name exists."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_exist(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert missing == []


def resolve(name: str) -> object:
    """Import the longest module prefix, then follow attributes."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            found = getattr(found, attribute)
        return found
    raise ModuleNotFoundError(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_dotted_names_exist(page: Path) -> None:
    for name in re.findall(r"`(bothworlds(?:\.\w+)+)`", page.read_text(encoding="utf-8")):
        assert resolve(name) is not None


def test_the_example_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    example = importlib.import_module("first_decisions")
    monkeypatch.setattr(example, "VISITORS", 300)
    example.main()
    assert "certified:" in capsys.readouterr().out


def test_the_example_of_new_visitors_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    example = importlib.import_module("new_visitors")
    monkeypatch.setattr(example, "VISITORS", 200)
    example.main()
    assert "LC-Tsallis-INF:" in capsys.readouterr().out
