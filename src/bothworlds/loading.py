"""Continue a saved policy."""

import warnings
from pathlib import Path
from typing import Any, overload

from bothworlds.algorithms.fixed import FixedPolicy
from bothworlds.algorithms.registry import public_parts
from bothworlds.plain import from_plain
from bothworlds.policy import FORMAT, Policy
from bothworlds.problem import Problem, SampledProblem
from bothworlds.problem.frame import Frame
from bothworlds.problem.storage import checked_format, read_arrays
from bothworlds.rounds import OpenRounds
from bothworlds.sampled import FORMAT as SAMPLED_FORMAT
from bothworlds.sampled import SampledPolicy
from bothworlds.theory.design import Design
from bothworlds.theory.exponential import TuningWarning


@overload
def load(path: str | Path, *, interpreted: bool = False, problem: None = None) -> Policy: ...
@overload
def load(path: str | Path, *, interpreted: bool = False, problem: SampledProblem) -> SampledPolicy: ...
def load(
    path: str | Path, *, interpreted: bool = False, problem: SampledProblem | None = None
) -> Policy | SampledPolicy:
    """Read a policy written by its ``save``; it continues bit for bit.

    A policy on a `SampledProblem` needs the problem again: its functions are not in the file.
    """
    header, arrays = read_arrays(path)
    if header.get("format") == SAMPLED_FORMAT and problem is None:
        raise ValueError(f"{path} is a policy on a SampledProblem; give it again: load(path, problem=...)")
    header = checked_format(header, FORMAT if problem is None else SAMPLED_FORMAT, path)
    try:
        if problem is None:
            return _rebuild(header, arrays, interpreted=interpreted)
        return _rebuild_sampled(header, arrays, problem, interpreted=interpreted)
    except KeyError as error:
        raise ValueError(f"{path} is incomplete: {error} is missing") from None


def _rebuild_sampled(
    header: dict[str, Any], arrays: dict[str, Any], problem: SampledProblem, *, interpreted: bool
) -> SampledPolicy:
    """Build a policy on a sampled problem from the parts of its file, in the coordinates it was started with."""
    coverage, first, second = (float(value) for value in arrays["coverage"])
    frame = Frame(arrays["basis"], arrays["lift"], coverage, (first, second), problem.frame.notes)
    same = problem.with_frame(frame)
    algorithm = from_plain(header["algorithm"], public_parts())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TuningWarning)  # it was given at the start
        rule = algorithm.sampled_rule(same)
    policy = SampledPolicy(algorithm, same, rule, key=header["key"], interpreted=interpreted)
    policy.restore(
        name=header["name"],
        rounds=OpenRounds.restore(header["rounds"], arrays["open"]),
        learnt=_section(arrays, "learnt"),
        covariance=_section(arrays, "covariance"),
        beyond_coverage=header["beyond_coverage"],
    )
    return policy


def _rebuild(header: dict[str, Any], arrays: dict[str, Any], *, interpreted: bool) -> Policy:
    """Build the policy from the parts of its file."""
    frame = _section(arrays, "frame")

    def saved_design(kind: str, coverage: float, coverage_limit: float) -> Design:
        return Design(kind, frame["exploration"], coverage, coverage_limit)

    def saved_table(label: str, table: None = None) -> FixedPolicy:
        return FixedPolicy(frame["table"] if label != "uniform" else table, label)

    algorithm = from_plain(header["algorithm"], {**public_parts(), "Design": saved_design, "FixedPolicy": saved_table})
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
