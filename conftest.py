"""Shared set-up of all tests and documentation examples."""

from pathlib import Path

import pytest
from hypothesis import settings

collect_ignore = ["docs/api.md", "docs/each-algorithm.md"]  # their examples are docstrings, and run there

# No time limits: machines may be shared and slow.
settings.register_profile("shared", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("shared")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run everything in a folder of its own: examples write files."""
    monkeypatch.chdir(tmp_path)
