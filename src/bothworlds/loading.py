"""Load saved policies and plans."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, overload

from bothworlds.algorithms.fixed import FixedPolicy
from bothworlds.algorithms.registry import AlgorithmClasses
from bothworlds.open_contexts import OpenPlan, OpenPolicy
from bothworlds.open_contexts.open_plan import plan_arrays
from bothworlds.policy import FORMAT, Policy
from bothworlds.policy.bookkeeping import Bookkeeping
from bothworlds.policy.feedback_registry import FeedbackRegistry
from bothworlds.policy.ids import IdIssuer, new_source, stream_of
from bothworlds.policy.learner_state import LearnerState
from bothworlds.policy.plan import FORMAT as PLAN_FORMAT
from bothworlds.policy.plan import plan_from
from bothworlds.policy.problem_history import History
from bothworlds.policy.spec import PolicySpec, problem_of, section
from bothworlds.problem import SampledProblem
from bothworlds.problem.file_format import OPEN_PLAN, OPEN_POLICY, checked_format, read_arrays, undamaged
from bothworlds.problem.open import OpenProblem
from bothworlds.problem.sampled_frame import Frame
from bothworlds.sampled import FORMAT as SAMPLED_FORMAT
from bothworlds.sampled import SampledPolicy
from bothworlds.serialization import from_plain
from bothworlds.theory.design import Design
from bothworlds.theory.exp_weights_rates import TuningWarning

Stream = Literal["same", "new"]


@overload
def load(
    path: str | Path,
    *,
    stream: Stream = "same",
    frame: str | Path | None = None,
    interpreted: bool = False,
    problem: None = None,
) -> Any: ...
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
) -> Policy | OpenPolicy | SampledPolicy:
    """Read a policy written by its ``save`` and continue it bit for bit, in a new session.

    New decisions get ids that no earlier session has issued. The policy takes feedback, once for each id, for decisions
    that were open when the file was saved, and for decisions of earlier sessions after that: a decision carries all
    that its feedback needs. For a second policy from the same file use ``load(path).copy()``.

    Parameters
    ----------
    stream
        "same" continues the stream of random numbers from the file, bit for bit: rounds that were decided after the
        save and lost are drawn again with the same random numbers, under new ids. "new" starts another stream: use it
        after a crash.
    frame
        A file with features, of the same policy or one of its plans, if ``path`` was saved with ``frame=False``.
    interpreted
        Run without compiling.
    problem
        The problem of a policy on a `SampledProblem`, whose functions are not in the file.

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
    if header.get("format") == OPEN_POLICY and problem is None:
        return _load_open(checked_format(header, OPEN_POLICY, path), arrays, path, stream, interpreted=interpreted)
    header = checked_format(header, FORMAT if problem is None else SAMPLED_FORMAT, path)
    with undamaged(path):
        if stream == "new":
            header = {**header, "key": stream_of(header["key"], new_source())}
        registry = FeedbackRegistry.restore(header, arrays).next_session(header["key"], same_stream=stream == "same")
        if problem is not None:
            return _rebuild_sampled(header, arrays, problem, registry, interpreted=interpreted)
        spec = spec_of(*_with_frame(header, arrays, frame, path), interpreted=interpreted)
        return _rebuild(spec, header, arrays, registry)


def load_with_spec(path: str | Path, fingerprint: str, spec: PolicySpec) -> Policy:
    """Read a policy as `load` does, with a given spec; refuse a file whose fingerprint is another."""
    header, arrays = read_arrays(path)
    header = checked_format(header, FORMAT, path)
    with undamaged(path):
        if header["fingerprint"] != fingerprint:
            raise ValueError(f"{path} belongs to another spec: {header['fingerprint']}, not {fingerprint}")
        registry = FeedbackRegistry.restore(header, arrays).next_session(header["key"])
        return _rebuild(spec, header, arrays, registry)


