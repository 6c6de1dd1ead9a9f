"""`bothworlds evaluate`: what policies would have earned on a log."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from bothworlds.cli.common import (
    LEVEL,
    NUMBER,
    Number,
    Place,
    answer,
    bar,
    json_option,
    quiet_option,
    reading,
    talk,
    working,
)
from bothworlds.cli.evaluated_log import STORE, Source
from bothworlds.evaluation import INTERVALS
from bothworlds.evaluation import evaluate as evaluate_log
from bothworlds.evaluation.targets import check_early
from bothworlds.loading import load, load_plan
from bothworlds.policy.plan import FORMAT as PLAN_FORMAT
from bothworlds.problem import Problem
from bothworlds.problem.storage import read_arrays
from bothworlds.report.evaluated import evaluation_data, evaluation_text, write_evaluation
from bothworlds.simulation import cluster


@click.command()
@click.argument("log", type=Place())
@click.option(
    "--policy",
    "policies",
    multiple=True,
    required=True,
    metavar="NAME[=FILE]",
    help="uniform, logging, 'always ARM', or a name and the .npz file of a plan or policy; may be given again.",
)
@click.option("--against", metavar="NAME", help="Compare all others with this policy.")
@click.option("--experiment", help="Which one, in the store of a service [the only one].")
@click.option("--problem", type=Place(), help="Problem file [that of the first plan or policy, or of the store].")
@click.option("--promote", metavar="NAME", help="Say whether NAME is better than --against by more than --by.")
@click.option("--by", type=NUMBER, default=0.0, show_default=True, help="By how much it must be better.")
@click.option("--interval", type=click.Choice(list(INTERVALS)), default="betting", show_default=True, help="Which.")
@click.option("--alpha", type=LEVEL, default=0.05, show_default=True,
              help="How often an interval may be wrong.")  # fmt: skip
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="FIELD=NAME",
    help="Column of a CSV or Parquet file: arm, context (again for several), reward, propensity (or a number), "
    "probability:ARM, id, time, zone (of times that do not say theirs: zone=UTC), policy, version, holdout; may be "
    "given again.",
)
@click.option("--missing", metavar="NUMBER|drop", help="What a decision without a reward means [refuse].")
@click.option("--tolerance", type=Number(0, 1), default=0.0, show_default=True,
              help="How far from 1 probabilities of a rounded log may sum; they are rescaled.")  # fmt: skip
@click.option("--holdout", type=click.Choice(["all", "only", "none"]), default="all", show_default=True,
              help="Which rows count: all, only those held out, or none of those.")  # fmt: skip
@click.option("--checkpoints", type=click.IntRange(min=1), default=200, show_default=True, help="Moments to look at.")
@click.option(
    "--output",
    type=Place(dir_okay=False),
    default=Path("evaluation.html"),
    show_default=True,
    help="Page to write.",
)
@click.option("--threads", type=click.IntRange(min=1), default=2, show_default=True, help="Policies at once.")
@click.option(
    "--engine",
    metavar="ADDRESS",
    help="dask (processes on this machine) or dask://HOST:PORT, which must see the folder of the page: policies and "
    "differences are worked on apart [threads of this process].",
)
@quiet_option
@json_option
def evaluate(
    *,
    log: Path,
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
    r"""Estimate what policies would have earned on LOG, with intervals that hold at any time; end in a table and page.

    LOG is a file of JSON lines (.jsonl) or Parquet as `bothworlds.logs` writes it, dsjson, a table (.csv, .parquet)
    whose columns --column names, or the store of a service (.sqlite), of which decisions since the
    problem was last changed, or some were erased, count. A value is an average over the decisions in the log, no
    forecast.

    Until the page is there, its folder has the log as columns and all that is finished (PAGE.state): the same command,
    started again after it was stopped, goes on and finds the same figures, bit for bit. What was stopped while it read
    the log reads it again.

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
        raise click.UsageError("--promote needs --against: better than whom?")
    with reading():
        targets, own = _targets(policies)
        _check_promoted(promote, against, targets)
        source = Source(
            path=log, columns=columns, missing=missing, holdout=holdout, experiment=experiment, tolerance=tolerance
        )
        known = _problem(problem, own, source)
        _check_targets(targets, against, known)
    _check_output(output, [log, problem, *(Path(text.partition("=")[2]) for text in policies if "=" in text)])
    state = output.with_name(f"{output.name}.state").absolute()
    with working(lambda: _stopped(state)):
        logged = source.logged(known, state / "columns", quiet=quiet)
        with cluster.engine(engine) as executor, _bar(targets, against, quiet) as shown:
            found = evaluate_log(
                logged,
                targets,
                against=against,
                executor=executor,
                state=state,
                told=lambda _: shown.update(1),
                **options,
            )
        write_evaluation(found, output, command=shlex.join(["bothworlds", *sys.argv[1:]]))
    shutil.rmtree(state, ignore_errors=True)
    said = None if promote is None or against is None else found.promotes(promote, over=against, by=by)
    if as_json:
        gate = {} if said is None else {"promotes": said.yes, "reason": said.sentence}
        answer({**evaluation_data(found), **gate, "page": str(output)})
    else:
        click.echo("\n\n".join([evaluation_text(found), *([] if said is None else [said.sentence])]))
    talk(f"page: {output}")


