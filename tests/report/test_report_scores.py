"""Scores: nobody's depends on who else takes part, and no sentence says more than its table."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bothworlds as bw
from bothworlds.arrays import Floats
from bothworlds.report import Summary, page, summary_of
from bothworlds.report.data import headline_data
from bothworlds.report.scores import Rating, Score, clearly_smallest, finding, ratings, ratio_in_words, scores
from bothworlds.report.terminal import finding_text, table_text
from bothworlds.studies.comparison import comparison
from bothworlds.studies.folder import read_folder
from bothworlds.studies.references import REFERENCES, reference_cells, references_of

NUMBERS: dict[str, Any] = {"horizon": 400, "instances": 1, "replications": 4, "checkpoints": 20}
SIZES = {"contexts": 3, "arms": 2, "dimension": 2}
REGIMES = ["stochastic", "adversarial", "ad fatigue"]
regrets = st.lists(st.floats(-500.0, 5000.0), min_size=4, max_size=4).map(np.array)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All comparisons share it: cells know nothing of the study they were played for."""
    return tmp_path_factory.mktemp("scores")


def compared(folder: Path, *algorithms: str) -> Summary:
    study = comparison(algorithms=algorithms, regimes=REGIMES, sizes=SIZES, **NUMBERS)
    bw.run_study(study, folder, threads=1, quiet=True)
    return summary_of(read_folder(folder))


@settings(max_examples=60, deadline=None)
@given(
    players=st.dictionaries(st.sampled_from("abcdef"), regrets, min_size=2), references=st.lists(regrets, min_size=1)
)
def test_another_player_changes_no_rating(players: dict[str, Floats], references: list[Floats]) -> None:
    rivals = {str(n): values for n, values in enumerate(references)}
    everyone = ratings(players, rivals, dimension=3, horizon=1000)
    for label, outcomes in players.items():
        alone = ratings({label: outcomes}, rivals, dimension=3, horizon=1000)
        np.testing.assert_array_equal(alone[label].several, everyone[label].several)
        assert (everyone[label].several >= 1.0).all()
    regimes = {"one": everyone, "two": ratings(players, rivals, dimension=5, horizon=1000)}
    whole = scores(regimes)
    for count in range(1, len(players)):
        for some in itertools.combinations(players, count):
            fewer = scores({name: {label: rated[label] for label in some} for name, rated in regimes.items()})
            assert all((fewer[label].rating.several == whole[label].rating.several).all() for label in some)
            assert all(fewer[label].regime == whole[label].regime for label in some)


def test_adding_or_leaving_out_a_player_changes_no_score(folder: Path) -> None:
    """Through studies, files and summaries; `certified` once had 99 with `uniform` in the table, and 33 without."""
    tables = [
        ("certified", "matched", "uniform", "LinUCB"),
        ("certified", "matched"),
        ("matched", "LinUCB"),
        ("certified", "uniform"),
        ("matched",),
    ]
    seen: dict[str, Any] = {}
    for names in tables:
        summary = compared(folder, *names)
        assert len(summary.scores) == len(names)
        for label, score in headline_data(summary)["scores"].items():
            assert seen.setdefault(label, score) == score
    assert len(seen) == 4


def test_the_references_are_played_once_and_always(folder: Path) -> None:
    study = comparison(algorithms=["LinUCB", "uniform"], regimes=["stochastic"], sizes=SIZES, **NUMBERS)
    assert {cell.algorithm for cell in reference_cells(study)} == set(REFERENCES)
    keys = {cell.key for cell in study.cells()}
    assert len(keys & {cell.key for cell in reference_cells(study)}) == 2  # both are references themselves
    (panel, *_) = compared(folder, "matched").panels
    assert set(panel.references) == set(REFERENCES)
    assert references_of(panel.entries[0].cell)["RealFTRL"].algorithm_options["horizon"] == 400
    told = headline_data(compared(folder, "matched"))
    assert told["references"] == list(REFERENCES)
    assert told["regimes"][0]["algorithms"][0]["ratio"]["value"] >= 1.0


