"""Data sets as bandits: progressive reward of players on labelled streams, by the bake-off's protocol.

    python benchmarks/streams.py --out streams.csv        # all data sets, orders and players
    python benchmarks/streams.py --data iris --data sea --players "matched,D-LinUCB" --rounds 1000 --seeds 2
    python benchmarks/streams.py --from-csv streams.csv --rewards --beside "matched,listed D-LinUCB"

A labelled row is a context and its class the arm that earns 1. All players of a seed see the same rows, after an
archive of rows that only those with a listed problem use, without rewards. Reward is the mean over all rounds while
learning. The share of a player in a cell (data set, order) is (its reward - that of uniform play)/(the reward of the
best player of the cell - that of uniform play), rewards averaged over seeds; the table has means over data sets.
"""

import csv
import platform
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TextIO

import click
import numpy as np

import bothworlds as bw
import stream_vw
from bothworlds import datasets
from bothworlds.datasets import Stream
from bothworlds.datasets.streams import ORDERS
from bothworlds.errors import MissingPackageError
from stream_players import Game, Make, Player, players
from stream_table import Row, beside, restarts, rewards_table, table

PACKAGES = ("bothworlds", "numpy", "river", "scikit-learn", "vowpalwabbit")


def play(player: Player, rows: Stream) -> np.ndarray:
    """Return the reward of every round."""
    earned = np.empty(len(rows))
    for t, (row, rewards) in enumerate(zip(rows.contexts, rows.rewards, strict=True)):
        earned[t] = rewards[player.act(row)]
        player.update(float(earned[t]))
    return earned


def result(name: str, make: Make, rows: Stream, order: str, game: Game) -> Row:
    """Play one stream with one player."""
    start = time.perf_counter()
    player = make(game)
    earned = play(player, rows)
    return Row(
        data=rows.name,
        order=order,
        seed=game.seed,
        player=name,
        rounds=len(rows),
        reward=float(earned.mean()),
        second_half=float(earned[len(rows) // 2 :].mean()),
        uniform=rows.uniform_reward(),
        constant=rows.constant_reward(),
        linear=rows.linear_reward(),
        label=float(rows.rewards.max(axis=1).mean()),
        seconds=time.perf_counter() - start,
        restarts=getattr(player, "restarts", 0),
    )


def results(
    data: list[str], orders: list[str], chosen: dict[str, Make], *, rounds: int, archive: int, cells: int, seeds: int
) -> Iterator[Row]:
    """Play everything, seed after seed, so that a run that is stopped has whole seeds."""
    for seed in range(1, seeds + 1):
        for name in list(data):
            try:
                whole = datasets.read_stream(name, rounds=archive + rounds, rng=seed)
            except MissingPackageError as error:
                click.echo(f"{name} left out: {error}", err=True)
                data.remove(name)
                continue
            played = whole.from_round(archive)
            game = Game(played.arms, played.contexts.shape[1], seed, whole.contexts[:archive], cells)
            for order in orders:
                rows = ORDERS[order](played)  # type: ignore[index]
                for player, make in chosen.items():
                    yield result(player, make, rows, order, game)


def conditions() -> Iterator[str]:
    """Return versions of packages and the machine, a line each."""
    for package in PACKAGES:
        try:
            yield f"{package}: {bw.__version__ if package == 'bothworlds' else metadata.version(package)}"
        except metadata.PackageNotFoundError:
            yield f"{package}: not installed"
    yield f"python: {platform.python_version()}, {platform.machine()}"


def write(file: TextIO, rows: Iterator[Row], heads: list[str]) -> list[Row]:
    """Write conditions as comments and then a line per result as it comes; return the results."""
    writer, done = csv.writer(file), []
    file.writelines(f"# {line}\n" for line in heads)
    writer.writerow(Row._fields)
    for row in rows:
        writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in row])
        file.flush()
        done.append(row)
        words = f"seed {row.seed}, {row.data}, {row.order}, {row.player}: {row.reward:.3f} in {row.seconds:.1f} s"
        click.echo(words, err=True)
    return done


