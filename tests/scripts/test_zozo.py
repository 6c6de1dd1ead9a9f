"""The example on ZOZO's log: from a folder it makes the table of the page; without data there is a sentence."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import zozo
from bothworlds import logs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two rows for each campaign and policy: one click at random, one of the other."""
    for campaign in ("all", "men", "women"):
        for policy, propensity in (("random", 0.5), ("bts", 0.25)):
            (tmp_path / policy / campaign).mkdir(parents=True)
            row = {"time": 0.0, "context": "u", "offered": ("0", "1"), "propensity": propensity}
            rows = [logs.Row(id=str(i), arm=str(i), reward=float(i), **row) for i in range(2)]  # type: ignore[arg-type]
            logs.write_open_bandit(rows, tmp_path / policy / campaign / f"{campaign}.csv")
    return tmp_path


def test_the_table_by_hand(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before {zozo.BEGIN} old {zozo.END} after", encoding="utf-8")
    monkeypatch.setattr(zozo, "PAGE", page)
    monkeypatch.setattr(sys, "argv", ["zozo.py", "page", "--folder", str(folder)])
    zozo.main()
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before ")
    assert text.endswith(" after")
    # weights 0.5/0.25 = 2, rewards 0 and 1: a mean of 1 with standard error sqrt(1/1), and two effective rows
    assert "| men | 2 | 1 | 1 | 10,000 | 10,000 | 2 |" in text


def test_without_the_data_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: Any = subprocess.CompletedProcess([], 1, "", "no network")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    monkeypatch.setattr(sys, "argv", ["zozo.py"])
    with pytest.raises(SystemExit, match=r"obp==0\.4\.1 cannot be downloaded.*'no network'.*--folder obd"):
        zozo.main()