def _problem(given: Path | None, own: Problem | None, source: Source) -> Problem:
    """Return the problem that is given, that of the policies or that of a store; refuse a log that is not there."""
    known = Problem.load(given) if given is not None else own
    if known is None and source.path.suffix == STORE:
        with source.stored() as (known, _):
            pass
    if known is None:
        raise click.UsageError("which contexts and arms? --problem FILE, or a policy with a file")
    if not source.path.is_file():
        raise ValueError(f"{source.path}: there is no such file")
    return known


def _check_targets(targets: dict[str, Any], against: str | None, problem: Problem) -> None:
    """Refuse words for no policy, and plans for another problem, before the log is read."""
    given = list(targets.values()) if against is None or against in targets else [*targets.values(), against]
    for one in given:
        check_early(one, problem)


def _check_output(output: Path, read: list[Path | None]) -> None:
    """Refuse to write the page over what is read."""
    if output.exists() and any(path is not None and output.samefile(path) for path in read):
        raise click.UsageError(f"--output {output} is a file that is read; the page needs another name")


def _bar(targets: dict[str, Any], against: str | None, quiet: bool) -> Any:
    """Return a bar with a step for each policy and each difference."""
    names = {*targets} if against is None else {*targets, against}
    count = len(names) + (0 if against is None else len(names) - 1)
    return bar(length=count, label="evaluating", quiet=quiet)


def _check_promoted(name: str | None, against: str | None, targets: dict[str, Any]) -> None:
    """Refuse, before any work, to promote who is not compared."""
    if name is None:
        return
    if name == against:
        raise click.UsageError(f"--promote {name!r} and --against are the same policy; compare it with another one")
    if name not in targets:
        raise click.UsageError(f"--promote {name!r} is no --policy; there are {', '.join(map(repr, targets))}")


def _stopped(state: Path) -> str:
    """Say how to go on; where the log was still being read, nothing is kept."""
    if not state.exists():
        return "interrupted while the log was read; the same command begins again"
    return f"interrupted; what is done is in {state}, the same command goes on"


def _targets(given: tuple[str, ...]) -> tuple[dict[str, Any], Problem | None]:
    """Return policies by name, and the problem of the first that has one."""
    found: dict[str, Any] = {}
    problem = None
    for text in given:
        name, equals, file = text.partition("=")
        if not name.strip():
            raise click.UsageError(f"--policy {text!r} has no name; it is NAME or NAME=FILE")
        if name in found:
            raise click.UsageError(f"two policies are called {name!r}; give the second another name")
        found[name] = _loaded(file) if equals else name
        if equals and problem is None:
            problem = found[name].problem
    return found, problem


def _loaded(file: str) -> Any:
    """Return the plan or the policy in a file."""
    header, _ = read_arrays(file)
    return load_plan(file) if header.get("format") == PLAN_FORMAT else load(file)
