"""`bothworlds evaluate`: estimate what policies would have earned on a log."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from bothworlds.cli.common import (
    FINITE,
    LEVEL,
    FiniteFloat,
    PathType,
    StoreType,
    exit_on_bad_input,
    exit_on_failure,
    json_option,
    print_json,
    print_message,
    progress_bar,
    quiet_option,
)
from bothworlds.cli.log_source import STORE, Source
from bothworlds.evaluation import INTERVALS
from bothworlds.evaluation import evaluate as evaluate_log
from bothworlds.evaluation.targets import check_early
from bothworlds.loading import load, load_plan
from bothworlds.policy.plan import FORMAT as PLAN_FORMAT
from bothworlds.problem import Problem
from bothworlds.problem.file_format import read_arrays
from bothworlds.report.evaluation_page import evaluation_data, evaluation_text, write_evaluation
from bothworlds.service.dsn import location_text
from bothworlds.studies import executors


@click.command()
@click.argument("log", type=StoreType())
@click.option(
    "--policy",
    "policies",
    multiple=True,
    required=True,
    metavar="NAME[=FILE]",
    help="Policy to evaluate: uniform, logging, 'always ARM', or a name and the .npz file of a plan or policy; repeat "
    "for several.",
)
@click.option("--against", metavar="NAME", help="Compare all other policies with this one.")
@click.option("--experiment", help="Name of the experiment in the store of a service [the only one].")
@click.option(
    "--problem", type=PathType(), help="Problem file [the problem of the first plan or policy, or of the store]."
)
@click.option("--promote", metavar="NAME", help="Say whether NAME is better than --against by more than --by.")
@click.option("--by", type=FINITE, default=0.0, show_default=True, help="Margin for --promote, in reward per decision.")
@click.option(
    "--interval", type=click.Choice(list(INTERVALS)), default="betting", show_default=True, help="Kind of interval."
)
@click.option("--alpha", type=LEVEL, default=0.05, show_default=True,
              help="Probability that an interval is ever wrong.")  # fmt: skip
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="FIELD=NAME",
    help="Which column of a CSV or Parquet file has FIELD; repeat for several. Fields: arm, context (repeat for "
    "several columns), reward, propensity (or a number), probability:ARM, id, time, zone (for times without one, say "
    "zone=UTC), policy, version, holdout.",
)
@click.option(
    "--missing",
    metavar="NUMBER|drop",
    help="Reward of decisions that have none in the log, or drop them [refuse the log].",
)
@click.option("--tolerance", type=FiniteFloat(0, 1), default=0.0, show_default=True,
              help="Allowed distance from 1 of the sum of rounded probabilities; they are rescaled.")  # fmt: skip
@click.option("--holdout", type=click.Choice(["all", "only", "none"]), default="all", show_default=True,
              help="Rows to use: all, only held-out decisions, or none of those.")  # fmt: skip
@click.option(
    "--checkpoints",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="Number of points in time on the page.",
)
@click.option(
    "--output",
    type=PathType(dir_okay=False),
    default=Path("evaluation.html"),
    show_default=True,
    help="Path of the page.",
)
@click.option(
    "--threads", type=click.IntRange(min=1), default=2, show_default=True, help="Policies to evaluate at the same time."
)
@click.option(
    "--engine",
    metavar="ADDRESS",
    help="Run on Dask: dask (processes on this machine) or dask://HOST:PORT, whose workers must see the folder of the "
    "page [threads of this process].",
)
@quiet_option
@json_option
def evaluate(
    *,
    log: Path | str,
    policies: tuple[str, ...],
    against: str | None,
    problem: Path | None,
    promote: str | None,
    by: float,
    columns: tuple[str, ...],
    missing: str | None,
    tolerance: float,
    holdout: str,
    output: Path,
    engine: str | None,
    experiment: str | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    r"""Estimate what policies would have earned on a log.

    Prints a table with intervals that hold at any time, and writes a page. A value is an average over the decisions in
    the log, not a forecast.

    LOG is JSON lines (.jsonl) or Parquet as `bothworlds.logs` writes them, dsjson, a table (.csv, .parquet) with
    columns named by --column, or the store of a service (.sqlite, or the DSN of its database). Of a store, only
    decisions since the last change of the problem count, except erased ones.

    After an interruption the same command resumes, with the same numbers bit for bit: until the page is written, the
    folder PAGE.state has the log as columns and all finished parts.

    \b
    Examples:
      bothworlds evaluate log.jsonl --policy new=plan.npz --policy uniform --against logging
      bothworlds evaluate log.jsonl --policy new=plan.npz --against logging --promote new --by 0.01 --json
      bothworlds evaluate log.jsonl --problem ads.json --policy "always red" --missing 0 --interval bernstein
      bothworlds evaluate log.parquet --policy new=plan.npz --policy uniform --against logging --engine dask
      bothworlds evaluate ads.sqlite --policy uniform --policy "always red" --against logging
      bothworlds evaluate clicks.csv --problem ads.json --policy "always red" --against uniform \
          --column context=device --column arm=banner --column reward=click --column propensity=p
    """
    if promote is not None and against is None:
        raise click.UsageError("--promote needs --against, the policy to compare with")
    with exit_on_bad_input():
        targets, first_problem = _targets(policies)
        _check_promoted(promote, against, targets)
        source = Source(
            path=log, columns=columns, missing=missing, holdout=holdout, experiment=experiment, tolerance=tolerance
        )
        resolved = _problem(problem, first_problem, source)
        _check_targets(targets, against, resolved)
    files = [log if isinstance(log, Path) else None, problem]
    _check_output(output, [*files, *(Path(text.partition("=")[2]) for text in policies if "=" in text)])
    state = output.with_name(f"{output.name}.state").absolute()
    with exit_on_failure(lambda: _stopped(state)):
        logged = source.logged(resolved, state / "columns", quiet=quiet)
        with executors.engine(engine) as executor, _bar(targets, against, quiet) as progress:
            evaluation = evaluate_log(
                logged,
                targets,
                against=against,
                executor=executor,
                state=state,
                on_done=lambda _: progress.update(1),
                **options,
            )
        write_evaluation(evaluation, output, command=shlex.join(["bothworlds", *map(location_text, sys.argv[1:])]))
    shutil.rmtree(state, ignore_errors=True)
    verdict = None if promote is None or against is None else evaluation.promotes(promote, over=against, by=by)
    if as_json:
        gate = {} if verdict is None else {"promotes": verdict.yes, "reason": verdict.sentence}
        print_json({**evaluation_data(evaluation), **gate, "page": str(output)})
    else:
        click.echo("\n\n".join([evaluation_text(evaluation), *([] if verdict is None else [verdict.sentence])]))
    print_message(f"page: {output}")


def _problem(given: Path | None, of_policies: Problem | None, source: Source) -> Problem:
    """Return the problem of --problem, of the policies or of the store; refuse a log that does not exist."""
    problem = Problem.load(given) if given is not None else of_policies
    if problem is None and source.suffix == STORE:
        with source.stored() as (problem, _):
            pass
    if problem is None:
        raise click.UsageError("contexts and arms are not known: add --problem FILE, or a policy with a file")
    if isinstance(source.path, Path) and not source.path.is_file():
        raise ValueError(f"{source.path}: no such file")
    return problem


def _check_targets(targets: dict[str, Any], against: str | None, problem: Problem) -> None:
    """Refuse unknown policies and plans for another problem, before the log is read."""
    every = list(targets.values()) if against is None or against in targets else [*targets.values(), against]
    for target in every:
        check_early(target, problem)


def _check_output(output: Path, inputs: list[Path | None]) -> None:
    """Refuse to overwrite an input file with the page."""
    if output.exists() and any(path is not None and output.samefile(path) for path in inputs):
        raise click.UsageError(f"--output {output} is also an input file; give the page another name")


def _bar(targets: dict[str, Any], against: str | None, quiet: bool) -> Any:
    """Return a progress bar with one step per policy and per difference."""
    names = {*targets} if against is None else {*targets, against}
    count = len(names) + (0 if against is None else len(names) - 1)
    return progress_bar(length=count, label="evaluating", quiet=quiet)


def _check_promoted(name: str | None, against: str | None, targets: dict[str, Any]) -> None:
    """Refuse, before any work, to promote a policy that is not compared."""
    if name is None:
        return
    if name == against:
        raise click.UsageError(f"--promote {name!r} and --against are the same policy; compare it with another one")
    if name not in targets:
        raise click.UsageError(f"--promote {name!r} is not among the policies: {', '.join(map(repr, targets))}")


def _stopped(state: Path) -> str:
    """Return the message of an interruption; nothing is kept of a log that was still being read."""
    if not state.exists():
        return "interrupted while reading the log; the same command starts again"
    return f"interrupted; finished parts are in {state}; the same command resumes"


def _targets(given: tuple[str, ...]) -> tuple[dict[str, Any], Problem | None]:
    """Return policies by name, and the problem of the first that has one."""
    targets: dict[str, Any] = {}
    problem = None
    for text in given:
        name, equals, file = text.partition("=")
        if not name.strip():
            raise click.UsageError(f"--policy {text!r} has no name; it is NAME or NAME=FILE")
        if name in targets:
            raise click.UsageError(f"two policies are called {name!r}; give the second another name")
        targets[name] = _load(file) if equals else name
        if equals and problem is None:
            problem = targets[name].problem
    return targets, problem


def _load(file: str) -> Any:
    """Load the plan or the policy in a file."""
    header, _ = read_arrays(file)
    return load_plan(file) if header.get("format") == PLAN_FORMAT else load(file)
