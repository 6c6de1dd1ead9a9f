"""Continue a saved policy, or decide with a saved plan."""

import warnings
from pathlib import Path
from typing import Any, Literal, overload

from bothworlds.algorithms.fixed import FixedPolicy
from bothworlds.algorithms.lc_tsallis.matched import Matched
from bothworlds.algorithms.registry import Parts
from bothworlds.former import GONE, counted_in, is_former, successor, taken_over
from bothworlds.plain import from_plain
from bothworlds.policy import FORMAT, Policy
from bothworlds.policy.books import Books
from bothworlds.policy.epochs import History
from bothworlds.policy.footing import MARK, Footing, problem_of, section
from bothworlds.policy.identity import new_source, secret_of, stream_of
from bothworlds.policy.ledger import Ledger
from bothworlds.policy.mind import Mind
from bothworlds.policy.plan import FORMAT as PLAN_FORMAT
from bothworlds.policy.plan import Plan, plan_from
from bothworlds.problem import SampledProblem
from bothworlds.problem.frame import Frame
from bothworlds.problem.storage import checked_format, read_arrays, undamaged
from bothworlds.sampled import FORMAT as SAMPLED_FORMAT
from bothworlds.sampled import SampledPolicy
from bothworlds.theory.design import Design
from bothworlds.theory.exponential import TuningWarning
from bothworlds.theory.schedules import Matching

Stream = Literal["same", "new"]


@overload
def load(
    path: str | Path,
    *,
    stream: Stream = "same",
    frame: str | Path | None = None,
    interpreted: bool = False,
    problem: None = None,
) -> Policy: ...
@overload
def load(
    path: str | Path, *, stream: Stream = "same", interpreted: bool = False, problem: SampledProblem
) -> SampledPolicy: ...
def load(
    path: str | Path,
    *,
    stream: Stream = "same",
    frame: str | Path | None = None,
    interpreted: bool = False,
    problem: SampledProblem | None = None,
) -> Policy | SampledPolicy:
    """Read a policy written by its ``save``; it continues bit for bit, as the same owner in a new life.

    Decisions get ids that no earlier life has issued. Feedback is taken, once for each id, of what was open when the
    file was saved, and of what an earlier life decided after that: such a decision, lost to the file, carries all that
    it needs. A second owner of the same file takes ``load(path).copy()``.

    Parameters
    ----------
    stream
        "same" draws the next rounds as they would have been drawn from the file on, bit for bit: those decided after
        it was saved and lost are drawn again, under other ids, with the same random numbers. "new" never does that,
        and is what to take after a crash.
    frame
        A file of the same policy or its plans with features, where ``path`` was saved without (``frame=False``).
    interpreted
        Run without compiling.
    problem
        A policy on a `SampledProblem` needs the problem again: its functions are not in the file.

    >>> from tempfile import TemporaryDirectory
    >>> from bothworlds import FixedPolicy, Problem
    >>> policy = FixedPolicy().start(Problem(features=[[[1, 0], [0, 1]]], probabilities=[1]), rng=7)
    >>> with TemporaryDirectory() as folder:
    ...     policy.save(f"{folder}/policy.npz")
    ...     again = load(f"{folder}/policy.npz")
    >>> again.name == policy.name, again.act(0).arm == policy.act(0).arm
    (True, True)
    """
    if stream not in ("same", "new"):
        raise ValueError(f"stream must be 'same' or 'new'; got {stream!r}")
    if not isinstance(problem, SampledProblem | None):
        raise ValueError(f"problem= is for policies on a SampledProblem, which files do not have; got {problem!r}")
    header, arrays = read_arrays(path)
    if header.get("format") == SAMPLED_FORMAT and problem is None:
        raise ValueError(f"{path} is a policy on a SampledProblem; give it again: load(path, problem=...)")
    header = checked_format(header, FORMAT if problem is None else SAMPLED_FORMAT, path)
    with undamaged(path):
        if stream == "new":
            key = stream_of(header["key"], new_source())
            header = {"secret": secret_of(header["key"]), **header, "key": key}
        lives = {"same_stream": stream == "same", "counted": bool(section(arrays, "counts"))}
        ledger = Ledger.restore(header, arrays).next_life(header["key"], **lives)
        if problem is not None:
            return _rebuild_sampled(header, arrays, problem, ledger, interpreted=interpreted)
        told, parts = _with_frame(header, arrays, frame, path)
        if is_former(told):
            footing = footing_of(successor(told, path), parts, interpreted=interpreted)
            return _rebuilt(footing, *taken_over(told["algorithm"], header, arrays, footing), ledger)
        footing = footing_of(told, parts, interpreted=interpreted)
        if isinstance(getattr(footing.algorithm, "tuning", None), Matched):
            arrays = {**counted_in(told["algorithm"], arrays), **arrays}
        return _rebuilt(footing, header, arrays, ledger)


def load_on(path: str | Path, told: str, footing: Footing) -> Policy:
    """Read a policy as `load` does, where what it stands on is at hand, and named so in its file."""
    header, arrays = read_arrays(path)
    header = checked_format(header, FORMAT, path)
    with undamaged(path):
        if header["footing"] != told:
            raise ValueError(f"{path} stands on something else: {header['footing']}, and not {told}")
        counted = bool(section(arrays, "counts"))
        ledger = Ledger.restore(header, arrays).next_life(header["key"], same_stream=True, counted=counted)
        return _rebuilt(footing, header, arrays, ledger)


