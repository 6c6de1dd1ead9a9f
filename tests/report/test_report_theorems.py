"""Which theorem becomes a line where, and what the line says."""

from pathlib import Path

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.arrays import Floats, Ints
from bothworlds.environments import Environment
from bothworlds.report import Summary, page
from bothworlds.report.figures import double_log_chart
from bothworlds.report.theorems import covered_as, known_of, theorem_bounds
from support.report_study import CONTENT, EVIL, made_summary, summary_from


@pytest.fixture
def summary() -> Summary:
    return made_summary()


def test_theorems_become_lines_where_they_hold(summary: Summary) -> None:
    lines = theorem_bounds(summary)
    assert list(lines) == [EVIL]  # nothing is proved for "eager", and uniform play learns nothing
    calm, hit, tired = summary.panels
    for panel in (calm, hit):
        entry = panel.entries[0]
        values = lines[EVIL](panel.environment, entry.rounds)
        assert values is not None
        assert (np.diff(values) > 0).all()
        assert (entry.run.regret < values).all()
        assert (values <= 2.0 * entry.rounds).all()
    assert lines[EVIL](tired.environment, tired.entries[0].rounds) is None
    drawn = page(summary, bounds=lines)
    assert drawn.count("Fine dots: the theorem’s bound") == 2
    assert drawn.count("<title>bound for ") == 2
    assert "vacuous" not in drawn


def test_a_bound_that_says_nothing_is_called_vacuous_and_not_drawn(summary: Summary) -> None:
    def bound_of(environment: Environment, t: Ints) -> Floats | None:
        return None if environment.reacts else np.asarray(2.0 * t, dtype=np.float64)

    drawn = page(summary, bounds={"eager": bound_of})
    assert drawn.count("<title>bound for ") == 0
    assert drawn.count(">vacuous</td>") == 2
    assert "a bound of 2 T = 1,200 or more is vacuous" in drawn
    late = double_log_chart(summary.panels[0], {"eager": lambda _, t: 20.0 * np.sqrt(t)})
    (bound,) = (line for line in late.lines if line.thin)
    np.testing.assert_array_equal(np.isnan(bound.y), bound.x <= 100)  # 20 sqrt(t) is below 2 t from there on


def test_a_bound_knows_gap_margin_and_corruption(tmp_path: Path) -> None:
    T = 10**6
    content = {
        **CONTENT,
        "sizes": {"contexts": 2, "arms": 2, "dimension": 2, "gap": 0.8},
        "environments": {
            "calm": {"kind": "stochastic"},
            "hit": {"kind": "corrupted", "budget": 20},
            "margin": {"kind": "stochastic", "margin": 1.0},
            "hostile": {"kind": "adaptive-adversary"},
        },
        "algorithms": {
            "certified": {"kind": "LCTsallisINF", "tuning": "certified"},
            "Shannon": {"kind": "RealFTRL", "horizon": T},
        },
    }
    summary = summary_from(content, tmp_path)
    lines, t = theorem_bounds(summary), np.array([1000, T])
    for label, name in (("certified", "LC-Tsallis-INF, certified"), ("Shannon", "BoBW-RealFTRL")):
        at_end = {p.name: lines[label](p.environment, t)[-1] for p in summary.panels}  # type: ignore[index]
        for regime, known in (
            ("calm", {}),
            ("hit", {"corruption": 20.0}),
            ("margin", {"margin": 1.0}),
            ("hostile", None),
        ):
            panel = next(p for p in summary.panels if p.name == regime)
            gap: dict[str, float] = {} if known is None else {"gap": 0.8, **known}
            table = bw.bounds(panel.environment.problem, horizon=T, **gap)  # type: ignore[arg-type]
            expected = min(b.value for b in table if b.name == name)
            if regime == "margin":  # the smallest gap may say more
                assert at_end[regime] <= expected
            else:
                assert at_end[regime] == pytest.approx(expected, rel=1e-12)
        assert at_end["calm"] < at_end["hit"] < at_end["hostile"]


def test_what_no_theorem_covers() -> None:
    nothing = [
        bw.LCTsallisINF(tuning="certified", alpha=0.3),
        bw.LCTsallisINF(tuning=bw.Matched(gain=0.5)),
        bw.LCTsallisINF(tuning=bw.Certified(batch=2)),
        bw.LCTsallisINF(tuning=bw.Certified(c=0.3)),
        bw.LCTsallisINF(tuning="paper", covariance=bw.MGR()),
        bw.RealFTRL(),
        bw.LinUCB(),
    ]
    assert [covered_as(algorithm) for algorithm in nothing] == [None] * len(nothing)
    assert covered_as(bw.LCTsallisINF(tuning=bw.Certified(c=0.25))) == "LC-Tsallis-INF, certified"
    assert covered_as(bw.LCTsallisINF(tuning=bw.Paper(finite_support=False))) == "LC-Tsallis-INF, paper, any support"


def test_late_feedback_has_no_bound(tmp_path: Path) -> None:
    algorithms = {"certified": {"kind": "LCTsallisINF", "tuning": "certified"}}
    summary = summary_from({**CONTENT, "algorithms": algorithms, "delay": 3}, tmp_path)
    assert theorem_bounds(summary) == {}


def test_a_margin_is_believed_only_where_it_holds(tmp_path: Path) -> None:
    """A world of one's own, and clicks, are not drawn to the margin of the study."""
    world = "import bothworlds as bw\nfrom bothworlds import environments as en\n\ndef close():\n"
    world += "    instance = en.random_instance(contexts=2, arms=2, dimension=2, gap=0.01)\n"
    (tmp_path / "mine.py").write_text(world + "    return en.stochastic(instance)\n")
    content = {
        "horizon": 10_000,
        "sizes": {"contexts": 2, "arms": 2, "dimension": 2, "gap": 1.0, "margin": 10.0},
        "environments": {
            "drawn": {"kind": "stochastic"},
            "hit": {"kind": "corrupted", "budget": 5},
            "mine": {"kind": "mine.py:close"},
            "rare": {"kind": "clicks", "attributes": [2]},
            "equal": {"kind": "lower-bound"},
        },
        "algorithms": {"certified": {"kind": "LCTsallisINF", "tuning": "certified"}},
    }
    known = {}
    for cell in bw.Study.from_dict(content, folder=tmp_path).cells():
        world_of_cell = cell.make_environment()
        known[cell.environment] = list(known_of(world_of_cell, cell))
        assert known[cell.environment][0]["gap"] == world_of_cell.gap
    margin = {"gap": 1.0, "margin": 10.0}
    assert known["drawn"][1:] == [margin]
    assert known["hit"][1:] == [{**margin, "corruption": 5.0}]
    assert [len(known[name]) for name in ("mine", "rare", "equal")] == [1, 1, 1]