def load_plan(path: str | Path, *, frame: str | Path | None = None, interpreted: bool = False) -> Any:
    """Read a plan written by ``plan.save``, a `Plan` or an `OpenPlan`, to decide in any number of processes.

    ``frame`` is a file with features, of the same policy or one of its plans, if ``path`` was saved without them.

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
    if header.get("format") == OPEN_PLAN:
        return _load_open_plan(checked_format(header, OPEN_PLAN, path), arrays, path, interpreted=interpreted)
    header = checked_format(header, PLAN_FORMAT, path)
    with undamaged(path):
        spec = spec_of(*_with_frame(header, arrays, frame, path), interpreted=interpreted)
        return plan_from(spec, header, arrays, path)


def _load_open(
    header: dict[str, Any], arrays: dict[str, Any], path: str | Path, stream: Stream, *, interpreted: bool
) -> OpenPolicy:
    """Build a policy on an open problem from its file, in a new session."""
    with undamaged(path):
        if stream == "new":
            header = {**header, "key": stream_of(header["key"], new_source())}
        policy = _open_policy(header, interpreted=interpreted)
        registry = FeedbackRegistry.restore(header, arrays).next_session(header["key"], same_stream=stream == "same")
        policy.restore(header, section(arrays, "learnt"), arrays["counts"], registry)
        return policy


def _load_open_plan(header: dict[str, Any], arrays: dict[str, Any], path: str | Path, *, interpreted: bool) -> OpenPlan:
    """Build a plan for an open problem from its file."""
    with undamaged(path):
        plan = _open_policy({"key": 0, **header}, interpreted=interpreted).plan()
        parts = {name: header[name] for name in ("policy", "version", "secret")}
        plan = replace(plan, arrays=plan_arrays(arrays, plan.arrays), _ids=IdIssuer(), **parts)
        if plan.digest != header["digest"]:
            raise ValueError(f"{path} is damaged: its numbers have digest {plan.digest}, not {header['digest']}")
        return plan


def _open_policy(header: dict[str, Any], *, interpreted: bool) -> OpenPolicy:
    """Start the algorithm of a file on its problem."""
    algorithm = from_plain(header["algorithm"], AlgorithmClasses())
    problem = OpenProblem.from_dict(header["problem"])
    rule, options = algorithm.open_rule(), {"key": header["key"], "holdout": header["holdout"]}
    policy = OpenPolicy(algorithm, problem, rule, interpreted=interpreted, **options)
    if policy.fingerprint != header["fingerprint"]:
        raise ValueError(f"the file is damaged: its problem is {policy.fingerprint}, not {header['fingerprint']}")
    return policy


def _with_frame(
    header: dict[str, Any], arrays: dict[str, Any], frame: str | Path | None, path: str | Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and arrays of the file with the features: this file, or ``frame`` of the same policy."""
    if "features" in arrays:
        return header, arrays
    if frame is None:
        raise ValueError(f"{path} was saved without its frame; give a file that has it: frame=...")
    other, parts = read_arrays(frame)
    if "features" not in parts or other.get("fingerprint") != header["fingerprint"]:
        raise ValueError(f"{frame} is not the frame of {path}: it has no features, or belongs to another policy")
    return other, parts


def spec_of(header: dict[str, Any], arrays: dict[str, Any], *, interpreted: bool = False) -> PolicySpec:
    """Build the spec of a policy or plan from header and arrays of its file."""
    frame = section(arrays, "frame")

    def saved_design(kind: str, coverage: float, coverage_limit: float) -> Design:
        return Design(kind, frame["exploration"], coverage, coverage_limit)

    def saved_table(label: str, table: None = None) -> FixedPolicy:
        return FixedPolicy(frame["table"] if label != "uniform" else table, label)

    makers = AlgorithmClasses(Design=saved_design, FixedPolicy=saved_table)
    algorithm = from_plain(header["algorithm"], makers)
    problem = problem_of(header, arrays)
    machine = algorithm.machine(problem, frame)
    return PolicySpec(
        algorithm=algorithm,
        problem=problem,
        machine=machine,
        interpreted=interpreted,
        holdout=header["holdout"],
    )


def _rebuild(spec: PolicySpec, header: dict[str, Any], arrays: dict[str, Any], registry: FeedbackRegistry) -> Policy:
    """Build a policy from header and arrays of its file."""
    learnt, counts = section(arrays, "learnt"), section(arrays, "counts")
    learner_state = LearnerState.initial(spec, header["key"])
    learner_state.set_learned(
        {part: learnt[part] for part in spec.machine.kernel.memory.learnt}, updates=header["updates"]
    )
    version, history = _for_spec(spec, header, History.restore(header, arrays))
    bookkeeping = Bookkeeping(
        header["name"], spec, registry, history=history, since=header["counted_since"], saved=counts
    )
    return Policy(learner_state, bookkeeping, key=header["key"], secret=header["secret"], version=version)


def _for_spec(spec: PolicySpec, header: dict[str, Any], history: History) -> tuple[int, History]:
    """Return version and history; a spec whose bits differ, as on another machine, starts a new version."""
    version: int = header["version"]
    if header["fingerprint"] == spec.fingerprint:
        return version, history
    beliefs, sizes = spec.machine.beliefs, spec.machine.sizes
    coordinates = sizes.d if beliefs is not None and beliefs.linear else 0
    return version + 1, history.after_new_spec(
        spec.problem,
        carried=spec.carried,
        coordinates=coordinates,
        began=version + 1,
        fingerprint=header["short_fingerprint"],
    )


def _rebuild_sampled(
    header: dict[str, Any],
    arrays: dict[str, Any],
    problem: SampledProblem,
    registry: FeedbackRegistry,
    *,
    interpreted: bool,
) -> SampledPolicy:
    """Build a policy on a sampled problem from its file, in the coordinates that it was started with."""
    for name, here in (("arms", problem.arms), ("reward_range", problem.reward_range)):
        saved = header[name]
        if (saved if saved is None else tuple(saved)) != here:
            raise ValueError(f"the policy was started on another problem: {name} was {saved}, here it is {here}")
    coverage, first, second = (float(value) for value in arrays["coverage"])
    frame = Frame(arrays["basis"], arrays["lift"], coverage, (first, second), problem.frame.notes)
    same = problem.with_frame(frame)
    algorithm = from_plain(header["algorithm"], AlgorithmClasses())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TuningWarning)  # already shown when the policy was started
        rule = algorithm.sampled_rule(same)
    policy = SampledPolicy(algorithm, same, rule, key=header["key"], interpreted=interpreted)
    policy.restore(
        name=header["name"],
        registry=registry,
        learnt=section(arrays, "learnt"),
        covariance=section(arrays, "covariance"),
        beyond_coverage=header["beyond_coverage"],
    )
    return policy
