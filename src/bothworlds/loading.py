"""Continue a saved policy."""

from pathlib import Path
from typing import Any

from bothworlds.algorithms.bobw_real_lin_exp3 import BoBWRealLinExp3
from bothworlds.algorithms.fixed import FixedPolicy
from bothworlds.algorithms.ftrl_lc import FTRLLC
from bothworlds.algorithms.lc_tsallis_inf import LCTsallisINF
from bothworlds.algorithms.lin_ts import LinTS
from bothworlds.algorithms.lin_ucb import LinUCB
from bothworlds.algorithms.linear_exp4 import LinearEXP4
from bothworlds.algorithms.logdet_ftrl import LogdetFTRL
from bothworlds.algorithms.oful import OFUL
from bothworlds.algorithms.per_context_exp3 import PerContextExp3
from bothworlds.algorithms.per_context_tsallis_inf import PerContextTsallisINF
from bothworlds.algorithms.real_ftrl import RealFTRL
from bothworlds.algorithms.real_lin_exp3 import RealLinExp3
from bothworlds.algorithms.robust_lin_exp3 import RobustLinExp3
from bothworlds.algorithms.tunings import MGR, Adaptive, Certified, Paper
from bothworlds.plain import from_plain
from bothworlds.policy import FORMAT, Policy
from bothworlds.problem import Problem
from bothworlds.problem.storage import checked_format, read_arrays
from bothworlds.rounds import OpenRounds
from bothworlds.theory.design import Design

PARTS = (
    BoBWRealLinExp3,
    FTRLLC,
    LCTsallisINF,
    LinTS,
    LinUCB,
    LinearEXP4,
    LogdetFTRL,
    OFUL,
    PerContextExp3,
    PerContextTsallisINF,
    RealFTRL,
    RealLinExp3,
    RobustLinExp3,
    Paper,
    Certified,
    Adaptive,
    MGR,
)


def load(path: str | Path, *, interpreted: bool = False) -> Policy:
    """Read a policy written by `Policy.save`; it continues bit for bit."""
    header, arrays = read_arrays(path)
    header = checked_format(header, FORMAT, path)
    try:
        return _rebuild(header, arrays, interpreted=interpreted)
    except KeyError as error:
        raise ValueError(f"{path} is incomplete: {error} is missing") from None


def _rebuild(header: dict[str, Any], arrays: dict[str, Any], *, interpreted: bool) -> Policy:
    """Build the policy from the parts of its file."""
    frame = _section(arrays, "frame")

    def saved_design(kind: str, coverage: float, coverage_limit: float) -> Design:
        return Design(kind, frame["exploration"], coverage, coverage_limit)

    def saved_table(label: str, table: None = None) -> FixedPolicy:
        return FixedPolicy(frame["table"] if label != "uniform" else table, label)

    makers: dict[str, Any] = {part.__name__: part for part in PARTS}
    algorithm = from_plain(header["algorithm"], {**makers, "Design": saved_design, "FixedPolicy": saved_table})
    problem = Problem(
        features=arrays["features"],
        probabilities=arrays["probabilities"],
        available=arrays["available"],
        contexts=header["contexts"],
        arms=header["arms"],
        reward_range=header["reward_range"],
    )
    machine = algorithm.machine(problem, frame)
    policy = Policy(algorithm, problem, machine, key=header["key"], interpreted=interpreted)
    rounds = OpenRounds.restore(header["rounds"], arrays["open"])
    policy.restore(name=header["name"], rounds=rounds, learnt=_section(arrays, "learnt"))
    return policy


def _section(arrays: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the arrays whose names begin with a section's, by the rest of their names."""
    return {key.split(".", 1)[1]: value for key, value in arrays.items() if key.startswith(f"{name}.")}
