"""Data sets as bandits in small: shares by hand, the command line, players that need a package, and their updates."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from bothworlds import datasets
from bothworlds.datasets import Stream

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")


def module(name: str) -> Any:
    return importlib.import_module(name)


def line(data: str, order: str, seed: int, player: str, reward: float, uniform: float = 0.5) -> Any:
    return module("stream_table").Row(data, order, seed, player, 10, reward, reward, uniform, 0.5, 0.9, 1.0, 0.1)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A data set in place of iris: the sign of one feature is the class."""

    def stream(name: str, *, rounds: int, rng: int) -> Stream:
        points = np.random.default_rng(rng).normal(size=(rounds, 2))
        return Stream.labelled(name, contexts=points, labels=(points[:, 0] > 0).astype(int), arms=2)

    monkeypatch.setattr(datasets, "read_stream", stream)


def test_shares_by_hand() -> None:
    rows = [
        line("a", "shuffled", 1, "good", 0.9, uniform=0.4),
        line("a", "shuffled", 2, "good", 0.7, uniform=0.6),  # mean .8, uniform .5: the best, share 1
        line("a", "shuffled", 1, "poor", 0.4, uniform=0.4),
        line("a", "shuffled", 2, "poor", 0.75, uniform=0.6),  # mean .575: share .25
        line("b", "shuffled", 1, "good", 0.5),
        line("b", "shuffled", 1, "poor", 0.75),  # the best here; good has 0
        line("a", "drift", 1, "good", 0.51),
        line("a", "drift", 1, "poor", 0.515),  # a range of .015: left out
    ]
    table = module("stream_table")
    found, omitted = table.shares(rows)
    assert omitted == [("a", "drift")]
    assert found == pytest.approx(
        {
            ("a", "shuffled", "good"): 1.0,
            ("a", "shuffled", "poor"): 0.25,
            ("b", "shuffled", "good"): 0.0,
            ("b", "shuffled", "poor"): 1.0,
        }
    )
    means = table.by_order(found)
    assert means["good"] == {"shuffled": 0.5, "all": 0.5}
    text = table.table(rows, ["shuffled", "drift"])
    assert "| good | 0.500 |  | 0.500 |" in text
    assert "| poor | 0.625 |  | 0.625 |" in text
    assert "Left out" in text.splitlines()[-1]
    assert table.restarts(rows, ["shuffled"]) == ""
    restarted = [row._replace(restarts=row.seed) for row in rows if row.player == "good"]
    assert table.restarts(restarted, ["shuffled", "drift"]) == (
        "Restarts of good: shuffled 1.3 (most 2), drift 1.0 (most 1)."
    )
    both = table.beside(rows, "poor", "good", ["shuffled", "drift"])
    assert both.splitlines()[2:] == ["| shuffled | 0.625 | 0.500 | 1.250 | a |"]
    rewards = table.rewards_table(rows, "shuffled").splitlines()
    assert rewards[0] == "| shuffled | *uniform* | *constant* | *linear* | good | poor |"
    assert rewards[2:] == [
        "| a | 0.500 | 0.500 | 0.900 | 0.800 | 0.575 |",
        "| b | 0.500 | 0.500 | 0.900 | 0.500 | 0.750 |",
    ]


def test_help_and_unknown_players() -> None:
    runner = CliRunner()
    helped = runner.invoke(module("streams").main, ["--help"])
    assert helped.exit_code == 0
    assert "--from-csv" in helped.output
    refused = runner.invoke(module("streams").main, ["--players", "matchd"])
    assert refused.exit_code == 2
    assert "unknown matchd; known are matched" in refused.output


