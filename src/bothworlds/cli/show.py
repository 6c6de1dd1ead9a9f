"""`bothworlds show`: a folder of results in the terminal."""

from difflib import get_close_matches
from pathlib import Path

import click

from bothworlds.cli.common import answer, folder_argument, json_option, reading, strong, talk, width
from bothworlds.report.data import headline_data
from bothworlds.report.panels import Panel, Summary, summary_of
from bothworlds.report.terminal import finding_text, plot_text, reacting_text, table_text
from bothworlds.simulation.folder import read_folder, resuming


@click.command()
@folder_argument
@click.option("--regime", metavar="NAME", help="Plot this regime only.")
@click.option("--plot/--no-plot", default=True, help="Whether to draw small plots.")
@json_option
def show(folder: Path, regime: str | None, plot: bool, as_json: bool) -> None:
    r"""Show the results in FOLDER: a table, and a small plot of each regime.

    \b
    Examples:
      bothworlds show comparison
      bothworlds show comparison --regime corrupted
      bothworlds show comparison --json
    """
    with reading():
        summary = summary_of(read_folder(folder))
    panels = summary.panels if regime is None else [_chosen(summary, regime, folder)]
    if as_json:
        answer(headline_data(summary))
        return
    click.echo(headline(summary).rstrip())
    for panel in panels:
        if panel.environment.reacts:
            click.echo(f"\n{reacting_text(panel)}")
        if plot:
            click.echo(f"\n{plot_text(panel, width=min(100, width()))}")
    if summary.missing:
        talk(f"{len(summary.missing)} cells are not finished; {resuming(folder)}")


def headline(summary: Summary) -> str:
    """Return the table of a study, its titles in bold, and what it says."""
    head, *rest = table_text(summary, width=width()).split("\n")
    return "\n".join([strong(head), *rest, finding_text(summary, width=width())])


def _chosen(summary: Summary, name: str, folder: Path) -> Panel:
    """Return a panel by its name; a wrong one is a usage error with those of the folder, and the one that was meant."""
    known = {panel.name: panel for panel in summary.panels}
    if name in known:
        return known[name]
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise click.BadParameter(
        f"no regime {name!r} in {folder}, which has {', '.join(map(repr, known))}{hint}", param_hint="--regime"
    )
