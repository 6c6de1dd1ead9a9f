"""`bothworlds report`: the page of a folder of results."""

from pathlib import Path
from typing import Any

import click

from bothworlds.cli.common import NUMBER, Place, answer, folder_argument, json_option, reading, talk, working
from bothworlds.report.data import all_data
from bothworlds.report.figures import Bounds, all_charts
from bothworlds.report.files import write_figures
from bothworlds.report.look import PLAIN, Look, check_labels
from bothworlds.report.overlays import NO_OVERLAYS, Overlays, for_regimes, read_overlays
from bothworlds.report.page import write_report
from bothworlds.report.panels import Summary, summary_of
from bothworlds.report.theorems import theorem_bounds
from bothworlds.simulation.folder import read_folder, resuming


@click.command()
@folder_argument
@click.option("--output", type=Place(dir_okay=False), help="The page [FOLDER/report.html].")
@click.option(
    "--figures",
    type=Place(file_okay=False),
    help="Also write the figures here: SVG, and PDF and PNG if matplotlib is installed.",
)
@click.option(
    "--with",
    "others",
    type=Place(),
    multiple=True,
    help="Lay curves over page and figures: another folder of results, or a CSV (regime, algorithm, t, regret).",
)
@click.option("--width", metavar="INCHES", help="Of the figures: inches, column (3.25) or page (6.75) [4.6].")
@click.option("--font-size", type=NUMBER, metavar="POINTS", help="Of the figures [9].")
@click.option("--grey", is_flag=True, help="Figures without colours: dashes and marks instead.")
@click.option("--algorithms", metavar="A;B;...", help="Only these in the figures, in this order: labels.")
@click.option("--label", metavar="OLD=NEW", multiple=True, help="Another name for an algorithm in the figures.")
@json_option
def report(
    folder: Path, output: Path | None, figures: Path | None, others: tuple[Path, ...], as_json: bool, **look: Any
) -> None:
    r"""Write the results in FOLDER as one self-contained HTML page.

    The page works offline, prints well, and carries its own numbers (CSV, JSON), the table in LaTeX, and the study
    that reproduces it. Cells that are not finished are left out. With --json the numbers go to stdout, too.

    \b
    Examples:
      bothworlds report comparison
      bothworlds report first-results --output first.html --figures figures
      bothworlds report comparison --figures paper --width column --font-size 8 --grey
      bothworlds report comparison --with mine.csv --output both.html
      bothworlds report comparison --figures paper --with mine.csv --label "LC-Tsallis-INF matched=ours"
    """
    if figures is None and any(look.values()):
        raise click.UsageError("how figures look is said, but not where they go: add --figures FOLDER")
    with reading():
        summary = summary_of(read_folder(folder))
        curves = read_overlays(others, taken=summary.labels)
        overlays, nowhere = for_regimes(curves, [panel.name for panel in summary.panels])
        chosen = _look(summary, overlays, **look)
    bounds = theorem_bounds(summary)
    with working():
        page = written(summary, output or folder / "report.html", figures, bounds, overlays=overlays, look=chosen)
    if as_json:
        answer(all_data(summary, bounds))
    else:
        click.echo(page)
    if nowhere:
        talk(f"curves left out, for there is no such regime here: {', '.join(nowhere)}")
    if summary.missing:
        talk(f"{len(summary.missing)} cells are not finished and left out; {resuming(folder)}")


def _look(
    summary: Summary,
    overlays: Overlays,
    *,
    width: str | None,
    font_size: float | None,
    grey: bool,
    algorithms: str | None,
    label: tuple[str, ...],
) -> Look:
    """Return how figures look; who is named has to be there."""
    wrong = [pair for pair in label if "=" not in pair]
    if wrong:
        raise click.BadParameter(f"{wrong[0]!r} is not OLD=NEW", param_hint="--label")
    chosen = None if algorithms is None else [name.strip() for name in algorithms.split(";") if name.strip()]
    if chosen == []:
        raise click.BadParameter(f"{algorithms!r} names nothing; leave it out for all", param_hint="--algorithms")
    look = Look(
        width=PLAIN.width if width is None else width,
        font_size=PLAIN.font_size if font_size is None else font_size,
        grey=grey,
        algorithms=chosen,
        labels=dict(pair.split("=", 1) for pair in label),
    )
    check_labels(look, [*summary.labels, *(curve.label for curves in overlays.values() for curve in curves)])
    return look


def written(
    summary: Summary,
    path: Path,
    figures: Path | None,
    bounds: Bounds,
    *,
    overlays: Overlays = NO_OVERLAYS,
    look: Look = PLAIN,
) -> Path:
    """Write the page, and the figures if they are wanted; return where the page is."""
    if figures is not None:
        files, note = write_figures(all_charts(summary, bounds, overlays), figures, look=look)
        talk(f"{len(files)} figures in {figures}" + (f" ({note})" if note else ""))
    return write_report(summary, path, bounds=bounds, overlays=overlays)
