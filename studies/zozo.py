"""Clicks in ZOZO's shop: what the random policy earned, estimated from the log of another and compared with the truth.

    python studies/zozo.py                   # the table; the data come with pip into a temporary folder
    python studies/zozo.py --folder obd      # the same from the folder `obd`, of the sample or of the whole data set
    python studies/zozo.py page              # writes the table into docs/real-data.md

The sample is in the release 0.4.1 of the package obp, which is read as an archive: nothing of it is installed.
"""

import argparse
import contextlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import bothworlds as bw
from bothworlds.datasets.shop import Campaign
from bothworlds.evaluation import Logged, diagnostics_of, estimates, target_of

RELEASE = "obp==0.4.1"
PAGE = Path(__file__).parents[1] / "docs" / "real-data.md"
BEGIN, END = "<!-- zozo: begin -->", "<!-- zozo: end -->"
HEAD = ("campaign", "items", "clicks at random, in 10,000", "clicks of bts", "estimate of random from bts (IPS)",
        "standard error", "effective sample")  # fmt: skip


@contextlib.contextmanager
def sample(folder: Path | None) -> Iterator[Path]:
    """Yield the folder `obd`: the one given, or that of the release, which pip fetches for the while."""
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", place, RELEASE]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        archive = next(Path(place).glob("obp-*.whl"), None)
        if archive is None:
            raise SystemExit(
                f"{RELEASE} cannot be had, so there are no data: pip said {done.stderr.strip()[-200:]!r}. "
                "Where there is a network, or the folder `obd`, give it: --folder obd"
            )
        with zipfile.ZipFile(archive) as whole:
            whole.extractall(place, [name for name in whole.namelist() if "/obd/" in name and name.endswith(".csv")])
        yield Path(place) / "obp" / "dataset" / "obd"


def logged(folder: Path, policy: Any, campaign: Any) -> Logged:
    """Return the rows of a campaign; positions are the contexts, items the arms."""
    rows = list(bw.datasets.zozo(folder, logged=policy, campaign=campaign))
    items = sorted({name for row in rows for name in row.offered}, key=int)
    problem = bw.Problem.from_sample([row.context for row in rows], arms=items, reward_range=(0, 1))
    return Logged.from_rows(problem, rows)


def line(folder: Path, campaign: str) -> list[str]:
    """Return what one campaign shows; clicks are those in as many rows as the log has, 10,000."""
    random, bts = (logged(folder, policy, campaign) for policy in ("random", "bts"))
    uniform = target_of("uniform", bts)
    found, weights = estimates(bts, uniform, None)["ips"], diagnostics_of(bts, uniform)
    clicks = (random.reward.sum(), bts.reward.sum(), 1e4 * found.value, 1e4 * found.error, weights.effective_rows)
    return [campaign, str(random.problem.n_arms), *(f"{one:,.0f}" for one in clicks)]


def text(folder: Path) -> str:
    """Return the table."""
    lines = [list(HEAD), ["---"] * len(HEAD), *(line(folder, campaign) for campaign in get_args(Campaign))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> None:
    """Print the table, and put it into the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["run", "page"], default="run")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with sample(given.folder) as folder:
        table = text(folder)
    print(table)
    if given.what == "page":
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
