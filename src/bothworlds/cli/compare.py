"""`bothworlds compare`: the main job, without any argument."""

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from bothworlds.cli.common import (
    FAILED,
    FINITE,
    POSITIVE,
    Integer,
    PathType,
    device_option,
    exit_on_failure,
    exit_with,
    json_option,
    print_json,
    print_message,
    quiet_option,
    report_time,
    split_names,
    threads_option,
    unused_folder,
)
from bothworlds.cli.report import check_figure_options, figure_options, look_of, written
from bothworlds.cli.show import headline
from bothworlds.report.data import headline_data
from bothworlds.report.summary import summary_of
from bothworlds.report.theorems import theorem_bounds
from bothworlds.simulation.engine import Device
from bothworlds.studies.comparison import (
    FEWEST_PLAYS,
    INSTANCES,
    SETTINGS,
    SIZES,
    comparison,
    known_algorithms,
    known_regimes,
)
from bothworlds.studies.folder import CELLS, STUDY, Finished, has_another_study
from bothworlds.studies.runner import run_study
from bothworlds.studies.study import Study

OUTPUT = Path("comparison")


def _complete(known: dict[str, Any], text: str) -> list[CompletionItem]:
    """Complete the last name of a list with commas."""
    before, comma, last = text.rpartition(",")
    return [CompletionItem(f"{before}{comma}{name}") for name in known if name.lower().startswith(last.lower())]


@click.command()
@click.option(
    "--algorithms",
    metavar="A,B,...",
    callback=split_names,
    shell_complete=lambda _, __, text: _complete(known_algorithms(), text),
    help="Algorithms to compare [the three tunings of LC-Tsallis-INF and their main rivals]; your own: FILE.py:NAME.",
)
@click.option(
    "--regimes",
    metavar="A,B,...",
    callback=split_names,
    shell_complete=lambda _, __, text: _complete(known_regimes(), text),
    help="Regimes to play [stochastic, adversarial, corrupted, changes at T/2, seasons, jumps, slow turn, margin, "
    "ad fatigue, rare clicks]; `list regimes` describes them and has more; your own: FILE.py:NAME.",
)
@click.option("--horizon", type=Integer(min=2), default=SETTINGS["horizon"], show_default=True, help="Rounds T.")
@click.option(
    "--instances",
    type=POSITIVE,
    default=INSTANCES,
    show_default=True,
    help="Instances of each regime, drawn at random; the results are pooled.",
)
@click.option(
    "--replications",
    type=POSITIVE,
    help=f"Replications of each instance [{FEWEST_PLAYS} divided by the instances, 1 or more].",
)
@click.option(
    "--seed",
    type=Integer(min=0),
    default=SETTINGS["seed"],
    show_default=True,
    help="Seed of the first instance and its random numbers; the next instance has the next seed.",
)
@click.option("--contexts", type=POSITIVE, default=SIZES["contexts"], show_default=True, help="Contexts S.")
@click.option("--arms", type=Integer(min=2), default=SIZES["arms"], show_default=True, help="Arms K.")
@click.option("--dimension", type=POSITIVE, default=SIZES["dimension"], show_default=True, help="Features d.")
@click.option("--gap", type=FINITE, default=SIZES["gap"], show_default=True, help="Smallest gap.")
@click.option("--rarity", type=FINITE, help="L, the inverse probability of the rarest context [uniform contexts].")
@click.option(
    "--output",
    type=PathType(file_okay=False),
    help=f"Folder for results and report.html [{OUTPUT}; {OUTPUT}-2, {OUTPUT}-3, ... for other options].",
)
@click.option("--force", is_flag=True, help="Overwrite results that have other options.")
@click.option(
    "--figures",
    type=PathType(file_okay=False),
    help="Also write the figures, table.tex and curves.csv to this folder.",
)
@figure_options
@threads_option
@device_option
@quiet_option
@json_option
def compare(
    *,
    algorithms: list[str] | None,
    regimes: list[str] | None,
    output: Path | None,
    force: bool,
    figures: Path | None,
    only: list[str] | None,
    width: str | None,
    font_size: float | None,
    font: str | None,
    grey: bool,
    threads: int | None,
    device: Device,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    r"""Compare LC-Tsallis-INF with its rivals, regime by regime.

    Prints a table and writes a page, report.html. Without arguments: LC-Tsallis-INF in all tunings and its main rivals
    on 20 random instances of ten regimes, the paper's three among them. That takes about two minutes on two idle cores,
    and the first time another minute for compilation. Four regimes are worlds that change: "changes at T/2", "seasons",
    "jumps" and "slow turn". There learners are judged by dynamic regret, against the best arm of every round; in the
    others by regret against the best fixed policy, and by total reward where nature reacts. The regime "rare clicks"
    has 12 contexts and 3 arms whatever the sizes; "changing clicks", where the best arm changes after a quarter of the
    rounds, is played when it is named.

    After an interruption the same command resumes. A comparison with other options gets a folder of its own.

    \b
    Examples:
      bothworlds compare
      bothworlds compare --horizon 100000 --instances 50 --output long
      bothworlds compare --instances 1 --seed 8 --output one
      bothworlds compare --figures paper --only comparison --width column --font-size 8
      bothworlds compare --algorithms matched,certified,LinUCB --regimes stochastic,corrupted --output few
      bothworlds compare --algorithms mine.py:Greedy,matched,LinUCB --output mine
      bothworlds compare --contexts 10 --arms 6 --rarity 100 --output rare --json > rare.json
      bothworlds compare --horizon 1000000 --instances 1 --replications 10000 --device gpu --output large
    """
    sizes = {key: settings.pop(key) for key in (*SIZES, "rarity")}
    options: dict[str, Any] = {"width": width, "font_size": font_size, "font": font, "grey": grey}
    check_figure_options(figures, only, options)
    try:
        study = comparison(algorithms=algorithms, regimes=regimes, sizes=sizes, **settings)
        look = look_of(**options)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    with exit_on_failure():
        folder = _folder(output, study, force=force)
    page = folder / "report.html"
    with (
        report_time(),
        exit_on_failure(lambda: f"interrupted; finished cells are in {folder}; the same command resumes"),
    ):
        done = run_study(study, folder, threads=threads, quiet=quiet, device=device)
        summary = summary_of(Finished(study=study, folder=folder, cells=done, missing=[]))
        written(summary, page, figures, theorem_bounds(summary), look=look, only=only)
    if as_json:
        print_json({**headline_data(summary), "report": str(page)})
    else:
        click.echo(headline(summary))
    print_message(f"report: {page}")


def _folder(output: Path | None, study: Study, *, force: bool) -> Path:
    """Return the folder for the results; refuse one that was named and has the results of another study."""
    if output is None:
        return OUTPUT if force else unused_folder(OUTPUT, lambda folder: _is_free(folder, study))
    conflict = None if force else _conflict(output, study)
    if conflict is not None:
        exit_with(f"{conflict}; choose another --output FOLDER, or overwrite it with --force", FAILED)
    return output


def _is_free(folder: Path, study: Study) -> bool:
    """Tell whether a folder has nothing, or results of this very study."""
    return not has_another_study(study, folder) and _conflict(folder, study) is None


def _conflict(folder: Path, study: Study) -> str | None:
    """Say which results of others are in a folder, None if there are none."""
    if (folder / CELLS).is_dir() and has_another_study(study, folder):
        return f"{folder} has the results of a study with other options, {folder / STUDY}"
    page = folder / "report.html"
    if page.exists() and not (folder / STUDY).is_file():
        return f"{page} exists already and is not the page of a comparison"
    return None