def read(path: Path) -> list[Row]:
    """Return the results in a file; of those that are there twice, the last."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(line for line in file if not line.startswith("#"))
        kinds = Row.__annotations__
        rows = [Row(**{name: kinds[name](value) for name, value in line.items()}) for line in lines]
    return list({(row.data, row.order, row.seed, row.player): row for row in rows}.values())


def chosen_players(names: str | None) -> dict[str, Make]:
    """Return players by name, without VowpalWabbit's if it is not installed."""
    known = players()
    wanted = list(known) if names is None else [name.strip() for name in names.split(",")]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise click.BadParameter(f"unknown {', '.join(unknown)}; known are {', '.join(known)}", param_hint="--players")
    if stream_vw.package() is None and any(name in stream_vw.POLICIES for name in wanted):
        click.echo(f"{stream_vw.MISSING}; left out", err=True)
        wanted = [name for name in wanted if name not in stream_vw.POLICIES]
    return {name: known[name] for name in wanted}


def show(rows: list[Row], orders: list[str], pair: str | None, *, rewards: bool) -> None:
    """Print the tables asked for."""
    click.echo(table(rows, orders))
    if any(row.restarts for row in rows):
        click.echo("\n" + restarts(rows, orders))
    if pair is not None:
        names, known = [name.strip() for name in pair.split(",")], {row.player for row in rows}
        if len(names) != 2 or not known.issuperset(names):
            raise click.BadParameter(f"two of {', '.join(sorted(known))}, separated by a comma", param_hint="--beside")
        click.echo("\n" + beside(rows, names[0], names[1], orders))
    if rewards:
        played = {row.order for row in rows}
        click.echo("".join(f"\n{rewards_table(rows, order)}\n" for order in orders if order in played))


HELP = str(__doc__).replace("\n\n    python", "\n\n\b\n    python")  # click keeps the lines of such a paragraph


@click.command(help=HELP)
@click.option("--data", multiple=True, type=click.Choice(datasets.STREAMS), help="a data set; repeat it; default all")
@click.option("--orders", multiple=True, type=click.Choice(list(ORDERS)), help="an order; repeat it; default all four")
@click.option("--players", "names", help="names, separated by commas; default all")
@click.option("--rounds", default=4000, show_default=True, type=click.IntRange(2))
@click.option("--seeds", default=5, show_default=True, type=click.IntRange(1))
@click.option("--archive", default=500, show_default=True, type=click.IntRange(1), help="rows before the first round")
@click.option("--cells", default=32, show_default=True, type=click.IntRange(1), help="of listed players, by k-means")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="file of results, CSV; written over")
@click.option(
    "--from-csv", type=click.Path(exists=True, path_type=Path), multiple=True, help="print its tables alone; repeat it"
)
@click.option("--beside", "pair", help="two players separated by a comma: their shares by order, and the ratio")
@click.option("--rewards", is_flag=True, help="also a table of rewards by data set for each order")
def main(
    data: tuple[str, ...],
    orders: tuple[str, ...],
    names: str | None,
    rounds: int,
    seeds: int,
    archive: int,
    cells: int,
    out: Path | None,
    from_csv: tuple[Path, ...],
    pair: str | None,
    rewards: bool,
) -> None:
    wanted = list(orders or ORDERS)
    if from_csv:
        found = [row for path in from_csv for row in read(path)]
        show([row for row in found if row.data in (data or datasets.STREAMS)], wanted, pair, rewards=rewards)
        return
    chosen = chosen_players(names)
    played = results(
        list(data or datasets.STREAMS), wanted, chosen, rounds=rounds, archive=archive, cells=cells, seeds=seeds
    )
    heads = [f"rounds {rounds}, archive {archive}, cells {cells}, seeds 1 to {seeds}", *conditions()]
    with open("/dev/null" if out is None else out, "w", encoding="utf-8", newline="") as file:
        done = write(file, played, heads)
    if not done:
        raise click.ClickException("nothing was played: no player or data set is left")
    click.echo("\n".join(f"# {line}" for line in heads))
    show(done, wanted, pair, rewards=rewards)


if __name__ == "__main__":
    main()
