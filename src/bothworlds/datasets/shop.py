"""A sample of the Open Bandit Dataset: clicks in the fashion shop of ZOZO, from uniform and from learning decisions."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

from bothworlds.datasets.packaged import folder_of
from bothworlds.errors import MissingPackageError
from bothworlds.logs import Row, read_open_bandit

Logged = Literal["random", "bts"]
Campaign = Literal["all", "men", "women"]
MISSING = (
    "the sample of ZOZO's log is in an old release of the package obp, which newer ones do not have: "
    "pip download obp==0.4.1 --no-deps, unzip it, and give the folder: zozo('obp/dataset/obd'); or install it, "
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

    The Open Bandit Dataset (Saito, Aihara, Matsutani and Narita 2021) is published under CC BY 4.0; a sample of it is
    in the release 0.4.1 of the package obp, under Apache 2.0. It is read where it lies.

    Parameters
    ----------
    path
        The folder ``obd``, of the sample or of the whole data set; where the package obp 0.4.1 is installed, its own.
    logged
        "random", every item with the same probability, or "bts", Bernoulli Thompson sampling that has learnt before.
    campaign
        "all" (80 items), "men" (34) or "women" (46).
    context
        Columns that make the context; the position alone if left out, for user features are many and say little.
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
