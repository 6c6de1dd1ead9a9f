"""`bothworlds report`: write the page of a folder of results."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bothworlds.cli.common import (
    FINITE,
    PathType,
    exit_on_bad_input,
    exit_on_failure,
    folder_argument,
    json_option,
    print_json,
    print_message,
    split_names,
)
from bothworlds.problem.file_format import write_bytes
from bothworlds.report.data import all_data, curves_csv
from bothworlds.report.export import write_figures
from bothworlds.report.figure_style import FONTS, PLAIN, Look, check_labels, select
from bothworlds.report.figures import Bounds, all_figures
from bothworlds.report.overlay_curves import NO_OVERLAYS, Overlays, for_regimes, read_overlays
from bothworlds.report.study_page import write_report
from bothworlds.report.summary import Summary, summary_of
from bothworlds.report.tables import latex_table
from bothworlds.report.theorems import theorem_bounds
from bothworlds.studies.folder import read_folder, resuming


def figure_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the figures that a command writes: --only, --width, --font-size, --font and --grey."""
    options = (
        click.option("--only", metavar="A,B,...", callback=split_names, help="Write only these figures [all]."),
        click.option(
            "--width", metavar="INCHES", help="Width of the figures in inches, or column (3.25) or page (6.75) [4.6]."
        ),
        click.option("--font-size", type=FINITE, metavar="POINTS", help="Font size of the figures [9]."),
        click.option(
            "--font", type=click.Choice(list(FONTS)), help="Font of the figures; tex: the letters of LaTeX [sans]."
        ),
        click.option("--grey", is_flag=True, help="Draw the figures without color, with dashes and markers."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@folder_argument
@click.option("--output", type=PathType(dir_okay=False), help="Path of the page [FOLDER/report.html].")
@click.option(
    "--figures",
    type=PathType(file_okay=False),
    help="Also write to this folder: the figures as SVG, and as PDF and PNG if matplotlib is installed; table.tex; "
    "curves.csv.",
)
@click.option(
    "--with",
    "others",
    type=PathType(),
    multiple=True,
    help="Draw more curves on the page and in the figures: another folder of results, or a CSV file with the columns "
    "regime, algorithm, t, regret; repeat for several.",
)
@figure_options
@click.option("--algorithms", metavar="A;B;...", help="Labels of the algorithms in the figures, in this order [all].")
@click.option(
    "--label", metavar="OLD=NEW", multiple=True, help="Rename an algorithm in the figures; repeat for several."
)
@json_option
def report(
    folder: Path,
    output: Path | None,
    figures: Path | None,
    others: tuple[Path, ...],
    only: list[str] | None,
    as_json: bool,
    **look: Any,
) -> None:
    r"""Write the results in FOLDER as one HTML page.

    The page works offline and prints well. It contains its numbers (CSV, JSON), the table in LaTeX, and the study that
    reproduces it. Unfinished cells are left out. With --json the numbers also go to stdout.

    \b
    Examples:
      bothworlds report comparison
      bothworlds report first-results --output first.html --figures figures
      bothworlds report comparison --figures paper --width column --font-size 8 --grey
      bothworlds report comparison --figures paper --only comparison,strip --font serif
      bothworlds report comparison --with mine.csv --output both.html
      bothworlds report comparison --figures paper --with mine.csv --label "LC-Tsallis-INF matched=ours"
    """
    check_figure_options(figures, only, look)
    with exit_on_bad_input():
        summary = summary_of(read_folder(folder))
        curves = read_overlays(others, taken=summary.labels)
        overlays, unknown = for_regimes(curves, [panel.name for panel in summary.panels])
        chosen = _look(summary, overlays, **look)
        check_figure_names(summary, only)
    bounds = theorem_bounds(summary)
    page = output or folder / "report.html"
    with exit_on_failure():
        written(summary, page, figures, bounds, overlays=overlays, look=chosen, only=only)
    if as_json:
        print_json(all_data(summary, bounds))
    else:
        click.echo(page)
    if unknown:
        print_message(f"left out curves of regimes that {folder} does not have: {', '.join(unknown)}")
    if summary.missing:
        print_message(f"left out {len(summary.missing)} cells that are not finished; {resuming(folder)}")


def check_figure_options(figures: Path | None, only: list[str] | None, look: dict[str, Any]) -> None:
    """Refuse options for figures without a folder for them."""
    if figures is None and (only is not None or any(look.values())):
        raise click.UsageError("options for the look of figures need --figures FOLDER")


def check_figure_names(summary: Summary, only: list[str] | None) -> None:
    """Refuse names of figures that the summary does not have."""
    if only is not None:
        select(all_figures(summary), only)


def look_of(
    *,
    width: str | None = None,
    font_size: float | None = None,
    font: str | None = None,
    grey: bool = False,
    **more: Any,
) -> Look:
    """Return the look of figures for the options of a command; options left out have their defaults."""
    return Look(
        width=PLAIN.width if width is None else width,
        font_size=PLAIN.font_size if font_size is None else font_size,
        font=PLAIN.font if font is None else font,
        grey=grey,
        **more,
    )


def _look(summary: Summary, overlays: Overlays, *, algorithms: str | None, label: tuple[str, ...], **look: Any) -> Look:
    """Return the look of the figures; refuse unknown labels."""
    wrong = [pair for pair in label if "=" not in pair]
    if wrong:
        raise click.BadParameter(f"{wrong[0]!r} is not of the form OLD=NEW", param_hint="--label")
    chosen = None if algorithms is None else [name.strip() for name in algorithms.split(";") if name.strip()]
    if chosen == []:
        raise click.BadParameter(
            f"{algorithms!r} has no names; leave the option out for all", param_hint="--algorithms"
        )
    made = look_of(algorithms=chosen, labels=dict(pair.split("=", 1) for pair in label), **look)
    check_labels(made, [*summary.labels, *(curve.label for curves in overlays.values() for curve in curves)])
    return made


def written(
    summary: Summary,
    path: Path,
    figures: Path | None,
    bounds: Bounds,
    *,
    overlays: Overlays = NO_OVERLAYS,
    look: Look = PLAIN,
    only: list[str] | None = None,
) -> None:
    """Write the page, and the figures with the table and the curves if there is a folder for them."""
    write_report(summary, path, bounds=bounds, overlays=overlays)
    if figures is not None:
        files, note = write_figures(select(all_figures(summary, bounds, overlays), only), figures, look=look)
        write_bytes(figures / "table.tex", latex_table(summary).encode())
        write_bytes(figures / "curves.csv", curves_csv(summary, bounds).encode())
        print_message(f"{len(files)} figures, table.tex and curves.csv in {figures}" + (f" ({note})" if note else ""))
