"""Files are written atomically, also by several threads."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bothworlds.problem.file_format import write_bytes


def test_two_threads_write_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both threads finish their partial file before either moves it into place."""
    both, replace = threading.Barrier(2, timeout=20), Path.replace

    def wait_and_replace(self: Path, target: Any) -> Path:
        both.wait()
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", wait_and_replace)
    contents = [letter * 100_000 for letter in (b"a", b"b")]
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda content: write_bytes(tmp_path / "file", content), contents))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() in contents


def test_a_failed_write_leaves_no_partial_file(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(OSError, match="cannot write"):
        write_bytes(tmp_path / "file", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
