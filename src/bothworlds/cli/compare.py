"""`bothworlds compare`: the main job, without any argument."""

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from bothworlds.cli.common import (
    FAILED,
    NUMBER,
    WHOLE,
    Place,
    Whole,
    accounted,
    answer,
    device_option,
    json_option,
    leave,
    names,
    quiet_option,
    talk,
    threads_option,
    working,
)
from bothworlds.cli.report import written
from bothworlds.cli.show import headline
from bothworlds.report.data import headline_data
from bothworlds.report.panels import summary_of
from bothworlds.report.theorems import theorem_bounds
from bothworlds.simulation.comparison import SETTINGS, SIZES, comparison, known_algorithms, known_regimes
from bothworlds.simulation.engine import Device
from bothworlds.simulation.folder import STUDY, Finished, has_another_study
from bothworlds.simulation.runner import run_study
from bothworlds.simulation.study import Study


def _complete(known: dict[str, Any], text: str) -> list[CompletionItem]:
    """Complete the last name of a list with commas."""
    before, comma, last = text.rpartition(",")
    return [CompletionItem(f"{before}{comma}{name}") for name in known if name.lower().startswith(last.lower())]


@click.command()
@click.option(
    "--algorithms",
    metavar="A,B,...",
    callback=names,
    shell_complete=lambda _, __, text: _complete(known_algorithms(), text),
    help="Which [all main ones]; your own as FILE.py:NAME.",
)
@click.option(
    "--regimes",
    metavar="A,B,...",
    callback=names,
    shell_complete=lambda _, __, text: _complete(known_regimes(), text),
    help="Which [stochastic, adversarial, corrupted, margin, ad fatigue, rare clicks]; `list regimes` has more. Your "
    "own: FILE.py:NAME.",
)
@click.option("--horizon", type=Whole(min=2), default=SETTINGS["horizon"], show_default=True, help="Rounds T.")
@click.option("--replications", type=WHOLE, default=SETTINGS["replications"], show_default=True, help="Replications R.")
@click.option("--seed", type=Whole(min=0), default=SETTINGS["seed"], show_default=True, help="Seed of all.")
@click.option("--contexts", type=WHOLE, default=SIZES["contexts"], show_default=True, help="Contexts S.")
@click.option("--arms", type=Whole(min=2), default=SIZES["arms"], show_default=True, help="Arms K.")
@click.option("--dimension", type=WHOLE, default=SIZES["dimension"], show_default=True, help="Features d.")
@click.option("--gap", type=NUMBER, default=SIZES["gap"], show_default=True, help="Smallest gap.")
@click.option("--rarity", type=NUMBER, help="L, one over the probability of the rarest context [uniform contexts].")
@click.option(
    "--output",
    type=Place(file_okay=False),
    default=Path("comparison"),
    show_default=True,
    help="Folder for results and report.html.",
)
@click.option("--force", is_flag=True, help="Write over a page that was made with other options.")
@click.option("--figures", type=Place(file_okay=False), help="Also write figures here.")
@threads_option
@device_option
@quiet_option
@json_option
def compare(
    *,
    algorithms: list[str] | None,
    regimes: list[str] | None,
    output: Path,
    force: bool,
    figures: Path | None,
    threads: int | None,
    device: Device,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    r"""Compare the paper's algorithm with its rivals, regime by regime; end in a table and a page.

    Needs no arguments: LC-Tsallis-INF in all tunings and its main rivals, in the paper's three regimes, under a margin
    condition, with ad fatigue and with rare clicks; a minute on two idle cores, and the first time half a minute more
    for compilation. Rare clicks (rates of 0.3 to 5 %) have 12 contexts and 3 arms whatever the sizes; 'changing
    clicks', where the favourite arm changes after a quarter of all rounds, is played if asked for by name.
    It can be interrupted: the same command goes on. A page made with other options is not written over, unless --force
    says so: give --output for a second comparison.

    \b
    Examples:
      bothworlds compare
      bothworlds compare --horizon 100000 --replications 50 --output long
      bothworlds compare --algorithms matched,certified,LinUCB --regimes stochastic,corrupted --output few
      bothworlds compare --algorithms mine.py:Greedy,matched,LinUCB --output mine
      bothworlds compare --contexts 10 --arms 6 --rarity 100 --output rare --json > rare.json
      bothworlds compare --horizon 1000000 --replications 10000 --device gpu --output large
    """
    sizes = {key: settings.pop(key) for key in (*SIZES, "rarity")}
    try:
        study = comparison(algorithms=algorithms, regimes=regimes, sizes=sizes, **settings)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    page = output / "report.html"
    with working():
        found = None if force else _whose(page, study)
    if found is not None:
        leave(f"{page} {found}; --output FOLDER writes elsewhere, --force writes over it", FAILED)
    with accounted(), working(lambda: f"interrupted; finished cells are in {output}, the same command goes on"):
        done = run_study(study, output, threads=threads, quiet=quiet, device=device)
        summary = summary_of(Finished(study=study, folder=output, cells=done, missing=[]))
        written(summary, page, figures, theorem_bounds(summary))
    if as_json:
        answer({**headline_data(summary), "report": str(page)})
    else:
        click.echo(headline(summary))
    talk(f"report: {page}")


def _whose(page: Path, study: Study) -> str | None:
    """Say whose page is there, if it is not that of this comparison."""
    kept = page.with_name(STUDY)
    if not page.exists():
        return None
    if not kept.is_file():
        return "is there already, and no comparison has made it"
    return f"was made with other options, which {kept} has" if has_another_study(study, page.parent) else None