def load_plan(path: str | Path, *, frame: str | Path | None = None, interpreted: bool = False) -> Plan:
    """Read a plan written by ``plan.save``: to decide with, in this process and any other.

    ``frame`` is a file with features, of the same policy or of one of its plans, where ``path`` was saved without.

    >>> from tempfile import TemporaryDirectory
    >>> from bothworlds import FixedPolicy, Problem
    >>> plan = FixedPolicy().start(Problem(features=[[[1, 0], [0, 1]]], probabilities=[1]), rng=7).plan()
    >>> with TemporaryDirectory() as folder:
    ...     plan.save(f"{folder}/plan.npz")
    ...     again = load_plan(f"{folder}/plan.npz")
    >>> again.digest == plan.digest, again.act(0, id="visit 9").arm == plan.act(0, id="visit 9").arm
    (True, True)
    """
    header, arrays = read_arrays(path)
    header = checked_format(header, PLAN_FORMAT, path)
    with undamaged(path):
        told, parts = _with_frame(header, arrays, frame, path)
        if is_former(told):
            raise ValueError(
                f"{path} is a plan of {GONE}: bothworlds.load its policy, with which the matched tuning goes on, and "
                "save the plan of that one"
            )
        return plan_from(footing_of(told, parts, interpreted=interpreted), header, arrays, path)


def _with_frame(
    header: dict[str, Any], arrays: dict[str, Any], frame: str | Path | None, path: str | Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and arrays of the file that has the features: this one, or another of the same policy."""
    if "features" in arrays:
        return header, arrays
    if frame is None:
        raise ValueError(f"{path} was saved without its frame; name a file that has it: frame=...")
    other, parts = read_arrays(frame)
    if "features" not in parts or other.get("footing") != header["footing"]:
        raise ValueError(f"{frame} is not the frame of {path}: it has no features, or is of another policy")
    return other, parts


def footing_of(header: dict[str, Any], arrays: dict[str, Any], *, interpreted: bool = False) -> Footing:
    """Build what policies and plans stand on from the parts of a file."""
    frame = section(arrays, "frame")

    def saved_design(kind: str, coverage: float, coverage_limit: float) -> Design:
        return Design(kind, frame["exploration"], coverage, coverage_limit)

    def saved_table(label: str, table: None = None) -> FixedPolicy:
        return FixedPolicy(frame["table"] if label != "uniform" else table, label)

    def saved_matched(*, caution: float = 0.0, recency: float = 0.0, leaning: float = 0.0, **options: float) -> Matched:
        """There was neither caution nor leaning before they were written down; where estimates faded plans lean now."""
        return Matched(caution=caution, leaning=leaning if recency == 0.0 else Matching.leaning, **options)

    own = Parts(Design=saved_design, FixedPolicy=saved_table, Matched=saved_matched)
    algorithm = from_plain(header["algorithm"], own)
    problem = problem_of(header, arrays)
    machine = algorithm.machine(problem, frame)
    return Footing(
        algorithm=algorithm,
        problem=problem,
        machine=machine,
        interpreted=interpreted,
        holdout=header.get("holdout", 0.0),
    )


def _rebuilt(footing: Footing, header: dict[str, Any], arrays: dict[str, Any], ledger: Ledger) -> Policy:
    """Build a policy from the parts of its file; without counts, counting begins now."""
    learnt, counts = section(arrays, "learnt"), section(arrays, "counts")
    mind = Mind.begun(footing, header["key"])
    # What an older version of the rule did not learn yet is as at the start.
    kept = {part: learnt[part] for part in footing.machine.text.memory.learnt if part in learnt}
    mind.begin_with(kept, updates=header.get("updates"))
    since = header["counted_since"] if counts else mind.updates
    version, history = _with_rule(footing, header, History.restore(header, arrays), header.get("version", mind.updates))
    books = Books(header["name"], footing, ledger, history=history, since=since, kept=counts or None)
    return Policy(mind, books, key=header["key"], secret=header.get("secret"), version=version)


def _with_rule(footing: Footing, header: dict[str, Any], history: History, version: int) -> tuple[int, History]:
    """Return version and history; where the rule of the file is another by now, its time is over, as after a change."""
    before = header.get("footing", footing.fingerprint)
    mark = header.get("mark", "" if footing.holdout else before[:MARK])
    if before == footing.fingerprint or not mark:
        return version, history
    beliefs, sizes = footing.machine.beliefs, footing.machine.sizes
    coordinates = sizes.d if beliefs is not None and beliefs.linear else 0
    began = version + 1
    kept = {"carried": footing.carried, "coordinates": coordinates, "footing": mark}
    return began, history.after_rule(footing.problem, began=began, **kept)


def _rebuild_sampled(
    header: dict[str, Any], arrays: dict[str, Any], problem: SampledProblem, ledger: Ledger, *, interpreted: bool
) -> SampledPolicy:
    """Build a policy on a sampled problem from the parts of its file, in the coordinates it was started with."""
    for name, here in (("arms", problem.arms), ("reward_range", problem.reward_range)):
        kept = header.get(name, here)
        if (kept if kept is None else tuple(kept)) != here:
            raise ValueError(f"the policy was started on another problem: {name} was {kept} there, and is {here} here")
    coverage, first, second = (float(value) for value in arrays["coverage"])
    frame = Frame(arrays["basis"], arrays["lift"], coverage, (first, second), problem.frame.notes)
    same = problem.with_frame(frame)
    algorithm = from_plain(header["algorithm"], Parts())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TuningWarning)  # it was given at the start
        rule = algorithm.sampled_rule(same)
    policy = SampledPolicy(algorithm, same, rule, key=header["key"], interpreted=interpreted)
    policy.restore(
        name=header["name"],
        ledger=ledger,
        learnt=section(arrays, "learnt"),
        covariance=section(arrays, "covariance"),
        beyond_coverage=header["beyond_coverage"],
    )
    return policy
