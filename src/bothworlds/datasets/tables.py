"""Labelled tables in the installed packages scikit-learn and river, read from their files without importing them."""

import csv
import gzip
import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from bothworlds.arrays import Floats, Ints
from bothworlds.datasets.packaged import folder_of
from bothworlds.errors import MissingPackageError, not_installed

BSD = "{package}: BSD 3-Clause. Read from the installed package, not copied"
CUT = 5.0  # standard deviations
COMPONENTS = 15


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """Rows (n, p), standardised, with labels (n,) below ``classes``; source and terms of use."""

    name: str
    rows: Floats
    labels: Ints
    classes: int
    source: str
    licence: str


@dataclass(frozen=True, kw_only=True)
class File:
    """Where a table lies in a package, and how it is read: bytes -> (features, labels as text)."""

    package: str
    distribution: str
    path: str
    read: Callable[[bytes], tuple[Floats, list[str]]]
    source: str


def standardised(rows: Floats) -> Floats:
    """Return rows with mean 0 and standard deviation 1 in every column, cut off at -5 and 5; constant columns go.

    >>> standardised(np.array([[1.0, 7.0], [3.0, 7.0]])).tolist()
    [[-1.0], [1.0]]
    """
    spread = rows.std(axis=0)
    kept = spread > 1e-12 * (1.0 + np.abs(rows).max(axis=0))
    scaled: Floats = (rows[:, kept] - rows[:, kept].mean(axis=0)) / spread[kept]
    return np.clip(scaled, -CUT, CUT)


def principal(rows: Floats, count: int) -> Floats:
    """Return the first principal components of the standardised rows, standardised themselves."""
    centred = standardised(rows)
    directions = np.linalg.svd(centred - centred.mean(axis=0), full_matrices=False)[2][:count]
    return standardised(centred @ directions.T)


def read_csv(content: bytes, *, header: int = 1) -> tuple[Floats, list[str]]:
    """Return the columns of a CSV file but the last, as numbers, and the last, as texts."""
    lines = [line for line in csv.reader(io.StringIO(content.decode())) if line][header:]
    return np.array([line[:-1] for line in lines], dtype=np.float64), [line[-1] for line in lines]


def read_digits(content: bytes) -> tuple[Floats, list[str]]:
    """Return the digits: compressed, without a header."""
    return read_csv(gzip.decompress(content), header=0)


def read_gzip(content: bytes) -> tuple[Floats, list[str]]:
    """Return a compressed CSV file."""
    return read_csv(gzip.decompress(content))


def read_zip(content: bytes) -> tuple[Floats, list[str]]:
    """Return the first file of an archive, a CSV file."""
    return read_csv(_first_member(content))


def read_libsvm(content: bytes) -> tuple[Floats, list[str]]:
    r"""Return the first file of an archive, in which a line is ``label 1:value 2:value``.

    >>> buffer = io.BytesIO()
    >>> with zipfile.ZipFile(buffer, "w") as archive:
    ...     archive.writestr("two.txt", "-1 1:0.5 2:3 \n1 1:2 2:4\n")
    >>> [part if isinstance(part, list) else part.tolist() for part in read_libsvm(buffer.getvalue())]
    [[[0.5, 3.0], [2.0, 4.0]], ['-1', '1']]
    """
    lines = [line.split() for line in _first_member(content).decode().splitlines() if line.strip()]
    values = [[float(pair.partition(":")[2]) for pair in line[1:]] for line in lines]
    return np.array(values), [line[0] for line in lines]


def _first_member(content: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read(archive.namelist()[0])


def _of_sklearn(file: str, source: str, read: Callable[[bytes], tuple[Floats, list[str]]] = read_csv) -> File:
    path = f"datasets/data/{file}"
    return File(package="sklearn", distribution="scikit-learn", path=path, read=read, source=source)


def _of_river(file: str, source: str, read: Callable[[bytes], tuple[Floats, list[str]]]) -> File:
    return File(package="river", distribution="river", path=f"datasets/{file}", read=read, source=source)


FILES = {
    "iris": _of_sklearn("iris.csv", "Fisher 1936: 150 flowers of 3 kinds"),
    "wine": _of_sklearn("wine_data.csv", "UCI wine recognition: 178 wines of 3 growers"),
    "breast_cancer": _of_sklearn("breast_cancer.csv", "UCI breast cancer Wisconsin, diagnostic: 569 cases"),
    "digits": _of_sklearn("digits.csv.gz", "UCI handwritten digits, test part: 1,797 images", read_digits),
    "phishing": _of_river("phishing.csv.gz", "UCI website phishing: 1,250 pages", read_gzip),
    "segments": _of_river("segment.csv.zip", "UCI Statlog image segmentation: 2,310 pieces of 7 kinds", read_zip),
    "bananas": _of_river("banana.zip", "OpenML 1460: 5,300 points in two bent classes", read_libsvm),
}


@lru_cache(maxsize=16)
def table(name: str) -> Table:
    """Return a labelled table; of digits, the first 15 principal components of the 61 pixels that are not constant."""
    file = FILES[name]
    folder = folder_of(file.package)
    if folder is None:
        raise MissingPackageError(not_installed(f"the data set {name} needs", file.distribution, "streams"))
    try:
        values, texts = file.read((folder / Path(file.path)).read_bytes())
        if values.ndim != 2 or not values.size:
            raise ValueError("it has no rows of numbers")
    except (OSError, EOFError, ValueError, IndexError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"cannot read {name} from the installed {file.distribution}: {error}. Reinstall {file.distribution}"
        ) from None
    kinds, labels = _numbered(texts)
    return Table(
        name=name,
        rows=principal(values, COMPONENTS) if name == "digits" else standardised(values),
        labels=labels,
        classes=len(kinds),
        source=f"{file.source}; as {file.distribution} carries it",
        licence=BSD.format(package=file.distribution),
    )


def _numbered(texts: Sequence[str]) -> tuple[list[str], Ints]:
    """Return the different texts in alphabetical order, and the number of each text among them."""
    kinds = sorted(set(texts))
    place = {kind: i for i, kind in enumerate(kinds)}
    return kinds, np.array([place[text] for text in texts], dtype=np.int64)
