"""Clicks in ZOZO's shop: the value of the random policy, estimated from another policy's log, against the truth.

    python studies/zozo.py                   # the table; pip downloads the data into a temporary folder
    python studies/zozo.py --folder obd      # the same from the folder `obd`, of the sample or of the whole data set
    python studies/zozo.py page              # writes the table into research/real-data.md

The sample is in the release 0.4.1 of the package obp, which is read as an archive and not installed.
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
PAGE = Path(__file__).parents[1] / "research" / "real-data.md"
BEGIN, END = "<!-- zozo: begin -->", "<!-- zozo: end -->"
HEAD = ("campaign", "items", "clicks at random, in 10,000", "clicks of bts", "estimate of random from bts (IPS)",
        "standard error", "effective sample")  # fmt: skip


@contextlib.contextmanager
def sample(folder: Path | None) -> Iterator[Path]:
    """Yield the folder `obd`: the options one, or that of the release, downloaded by pip into a temporary folder."""
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory() as temporary:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", temporary, RELEASE]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        archive = next(Path(temporary).glob("obp-*.whl"), None)
        if archive is None:
            raise SystemExit(
                f"{RELEASE} cannot be downloaded: pip failed with {done.stderr.strip()[-200:]!r}. "
                "If you have the folder `obd`, pass it: --folder obd"
            )
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(
                temporary, [name for name in wheel.namelist() if "/obd/" in name and name.endswith(".csv")]
            )
        yield Path(temporary) / "obp" / "dataset" / "obd"


def logged(folder: Path, policy: Any, campaign: Any) -> Logged:
    """Return the rows of a campaign; positions are the contexts, items the arms."""
    rows = list(bw.datasets.zozo(folder, logged=policy, campaign=campaign))
    items = sorted({name for row in rows for name in row.offered}, key=int)
    problem = bw.Problem.from_sample([row.context for row in rows], arms=items, reward_range=(0, 1))
    return Logged.from_rows(problem, rows)


def line(folder: Path, campaign: str) -> list[str]:
    """Return the row of one campaign; estimated clicks are per 10,000 rows, the size of each log."""
    random, bts = (logged(folder, policy, campaign) for policy in ("random", "bts"))
    uniform = target_of("uniform", bts)
    estimate, weights = estimates(bts, uniform, None)["ips"], diagnostics_of(bts, uniform)
    clicks = (random.reward.sum(), bts.reward.sum(), 1e4 * estimate.value, 1e4 * estimate.error, weights.effective_rows)
    return [campaign, str(random.problem.n_arms), *(f"{one:,.0f}" for one in clicks)]


def text(folder: Path) -> str:
    """Return the table."""
    lines = [list(HEAD), ["---"] * len(HEAD), *(line(folder, campaign) for campaign in get_args(Campaign))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> None:
    """Print the table, and put it into the page if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["run", "page"], default="run")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with sample(options.folder) as folder:
        table = text(folder)
    print(table)
    if options.what == "page":
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
