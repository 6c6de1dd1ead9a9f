"""A sample of the Open Bandit Dataset: clicks in ZOZO's fashion shop, logged under a uniform and a learned policy."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

from bothworlds.datasets.packaged import folder_of
from bothworlds.errors import MissingPackageError
from bothworlds.logs import Row, read_open_bandit

Logged = Literal["random", "bts"]
Campaign = Literal["all", "men", "women"]
MISSING = (
    "the sample of ZOZO's log comes with release 0.4.1 of the package obp, not with later ones. Either "
    "pip download obp==0.4.1 --no-deps, unzip it and pass the folder: zozo('obp/dataset/obd'); or "
    "pip install --no-deps obp==0.4.1"
)


def zozo(
    path: str | Path | None = None,
    *,
    logged: Logged = "random",
    campaign: Campaign = "all",
    context: Sequence[str] = ("position",),
) -> Iterator[Row]:
    """Read 10,000 rows of ZOZO's log lazily: an item in one of three positions, clicked or not.

    The Open Bandit Dataset (Saito, Aihara, Matsutani and Narita 2021) is published under CC BY 4.0. Release 0.4.1 of
    the package obp contains a sample of it, under Apache 2.0, which is read in place.

    Parameters
    ----------
    path
        The folder ``obd`` of the sample or of the full data set; by default that of the installed package obp 0.4.1.
    logged
        Logging policy: "random", every item with the same probability, or "bts", Bernoulli Thompson sampling trained
        beforehand.
    campaign
        "all" (80 items), "men" (34) or "women" (46).
    context
        Columns that form the context; by default the position alone, because the many user features say little.
    """
    for value, kinds, word in ((logged, get_args(Logged), "logged"), (campaign, get_args(Campaign), "campaign")):
        if value not in kinds:
            raise ValueError(f"{word} must be one of {', '.join(kinds)}; got {value!r}")
    folder = _installed() if path is None else Path(path)
    file = folder / logged / campaign / f"{campaign}.csv"
    if not file.exists():
        raise ValueError(f"there is no {file}; the folder must be `obd`, with {logged}/{campaign} in it. {MISSING}")
    return read_open_bandit(file, context=context, uniform=logged == "random")


def _installed() -> Path:
    """Return the folder in the installed package."""
    package = folder_of("obp")
    if package is None:
        raise MissingPackageError(MISSING)
    return package / "dataset" / "obd"
