"""`bothworlds serve`: decisions over HTTP, from one file of settings and one file that keeps everything."""

from pathlib import Path

import click

from bothworlds.cli.common import reading, talk, working


@click.command()
@click.argument("settings", type=click.Path(path_type=Path))
def serve(*, settings: Path) -> None:
    """Serve."""
    from bothworlds.service.network import serve as listen
    from bothworlds.service.service import Service
    from bothworlds.service.settings import read_settings

    with reading():
        service = Service(read_settings(settings), say=talk)
    with working():
        listen(service, say=talk)
