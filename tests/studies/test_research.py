"""The research notes: all are listed, and neither the site nor pytest nor the package has them."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOTES = sorted((ROOT / "research").glob("*.md"))


def test_every_note_is_listed_and_every_figure_is_shown() -> None:
    listed = (ROOT / "research" / "README.md").read_text(encoding="utf-8")
    assert [note.name for note in NOTES if note.name != "README.md" and f"({note.name})" not in listed] == []
    shown = {name for note in NOTES for name in re.findall(r"\(figures/([\w-]+\.svg)\)", note.read_text("utf-8"))}
    assert {path.name for path in (ROOT / "research" / "figures").iterdir()} == shown


def test_notes_are_neither_on_the_site_nor_tested_nor_packaged() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "research" not in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert not any("research" in path for path in settings["tool"]["pytest"]["ini_options"]["testpaths"])
    assert settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/bothworlds"]
