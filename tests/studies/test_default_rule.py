"""The study of the parts of the default rule, far smaller: a row for each world, a column for each tuning."""

import pytest

import default_rule


@pytest.mark.soak
def test_each_world_has_a_row(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(default_rule, "REGIMES", ["low noise", "rare clicks"])
    monkeypatch.setattr("sys.argv", ["default_rule.py", "--horizon", "60", "--replications", "2"])
    default_rule.main()
    head, _, *rows = capsys.readouterr().out.strip().splitlines()
    assert head == "| world | " + " | ".join(default_rule.TUNINGS) + " |"
    assert [row.split(" | ")[0] for row in rows] == ["| low noise", "| rare clicks"]
    assert all(row.count(" (") == len(default_rule.TUNINGS) for row in rows)
