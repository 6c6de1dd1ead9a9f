"""`bothworlds report`: the page of a folder of results."""

from pathlib import Path

import click

from bothworlds.cli.common import answer, folder_argument, json_option, reading, talk, working
from bothworlds.report.data import all_data
from bothworlds.report.figures import Bounds, all_charts
from bothworlds.report.files import write_figures
from bothworlds.report.page import write_report
from bothworlds.report.panels import Summary, summary_of
from bothworlds.report.theorems import theorem_bounds
from bothworlds.simulation.folder import read_folder


@click.command()
@folder_argument
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="The page [FOLDER/report.html].")
@click.option(
    "--figures",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write the figures here: SVG, and PDF and PNG if matplotlib is installed.",
)
@json_option
def report(folder: Path, output: Path | None, figures: Path | None, as_json: bool) -> None:
    r"""Write the results in FOLDER as one self-contained HTML page.

    The page works offline, prints well, and carries its own numbers (CSV, JSON), the table in LaTeX, and the study
    that reproduces it. Cells that are not finished are left out. With --json the numbers go to stdout, too.

    \b
    Examples:
      bothworlds report comparison
      bothworlds report first-results --output first.html --figures figures
    """
    with reading():
        summary = summary_of(read_folder(folder))
    bounds = theorem_bounds(summary)
    with working():
        page = written(summary, output or folder / "report.html", figures, bounds)
    if as_json:
        answer(all_data(summary, bounds))
    else:
        click.echo(page)
    if summary.missing:
        talk(f"{len(summary.missing)} cells are not finished and left out; bothworlds run {folder}/study.toml")


def written(summary: Summary, path: Path, figures: Path | None, bounds: Bounds) -> Path:
    """Write the page, and the figures if they are wanted; return where the page is."""
    if figures is not None:
        files, note = write_figures(all_charts(summary, bounds), figures)
        talk(f"{len(files)} figures in {figures}" + (f" ({note})" if note else ""))
    return write_report(summary, path, bounds=bounds)
