"""The scoreboard: LC-Tsallis-INF and rivals in twenty regimes, ranked by the worst ratio to the best player.

In six of them, worlds that change, the ratio is that of dynamic regrets, against the best arm of every round.

    python studies/scoreboard.py --instances tuning      # instances for choosing rules
    python studies/scoreboard.py --instances held-out    # instances that are reported; the same command resumes
    python studies/scoreboard.py --instances held-out --regimes seasons jumps "slow turn" "changes at T/2"
    python studies/scoreboard.py --instances held-out --page research/scoreboard.md
    python studies/scoreboard.py --instances "eighteenth held-out" --played --ratios docs/explanation/scoreboard.md

Results are lines of studies/board/INSTANCES.csv; existing lines are not played again.
"""

import argparse
import sys
from pathlib import Path

from board import page, players, records, table, worlds

HERE = Path(__file__).parent


def main() -> int:
    """Play what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", choices=list(worlds.FAMILIES), required=True)
    parser.add_argument("--horizon", type=int, default=20_000)
    parser.add_argument("--replications", type=int, default=8)
    parser.add_argument("--per-size", type=int, default=2, help="instances of every size")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--results", type=Path, help="another file of results")
    parser.add_argument("--without", nargs="*", default=[], help="players to leave out, by their labels")
    parser.add_argument("--regimes", nargs="*", help="only these regimes, by their names")
    parser.add_argument("--played", action="store_true", help="play nothing: print tables of the existing results")
    parser.add_argument("--page", type=Path, help="write the tables into this page, between its markers")
    parser.add_argument("--ratios", type=Path, help="write the table of ratios into this page, between its markers")
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args()
    conditions = records.Conditions(options.instances, options.horizon, options.replications)
    path = options.results or HERE / "board" / f"{options.instances.replace(' ', '-')}.csv"
    lines = records.read(path, conditions) if options.played else lines_of(path, conditions, options)
    labels = list(dict.fromkeys(label for _, label in lines))
    boards = {grain: table.board(lines, labels, options.horizon, grain=grain) for grain in table.GRAINS}
    print(table.plain(boards["regime"]))
    if options.page:
        page.write(options.page, [*page.rows_of(boards["regime"]), "", *page.worst_rows(boards)])
    if options.ratios:
        page.write(options.ratios, page.ratio_rows(boards["regime"]))
    return 0


def lines_of(path: Path, conditions: records.Conditions, options: argparse.Namespace) -> records.Lines:
    """Play what is missing, and return the lines of all players, retired ones included."""
    everyone = {**players.ours(), **players.rivals(options.horizon)}
    everyone = {label: player for label, player in everyone.items() if label not in options.without}
    cells = list(worlds.cells(options.horizon, options.per_size, regimes=options.regimes))
    lines = records.play(path, conditions, cells, everyone, threads=options.threads, quiet=options.quiet)
    return lines | records.kept(path, conditions, cells, set(players.RETIRED) - set(options.without))


if __name__ == "__main__":
    sys.exit(main())
