"""Data sets by name: read from packages where they lie; small made-up files stand in where a package is missing."""

import gzip
import io
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bothworlds import datasets
from bothworlds.datasets import generated, tables
from bothworlds.datasets.packaged import folder_of
from bothworlds.datasets.stream_sources import passes
from bothworlds.errors import MissingPackageError

SIZES = {  # rows, features that are not constant (of digits, components), classes: from the documents of the packages
    "iris": (150, 4, 3),
    "wine": (178, 13, 3),
    "breast_cancer": (569, 30, 2),
    "digits": (1797, 15, 10),
    "phishing": (1250, 9, 2),
    "segments": (2310, 18, 7),
    "bananas": (5300, 2, 2),
}
LINES = "a,b,label\n1,5,yes\n2,5,no\n3,5,yes\n"


def zipped(content: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("content", content)
    return buffer.getvalue()


FILES = {
    "iris": LINES.encode(),
    "digits": gzip.compress(LINES.partition("\n")[2].encode()),
    "phishing": gzip.compress(LINES.encode()),
    "segments": zipped(LINES),
    "bananas": zipped("yes 1:1 2:5\nno 1:2 2:5\nyes 1:3 2:5\n"),
}


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> Iterator[None]:
    tables.table.cache_clear()
    yield
    tables.table.cache_clear()


@pytest.mark.parametrize("name", FILES)
def test_tables_are_read_and_standardised(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / tables.FILES[name].path
    path.parent.mkdir(parents=True)
    path.write_bytes(FILES[name])
    monkeypatch.setattr(tables, "folder_of", lambda package: tmp_path)
    found = tables.table(name)
    assert found.classes == 2
    assert found.labels.tolist() == [1, 0, 1]  # no, yes
    assert np.abs(found.rows[:, :1]).ravel() == pytest.approx([1.5**0.5, 0.0, 1.5**0.5])
    if name != "digits":  # the second column is constant
        assert found.rows.shape == (3, 1)
    assert "BSD" in found.licence
    path.write_bytes(b"not what it was")
    tables.table.cache_clear()
    with pytest.raises(ValueError, match=f"cannot read {name} from the installed .*Reinstall"):
        tables.table(name)


def test_components_are_uncorrelated_and_keep_the_largest_spread() -> None:
    rng = np.random.default_rng(1)
    common = rng.normal(size=(300, 1))
    rows = np.hstack([common + 0.1 * rng.normal(size=(300, 3)), rng.normal(size=(300, 1))])
    found = tables.principal(rows, 2)
    assert found.shape == (300, 2)
    assert abs(float((found[:, 0] * found[:, 1]).mean())) < 0.05  # cut off at five standard deviations, no more
    shared = (common[:, 0] - common.mean()) / common.std()
    assert abs(float((found[:, 0] * shared).mean())) > 0.99


@pytest.mark.parametrize("name", SIZES)
def test_tables_of_installed_packages(name: str) -> None:
    if folder_of(tables.FILES[name].package) is None:
        pytest.skip(f"{tables.FILES[name].distribution} is not installed")
    found = tables.table(name)
    assert (*found.rows.shape, found.classes) == SIZES[name]
    assert np.abs(found.rows).max() <= tables.CUT
    assert set(found.labels.tolist()) == set(range(found.classes))


@pytest.mark.parametrize("name", generated.GENERATORS)
def test_generators_of_an_installed_package(name: str) -> None:
    pytest.importorskip("river.datasets.synth", reason="river is not installed")
    found = datasets.read_stream(name, rounds=60, rng=3)
    again, other = (datasets.read_stream(name, rounds=60, rng=seed) for seed in (3, 4))
    assert len(found) == 60
    assert found.contexts.tolist() == again.contexts.tolist()
    assert found.labels.tolist() == again.labels.tolist()
    assert found.contexts.tolist() != other.contexts.tolist()


def test_a_missing_package_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "folder_of", lambda package: None)
    with pytest.raises(MissingPackageError, match=r"iris needs scikit-learn, .*pip install '\.\[streams\]'"):
        datasets.read_stream("iris")
    monkeypatch.setitem(sys.modules, "river.datasets.synth", None)
    with pytest.raises(MissingPackageError, match=r"the stream sea needs river, .*pip install '\.\[streams\]'"):
        datasets.read_stream("sea")


def test_a_short_table_is_played_in_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = passes(7, 17, np.random.default_rng(1))
    assert sorted(numbers[:7].tolist()) == sorted(numbers[7:14].tolist()) == list(range(7))
    assert len(numbers) == 17
    made = tables.Table(
        name="made", rows=np.arange(7.0)[:, None], labels=np.arange(7) % 2, classes=2, source="", licence=""
    )
    monkeypatch.setattr("bothworlds.datasets.stream_sources.table", lambda name: made)
    rows = datasets.read_stream("iris", rounds=17, rng=5)
    assert np.unique(rows.contexts[:14], return_counts=True)[1].tolist() == [2] * 7
    assert (rows.contexts[:, 0] % 2).tolist() == rows.labels.tolist()
    orders = [datasets.read_stream("iris", rounds=17, rng=5, order=order) for order in ("drift", "alternating")]
    assert all(one.contexts.tolist() == rows.contexts.tolist() for one in orders)
    assert datasets.read_stream("iris", rounds=17, rng=6).contexts.tolist() != rows.contexts.tolist()


def test_an_unknown_data_set_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown data set 'irs'; did you mean 'iris'"):
        datasets.read_stream("irs")
    with pytest.raises(ValueError, match="rounds"):
        datasets.read_stream("iris", rounds=0)
