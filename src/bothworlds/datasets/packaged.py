"""Tables of the Python package pydataset, read from its archive without unpacking or importing it."""

import csv
import importlib.util
import io
import tarfile
from functools import lru_cache
from pathlib import Path

from bothworlds.errors import MissingPackageError, not_installed

ARCHIVE = "resources.tar.gz"


def folder_of(package: str) -> Path | None:
    """Return the folder of an installed package without importing it, None if it is not installed."""
    spec = importlib.util.find_spec(package)
    return None if spec is None or not spec.submodule_search_locations else Path(spec.submodule_search_locations[0])


@lru_cache(maxsize=4)
def packaged_table(name: str) -> tuple[dict[str, str], ...]:
    """Return a table of R's package Ecdat, as stored in pydataset: one dictionary of strings per row."""
    folder = folder_of("pydataset")
    if folder is None:
        raise MissingPackageError(not_installed(f"the data set {name} needs", "the package pydataset", "data"))
    member = f"resources/rdata/csv/Ecdat/{name}.csv"
    try:
        with tarfile.open(folder / ARCHIVE) as archive:  # reads only this file, into memory
            file = archive.extractfile(member)
            text = b"" if file is None else file.read()
    except (OSError, KeyError, tarfile.TarError) as error:
        raise ValueError(
            f"cannot read {name} from the installed pydataset: {error}. Reinstall pydataset, version 0.2"
        ) from None
    return tuple(csv.DictReader(io.StringIO(text.decode())))
