"""The coverage study of intervals, in small: it runs, and its table counts what is on disk."""

import sys

import pytest

import intervals


def test_the_study_runs_resumes_and_tells(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(intervals, "ROWS", 60)
    monkeypatch.setattr(sys, "argv", ["intervals.py", "--logs", "1", "--output", "logs"])
    for _ in range(2):
        intervals.main()
    first, second = capsys.readouterr().out.split("| written by")[1:]
    assert first == second
    assert "| matched | best arm | 1 |" in first
    assert "Lowest coverage at all times by betting: 1.000" in first
