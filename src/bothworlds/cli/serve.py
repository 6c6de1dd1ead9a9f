"""`bothworlds serve`: serve decisions over HTTP, with one settings file and one store file."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bothworlds.cli.common import PathType, exit_on_bad_input, exit_on_failure, print_message, require_service_packages

if TYPE_CHECKING:
    from bothworlds.service.roles import Role


@click.command()
@click.argument("settings", type=PathType(), required=False)
@click.option("--check", is_flag=True, help="Check SETTINGS and exit.")
@click.option("--example", is_flag=True, help="Print a commented settings file and exit.")
@click.option("--demo", is_flag=True, help="Serve an example with simulated visitors.")
@click.option("--folder", type=PathType(file_okay=False),
              help="Keep the store of --demo here, to continue later [a temporary folder].")  # fmt: skip
@click.option(
    "--role", type=click.Choice(["decide", "learn", "both"]), default="both", show_default=True,
    help="What this host does; of several hosts with one store in PostgreSQL, one learns at a time.",
)  # fmt: skip
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port to listen on [from SETTINGS, else 8080]; 0 picks a free one."
)
def serve(
    *,
    settings: Path | None,
    check: bool,
    example: bool,
    demo: bool,
    folder: Path | None,
    port: int | None,
    role: "Role",
) -> None:
    r"""Serve decisions over HTTP.

    Runs with the settings in SETTINGS (a TOML file) until Ctrl-C or SIGTERM. Every decision is stored before it is
    sent, every stored reward is learned, and a restart continues where the store ends. The dashboard is at /, the
    OpenAPI document at /openapi.json. Needs the extra "serve": pip install '.[serve]' in a clone of the repository.
    `bothworlds service` has commands for tokens and for the store.

    \b
    Examples:
      bothworlds serve --demo                 an example with simulated visitors
      bothworlds serve --example > ads.toml   a settings file to start from
      bothworlds serve --check ads.toml
      bothworlds serve ads.toml
      bothworlds serve ads.toml --role decide
    """
    if sum([settings is not None and not check, check, example, demo]) != 1 or (check and settings is None):
        raise click.UsageError("give exactly one of SETTINGS, --check SETTINGS, --demo and --example")
    if folder is not None and not demo:
        raise click.UsageError("--folder belongs to --demo; SETTINGS has the path of the store")
    if example:
        from bothworlds.service.demo import EXAMPLE

        click.echo(EXAMPLE, nl=False)
    elif demo:
        with exit_on_failure(), _folder(folder) as place:
            _demonstrate(place, 8080 if port is None else port)
    else:
        with require_service_packages(), exit_on_bad_input():
            from bothworlds.service.settings import read_settings

            checked = read_settings(str(settings))
            if check:
                checked.rehearse()
        if check:
            click.echo(f"{settings}: ok, with {', '.join(checked.experiments)}")
        else:
            _serve(checked, port, role)


@contextlib.contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    """Use the given folder, or a temporary one."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="bothworlds-demo-") as temporary:
        yield Path(temporary)


def _serve(
    settings: Any,
    port: int | None,
    role: "Role" = "both",
    *,
    meanwhile: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
) -> None:
    """Serve until a signal arrives; ``meanwhile`` is entered until the service can listen."""
    with require_service_packages(), exit_on_failure():
        from bothworlds.kernels.jit.compile_notice import on_compile, silence_notices
        from bothworlds.precompile import warm_up_in_subprocess
        from bothworlds.service.server import placed
        from bothworlds.service.server import serve as listen
        from bothworlds.service.service import Service
        from bothworlds.service.service_log import ServiceLog

        settings = placed(settings, port)
        log = ServiceLog(log_format=settings.log_format, level=settings.log_level)
    compiling = Once(lambda: log.say("compiling, once for this machine; `bothworlds warm` does it beforehand"))
    try:
        with exit_on_bad_input(), meanwhile(), silence_notices(), on_compile(compiling):
            players = [experiment.player for experiment in settings.experiments.values()]
            warm_up_in_subprocess(players, on_start=compiling)
            service = Service(settings, role=role, say=log.say)
        with exit_on_failure():
            listen(service, log=log)
    finally:
        log.close()


class Once:
    """Calls a function the first time it is called."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._left = [function]

    def __call__(self) -> None:
        """Call the function, unless it was called before."""
        with contextlib.suppress(IndexError):
            self._left.pop()()


def _demonstrate(folder: Path, port: int) -> None:
    """Serve the example to simulated visitors."""
    with require_service_packages(), exit_on_failure():
        from bothworlds.service.client import Client
        from bothworlds.service.demo import Visitors, demo_settings
        from bothworlds.service.server import address, placed
        from bothworlds.service.starting_page import starting_page

        settings = placed(demo_settings(folder, port=port), None)
    visitors = Visitors(Client(address(settings), retry_for=0.0), "banners", settings)
    print_message(f"the store is in {folder}; open {address(settings)}/ in a browser; Ctrl-C stops the service")
    visitors.start()
    try:
        _serve(settings, None, meanwhile=lambda: starting_page(settings.host, settings.port))
    finally:
        visitors.stop()
