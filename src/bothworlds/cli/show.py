"""`bothworlds show`: print a folder of results in the terminal."""

from difflib import get_close_matches
from pathlib import Path

import click

from bothworlds.cli.common import (
    bold,
    exit_on_bad_input,
    folder_argument,
    json_option,
    print_json,
    print_message,
    width,
)
from bothworlds.report.data import headline_data
from bothworlds.report.summary import Panel, Summary, summary_of
from bothworlds.report.terminal import finding_text, plot_text, reacting_text, table_text
from bothworlds.studies.folder import read_folder, resuming


@click.command()
@folder_argument
@click.option("--regime", metavar="NAME", help="Plot only this regime.")
@click.option("--plot/--no-plot", default=True, help="Draw a small plot of each regime [plot].")
@json_option
def show(folder: Path, regime: str | None, plot: bool, as_json: bool) -> None:
    r"""Print the results in FOLDER: a table and small plots.

    \b
    Examples:
      bothworlds show comparison
      bothworlds show comparison --regime corrupted
      bothworlds show comparison --json
    """
    with exit_on_bad_input():
        summary = summary_of(read_folder(folder))
    panels = summary.panels if regime is None else [_chosen(summary, regime, folder)]
    if as_json:
        print_json(headline_data(summary))
        return
    click.echo(headline(summary).rstrip())
    for panel in panels:
        if panel.environment.reacts:
            click.echo(f"\n{reacting_text(panel)}")
        if plot:
            click.echo(f"\n{plot_text(panel, width=min(100, width()))}")
    if summary.missing:
        print_message(f"{len(summary.missing)} cells are not finished; to finish them: {resuming(folder)}")


def headline(summary: Summary) -> str:
    """Return the table of a study with titles in bold, and its findings."""
    head, *rest = table_text(summary, width=width()).split("\n")
    return "\n".join([bold(head), *rest, finding_text(summary, width=width())])


def _chosen(summary: Summary, name: str, folder: Path) -> Panel:
    """Return a panel by its name; an unknown name is a usage error that lists the names."""
    panels = {panel.name: panel for panel in summary.panels}
    if name in panels:
        return panels[name]
    near = get_close_matches(name, panels, n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise click.BadParameter(
        f"no regime {name!r} in {folder}, which has {', '.join(map(repr, panels))}{hint}", param_hint="--regime"
    )
