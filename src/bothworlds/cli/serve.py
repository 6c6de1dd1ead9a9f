"""`bothworlds serve`: decisions over HTTP, from one file of settings and one file that keeps everything."""

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from bothworlds.cli.common import Number, Place, answer, json_option, reading, serving, talk, working

SCOPES = ("decide", "reward", "admin")


@click.command()
@click.argument("settings", type=Place(), required=False)
@click.option("--check", is_flag=True, help="Say what is wrong with SETTINGS, or that nothing is; serve nothing.")
@click.option("--example", is_flag=True, help="Print commented settings to begin with.")
@click.option("--demo", is_flag=True, help="Serve an example, with visitors who are made up.")
@click.option("--folder", type=Place(file_okay=False),
              help="Where --demo keeps its store, to go on with it later [a temporary folder].")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), help="Listen here [what SETTINGS say, or 8080]; 0 finds one.")
def serve(
    *, settings: Path | None, check: bool, example: bool, demo: bool, folder: Path | None, port: int | None
) -> None:
    r"""Serve decisions over HTTP as SETTINGS (a TOML file) say, until Ctrl-C or SIGTERM.

    What is answered is stored, what is stored is learnt, and a restart goes on where the store ends. Browsers find a
    page at /, programs an OpenAPI document at /openapi.json. Needs pip install 'bothworlds[serve]'.

    \b
    Examples:
      bothworlds serve --demo                 an example that moves, to look at
      bothworlds serve --example > ads.toml   settings to begin with
      bothworlds serve --check ads.toml
      bothworlds serve ads.toml
    """
    if sum([settings is not None and not check, check, example, demo]) != 1 or (check and settings is None):
        raise click.UsageError("what is to be served? SETTINGS, or --check SETTINGS, or --demo, or --example")
    if folder is not None and not demo:
        raise click.UsageError("--folder is for --demo; SETTINGS say where the store is")
    if example:
        from bothworlds.service.example import EXAMPLE

        click.echo(EXAMPLE, nl=False)
    elif demo:
        with working(), _folder(folder) as place:
            _demonstrate(place, 8080 if port is None else port)
    else:
        with serving(), reading():
            from bothworlds.service.settings import read_settings

            told = read_settings(str(settings))
            if check:
                told.rehearse()
        if check:
            click.echo(f"{settings}: ok, with {', '.join(told.experiments)}")
        else:
            _serve(told, port)


@contextlib.contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    """Use a folder, or one that is gone afterwards."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="bothworlds-demo-") as made:
        yield Path(made)


def _serve(told: Any, port: int | None) -> None:
    """Serve until a signal comes."""
    with serving(), working():
        from bothworlds.service.network import placed
        from bothworlds.service.network import serve as listen
        from bothworlds.service.service import Service
        from bothworlds.warming import warm_up_apart

        told = placed(told, port)
    with reading():
        warm_up_apart(one.player for one in told.experiments.values())
        service = Service(told, say=talk)
    with working():
        listen(service, say=talk)


def _demonstrate(folder: Path, port: int) -> None:
    """Serve the example to visitors who are made up."""
    with serving(), working():
        from bothworlds.service.client import Client
        from bothworlds.service.demo import Visitors, demo_settings
        from bothworlds.service.network import address, placed

        told = placed(demo_settings(folder, port=port), None)
    visitors = Visitors(Client(address(told), tries=1), "banners", told)
    talk(f"the store is in {folder}; look at {address(told)}/ in a browser; Ctrl-C ends")
    visitors.start()
    try:
        _serve(told, None)
    finally:
        visitors.stop()


@click.command()
@click.argument("name")
@click.option("--scope", "scopes", type=click.Choice(SCOPES), multiple=True, required=True,
              help="What the token is for; may be given again.")  # fmt: skip
@click.option("--rate", type=Number(min=0, min_open=True), help="Requests a second, at most [no limit].")
@json_option
def token(*, name: str, scopes: tuple[str, ...], rate: float | None, as_json: bool) -> None:
    r"""Make a token for NAME: a secret, shown once on stderr, and lines for the settings with its hash, on stdout.

    decide: ask for decisions and the plan. reward: tell rewards, activate. admin: the page, decisions by id, changes.

    \b
    Examples:
      bothworlds token shop --scope decide --scope reward >> ads.toml
      bothworlds token me --scope admin >> ads.toml
    """
    if not name or not name.isprintable():
        raise click.UsageError("NAME is a text of letters that can be printed")
    with serving():
        from bothworlds.service.access import new_token
    secret, hashed = new_token()
    told = list(dict.fromkeys(scopes))
    if as_json:
        answer({"name": name, "secret": secret, "sha256": hashed, "scopes": told, "rate": rate})
        return
    lines = [("name", name), ("sha256", hashed), ("scopes", told), *([] if rate is None else [("rate", rate)])]
    text = "\n".join(f"{word} = {json.dumps(value, ensure_ascii=False)}" for word, value in lines)
    click.echo(f"\n[[tokens]]\n{text}")
    talk(f"the token of {name}, shown this once: {secret}")
