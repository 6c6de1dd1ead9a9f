"""Files are written whole or not at all, and by several threads at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bothworlds.problem.storage import write_bytes


def test_two_threads_write_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have written a part before either puts it in place."""
    both, replace = threading.Barrier(2, timeout=20), Path.replace

    def late(self: Path, target: Any) -> Path:
        both.wait()
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", late)
    contents = [letter * 100_000 for letter in (b"a", b"b")]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda content: write_bytes(tmp_path / "file", content), contents))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() in contents


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(OSError, match="cannot write"):
        write_bytes(tmp_path / "file", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