def test_the_ratio_is_that_of_the_scoreboard(folder: Path) -> None:
    for panel in compared(folder, "certified", "LinUCB").panels:
        still = min((run.expected[:, -1] for run in panel.replayed.values()), key=np.mean, default=np.zeros(4))
        s = np.sqrt(panel.environment.problem.dimension * 400) / 10.0

        def regret(run: Any, panel: Any = panel, still: Any = still) -> float:
            one = run.expected[:, -1] - still if panel.environment.reacts else run.paths[:, -1]
            return max(float(one.mean()), 0.0)

        best = min(regret(run) for run in panel.references.values())
        for entry in panel.entries:
            expected = (regret(entry.run) + s) / (min(best, regret(entry.run)) + s)
            assert panel.ratings[entry.label].value == pytest.approx(expected)


def scored(**several: list[float]) -> dict[str, Score]:
    return {label: Score(Rating(np.array(values)), "calm") for label, values in several.items()}


def test_sentences_need_a_clear_winner() -> None:
    close = scored(a=[1.5, 1.2, 1.9, 1.4], b=[1.6, 2.0, 1.1, 1.7])
    assert clearly_smallest(close) is None
    assert finding(close) == []
    clear = scored(a=[1.5, 1.5, 1.52, 1.48], b=[9.0, 9.1, 8.9, 9.0])
    assert clearly_smallest(clear) == "a"
    one, two = finding(clear)
    assert one.startswith("a is the safest")
    assert two.startswith("b has the largest")
    assert len(finding(clear, baselines=["b"])) == 1
    assert finding(scored(a=[1.5], b=[9.0])) == []  # one replication tells nothing
    assert finding(scored(a=[1.5, 1.5, 1.5])) == []
    same = scored(a=[1.0, 1.0, 1.0], b=[1.0, 1.0, 1.0])
    assert finding(same) == []


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from("abcd"), st.lists(st.floats(1.0, 300.0), min_size=5, max_size=5), min_size=1))
def test_every_sentence_agrees_with_its_table(table: dict[str, list[float]]) -> None:
    found = scored(**table)
    values = {label: score.value for label, score in found.items()}
    for sentence in finding(found):
        label, *_ = sentence.split()
        assert f" {ratio_in_words(values[label])}, in the regime calm." in sentence
        if "safest" in sentence:
            assert all(values[label] < value for other, value in values.items() if other != label)
        else:
            assert all(values[label] > value for other, value in values.items() if other != label)
    named = [sentence.split()[0] for sentence in finding(found)]
    assert len(named) == len(set(named))  # nobody is safest and farthest at once


def test_two_players_are_not_called_best_and_worst_by_turns(folder: Path) -> None:
    """`compare --algorithms matched,LinUCB` once said: safest, lowest score 0 of 100; and that it fails worst."""
    summary = compared(folder, "matched", "LinUCB")
    text = finding_text(summary, width=1000)
    assert "of 100" not in text + page(summary)
    for sentence in summary.finding:
        assert sentence in text
        label = next(label for label in summary.labels if sentence.startswith(label))
        worst = summary.scores[label]
        assert f" {ratio_in_words(worst.value)}, in the regime {worst.regime}" in sentence
    assert "worst ratio" in table_text(summary, width=200).splitlines()[0]


def test_without_references_there_is_no_score(tmp_path: Path) -> None:
    parts: dict[str, Any] = {"environments": {"calm": {"kind": "stochastic"}}, "algorithms": {"e": {"kind": "uniform"}}}
    bw.run_study(bw.Study.from_dict({"horizon": 30, "replications": 2, **parts}), tmp_path, quiet=True)
    summary = summary_of(read_folder(tmp_path))
    assert summary.scores == {}
    assert finding_text(summary) == ""
    assert "worst ratio" not in page(summary) + table_text(summary)
    with pytest.raises(ValueError, match="true or false"):
        bw.Study.from_dict({"references": 1, **parts})