@pytest.mark.usefixtures("made")
def test_a_tiny_run_and_its_table_from_the_file(tmp_path: Path) -> None:
    out = tmp_path / "found.csv"
    options = ["--data", "iris", "--orders", "shuffled", "--orders", "drift", "--rounds", "60", "--seeds", "2"]
    options += [
        "--archive",
        "40",
        "--cells",
        "4",
        "--players",
        "matched,listed D-LinUCB,LinUCB 1,D-LinUCB,LinTS,uniform",
    ]
    done = CliRunner().invoke(module("streams").main, [*options, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "seed 2, iris, drift, LinTS" in done.stderr
    rows = module("streams").read(out)
    assert len(rows) == 2 * 2 * 6
    assert {row.rounds for row in rows} == {60}
    assert all(row.uniform == 0.5 and row.label == 1.0 for row in rows)
    heads = [text for text in out.read_text(encoding="utf-8").splitlines() if text.startswith("#")]
    assert heads[0] == "# rounds 60, archive 40, cells 4, seeds 1 to 2"
    again = CliRunner().invoke(module("streams").main, ["--from-csv", str(out), *options[2:6]])
    assert again.stdout in done.stdout
    more = ["--from-csv", str(out), "--rewards", "--beside"]
    both = CliRunner().invoke(module("streams").main, [*more, "matched,D-LinUCB"])
    assert "| order | matched | D-LinUCB | ratio |" in both.stdout
    assert "| drift | *uniform*" in both.stdout
    assert "| alternating | *uniform*" not in both.stdout  # not played
    wrong = CliRunner().invoke(module("streams").main, [*more, "matched"])
    assert wrong.exit_code == 2
    assert "separated by a comma" in wrong.output
    best = {row.player: row.reward for row in rows if row.order == "shuffled" and row.seed == 1}
    assert best["LinUCB 1"] > 0.8 > best["uniform"]


@pytest.mark.usefixtures("made")
def test_players_of_a_missing_package_are_left_out_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    vw, runner = module("stream_vw"), CliRunner()
    monkeypatch.setattr(vw, "package", lambda: None)
    options = ["--data", "iris", "--orders", "shuffled", "--rounds", "4", "--seeds", "1"]
    done = runner.invoke(module("streams").main, [*options, "--players", "uniform,VW regcb"])
    assert done.exit_code == 0
    assert "which is not installed: pip install vowpalwabbit; left out" in done.stderr
    assert "VW" not in done.stdout
    none_left = runner.invoke(module("streams").main, [*options, "--players", "VW regcb"])
    assert none_left.exit_code == 1
    assert "nothing was played" in none_left.output
    with pytest.raises(ModuleNotFoundError, match="pip install vowpalwabbit"):
        vw.VowpalWabbit("VW regcb", 2, seed=1)


def test_a_missing_data_set_is_left_out_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bothworlds.datasets.tables.folder_of", lambda package: None)
    importlib.import_module("bothworlds.datasets.tables").table.cache_clear()
    done = CliRunner().invoke(module("streams").main, ["--data", "iris", "--players", "uniform"])
    assert done.exit_code == 1
    assert "iris left out: the data set iris needs scikit-learn" in done.stderr


@pytest.mark.parametrize("policy", ["VW squarecb", "VW regcb", "VW cover", "VW epsilon"])
def test_vowpal_wabbit_learns_where_it_is_installed(policy: str) -> None:
    pytest.importorskip("vowpalwabbit", reason="vowpalwabbit is not installed")
    rows = Stream.labelled("sign", contexts=[[1.0], [-1.0]] * 200, labels=[1, 0] * 200, arms=2)
    assert module("streams").play(module("stream_vw").VowpalWabbit(policy, 2, seed=1), rows)[200:].mean() > 0.6


def test_regressions_are_those_of_the_normal_equations() -> None:
    rivals, rng = module("stream_rivals"), np.random.default_rng(1)
    ridge, plain = rivals.Ridge(2, 3), rivals.LinUCB(2, 3, width=0.5)
    fading = rivals.DLinUCB(2, 3, width=0.5, discount=0.9)
    sums, faded, twice = (np.tile(np.eye(4), (2, 1, 1)) for _ in range(3))
    response, weighted = np.zeros((2, 4)), np.zeros((2, 4))
    for t in range(30):
        x, arm, reward = np.append(rng.normal(size=3), 1.0), t % 2, float(rng.random())
        ridge.learn(x, arm, reward)
        sums[arm] += np.outer(x, x)
        response[arm] += reward * x
        faded, twice, weighted = 0.9 * faded + 0.1 * np.eye(4), 0.81 * twice + 0.19 * np.eye(4), 0.9 * weighted
        faded[arm] += np.outer(x, x)
        twice[arm] += np.outer(x, x)
        weighted[arm] += reward * x
        fading.x, fading.arm = x, arm
        fading.update(reward)
    x = np.append(rng.normal(size=3), 1.0)
    mean, deviation = ridge.predict(x)
    assert mean == pytest.approx([x @ np.linalg.solve(sums[a], response[a]) for a in range(2)])
    assert deviation**2 == pytest.approx([x @ np.linalg.solve(sums[a], x) for a in range(2)])
    plain.ridge = ridge
    assert plain.act(x[:3]) == int((mean + 0.5 * deviation).argmax())
    inverses = np.linalg.inv(faded)
    widths = [0.5 * np.sqrt(x @ inverses[a] @ twice[a] @ inverses[a] @ x) for a in range(2)]
    indices = [x @ inverses[a] @ weighted[a] + widths[a] for a in range(2)]
    assert fading.act(x[:3]) == int(np.argmax(indices))
    assert fading.indices(x) == pytest.approx(indices)


def test_discount_one_is_linucb() -> None:
    rivals, rng = module("stream_rivals"), np.random.default_rng(2)
    players = rivals.LinUCB(3, 2, width=1.0), rivals.DLinUCB(3, 2, width=1.0, discount=1.0)
    for _ in range(60):
        row = rng.normal(size=2)
        arms = [player.act(row) for player in players]
        assert arms[0] == arms[1]
        reward = float(rng.random())
        for player in players:
            player.update(reward)
