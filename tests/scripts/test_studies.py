"""The studies of research/does-the-paper-hold.md, far smaller: every question is answered, and bounds hold."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import hold
from answers.common import Question, number
from answers.page import Part
from bothworlds.problem.block_features import DegenerateProblemWarning
from bothworlds.studies.study import Study
from support import soak

ROOT = Path(__file__).parents[2]
FEW_STUDIES = ["growth", "corruption"]

pytestmark = pytest.mark.filterwarnings("ignore::bothworlds.problem.block_features.DegenerateProblemWarning")


def test_every_study_belongs_to_a_question() -> None:
    files = {path.stem for path in (ROOT / "studies").glob("*.toml")} - {"first"}
    assert files == set(hold.NAMES)
    assert "".join(question.letter for question in hold.QUESTIONS) == "abcdefghijk"


def test_smaller_studies_keep_what_is_tuned_to_the_horizon() -> None:
    study = Study.from_toml(ROOT / "studies" / "growth.toml")
    small = hold.smaller(study, 1000, 2)
    assert small.algorithms["Shannon"]["horizon"] == small.settings["horizon"] == 1000
    late = hold.smaller(Study.from_toml(ROOT / "studies" / "feedback-late.toml"), 1000, 2)
    assert late.settings["delay"] == 6  # 300 of 50,000 rounds


def test_stacked_features_hide_what_arms_share_and_keep_the_losses() -> None:
    with pytest.warns(DegenerateProblemWarning):
        study = Study.from_toml(ROOT / "studies" / "features.toml")
    worlds = {cell.environment: cell.make_environment() for cell in study.cells()}
    for draw in "123":
        shared, stacked = worlds[f"shared {draw}"], worlds[f"stacked {draw}"]
        assert np.allclose(shared.gaps, stacked.gaps, atol=1e-12)
        assert (shared.problem.dimension, stacked.problem.dimension) == (3, 18)
    assert not np.allclose(worlds["shared 1"].gaps, worlds["shared 2"].gaps)


@pytest.mark.soak
def test_all_questions_are_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    studies = hold.NAMES if soak.WHOLE else FEW_STUDIES
    arguments = ["--size", "400", "3", "--results", str(tmp_path), "--page", str(page), "--quiet", "--only", *studies]
    assert hold.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "ABOVE" not in printed
    assert "vacuous at T" in printed  # at this horizon many bounds are
    assert re.search(r"ratio +0\.\d", printed)  # and some are not
    text = page.read_text()
    assert text.count("**Verdict: ") == sum({*studies} >= {*question.studies} for question in hold.QUESTIONS)
    for figure in re.findall(r"\((figures/[\w-]+\.svg)\)", text):
        ElementTree.parse(tmp_path / figure)


def test_a_regret_above_its_bound_contradicts(tmp_path: Path) -> None:
    finished = hold.run("growth", tmp_path, (400, 2), quiet=True)
    question = next(question for question in hold.QUESTIONS if question.letter == "a")
    assert not Part(question, {"growth": finished}).broken
    for _, results in finished.cells:
        for run in results.runs.values():
            run.expected[...] += 500.0  # of 400 rounds
    part = Part(Question(*question), {"growth": finished})
    assert part.broken
    assert part.verdict == "contradicted"


def test_numbers_as_words() -> None:
    values = (1234.5, -12.34, 0.5, 0.0012, float("inf"))
    assert [number(v) for v in values] == [
        "1,234",
        "-12.3",
        "0.50",
        "0.001",
        "never",
    ]
