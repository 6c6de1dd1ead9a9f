"""Study: a TOML file as a frozen object, and the grid of cells it stands for."""

import hashlib
import itertools
import json
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from bothworlds import environments as en
from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import TUNINGS
from bothworlds.algorithms.options import MGR
from bothworlds.algorithms.registry import algorithms
from bothworlds.environments import Environment, Instance
from bothworlds.environments.clicks import ATTRIBUTES
from bothworlds.plain import printable
from bothworlds.problem.checks import check_known, whole
from bothworlds.problem.storage import migration, read_text
from bothworlds.simulation.grids import spread
from bothworlds.simulation.own import NOW, Texts, by_content, is_own, own_algorithm, own_environment, texts_of
from bothworlds.simulation.setting import Setting, make_setting

FORMAT = 1  # of the file; a change that makes old studies mean something else raises it
SETTINGS = {"horizon": 10_000, "replications": 10, "seed": 0, "delay": 0, "batch": 1, "checkpoints": 200}
LEAST = {"horizon": 1, "replications": 1, "seed": 0, "delay": 0, "batch": 1, "checkpoints": 2}
MOST = {"replications": 10**9, "seed": 2**63 - 1}
SIZES: dict[str, Any] = {"contexts": 10, "arms": 5, "dimension": 5, "gap": 0.2, "rarity": None, "margin": None}
UNUSED = {  # sizes that say nothing of a world of this kind
    "clicks": ("contexts", "dimension", "gap", "margin"),
    "lower-bound": ("contexts", "dimension", "gap", "rarity", "margin"),
    "ad-fatigue": ("gap", "margin"),
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run of a study: an environment, an algorithm and the sizes of the instance; ``texts`` as in `Study`."""

    environment: str
    algorithm: str
    sizes: dict[str, Any]
    environment_options: dict[str, Any]
    algorithm_options: dict[str, Any]
    settings: dict[str, int]
    texts: Texts = field(default_factory=dict)

    @property
    def name(self) -> str:
        """How the cell is called in tables and messages: with the sizes of its world, its own before the study's."""
        sizes = {key: self.environment_options.get(key, value) for key, value in self.sizes.items()}
        said = ", ".join(f"{key} {value}" for key, value in sizes.items() if value not in (None, "none"))
        return printable(f"{self.short_name} ({said})")

    @property
    def short_name(self) -> str:
        """Its algorithm and environment, on one line."""
        return printable(f"{self.algorithm} in {self.environment}")

    @cached_property
    def key(self) -> str:
        """A hash of everything that determines the numbers, and of nothing else."""
        made_by = version("bothworlds")
        worded = [by_content(options, self.texts) for options in (self.environment_options, self.algorithm_options)]
        parts = [made_by, self.sizes, *worded, self.settings]
        return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=10).hexdigest()

    def make_environment(self) -> Environment:
        """Draw the instance and make the environment."""
        return make_environment(self.environment_options, self.sizes, self.settings, self.texts)

    def make_algorithm(self) -> Any:
        """Make the algorithm."""
        return make_algorithm(self.algorithm_options, self.texts)


@dataclass(frozen=True, kw_only=True)
class Study:
    """Environments x algorithms x sizes, with one horizon, number of replications and seed.

    ``sizes`` maps a size to the list of its values; the grid is their product. With ``references`` the reference
    players of `bothworlds.simulation.references` are played, too, which scores are measured by. ``texts`` has the
    hashes of files of the user's own as they were when the study was read: that text is what all cells play.

    >>> worlds, players = {"noise": {"kind": "stochastic"}}, {"coin": {"kind": "uniform"}, "LinUCB": {"kind": "LinUCB"}}
    >>> study = Study.from_dict({"sizes": {"arms": [2, 5]}, "environments": worlds, "algorithms": players})
    >>> len(list(study.cells())), study.settings["replications"]
    (4, 10)
    """

    name: str
    settings: dict[str, int]
    sizes: dict[str, list[Any]]
    environments: dict[str, dict[str, Any]]
    algorithms: dict[str, dict[str, Any]]
    references: bool = False
    texts: Texts = field(default_factory=dict)

    @classmethod
    def from_toml(cls, path: str | Path) -> "Study":
        """Read and check a study; mistakes are named, with the nearest right word."""
        try:
            content = tomllib.loads(read_text(path, "a study (a TOML file)"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"{path} is not valid TOML: {error}") from None
        try:
            return cls.from_dict(content, name=Path(path).stem, folder=Path(path).parent)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    @classmethod
    def from_dict(cls, content: dict[str, Any], *, name: str = "study", folder: str | Path | None = None) -> "Study":
        """Check the content of a study and fill in defaults.

        A list in place of an option makes a grid. Files of parts of your own are looked for in ``folder``, too.
        """
        _check_format(content.get("format", FORMAT))
        check_known(
            content, [*SETTINGS, "format", "name", "references", "sizes", "environments", "algorithms"], "entry"
        )
        sizes = content.get("sizes", {})
        if not isinstance(sizes, dict):
            raise ValueError(f"sizes must be a table [sizes]; got {sizes!r}")
        check_known(sizes, list(SIZES), "size")
        for part in ("environments", "algorithms"):
            tables = content.get(part)
            if not isinstance(tables, dict) or not tables:
                raise ValueError(f"the study has no {part}: add a table [{part}.NAME] with a kind")
            wrong = [name for name, table in tables.items() if not isinstance(table, dict)]
            if wrong:
                raise ValueError(f"{part}.{wrong[0]} must be a table with a kind; got {tables[wrong[0]]!r}")
        worlds = spread(content["environments"], "environment", folder)
        players = spread(content["algorithms"], "algorithm", folder)
        study = cls(
            name=str(content.get("name", name)),
            settings={key: whole(content.get(key, default), LEAST[key], key) for key, default in SETTINGS.items()},
            sizes={key: _sizes(sizes.get(key, default), key) for key, default in SIZES.items()},
            environments=worlds,
            algorithms=players,
            references=_switch(content.get("references", False), "references"),
            texts=texts_of([*worlds.values(), *players.values()]),
        )
        for key, most in MOST.items():
            if study.settings[key] > most:
                raise ValueError(f"{key} must be at most {most}; got {study.settings[key]}")
        for cell in study.cells():  # every mistake shows before any work starts
            environment, algorithm = setting_of(cell).environment, cell.make_algorithm()
            if hasattr(algorithm, "machine"):
                algorithm.machine(environment.problem)
        return study

    def cells(self) -> Iterator[Cell]:
        """Yield the cells of the grid, in a fixed order."""
        for values in itertools.product(*self.sizes.values()):
            sizes = dict(zip(self.sizes, values, strict=True))
            for environment, environment_options in self.environments.items():
                for algorithm, algorithm_options in self.algorithms.items():
                    yield Cell(
                        environment=environment,
                        algorithm=algorithm,
                        sizes=sizes,
                        environment_options=environment_options,
                        algorithm_options=algorithm_options,
                        settings=self.settings,
                        texts=self.texts,
                    )


def setting_of(cell: Cell) -> Setting:
    """Make the setting of a cell's run."""
    given = {name: cell.settings[name] for name in ("horizon", "checkpoints", "delay", "batch")}
    return make_setting(cell.make_environment(), rng=cell.settings["seed"], **given)


def _switch(value: Any, name: str) -> bool:
    """Return true or false; anything else is refused."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false; got {value!r}")
    return value


def _sizes(value: Any, name: str) -> list[Any]:
    """Return the values of a size as a list that is not empty, each of the right kind; "none" leaves a size out."""
    values: list[Any] = [None if one == "none" else one for one in (value if isinstance(value, list) else [value])]
    if not values:
        raise ValueError(f"the list of sizes {name} is empty; give one value at least, or leave it out")
    for one in values:
        if name in ("contexts", "arms", "dimension"):
            whole(one, 2 if name == "arms" else 1, name)
        elif one is not None and (isinstance(one, bool) or not isinstance(one, int | float)):
            raise ValueError(f"{name} must be a number; got {one!r}")
    return values


def _check_format(found: object) -> None:
    """Refuse a study that is written for another version."""
    if found != FORMAT or isinstance(found, bool):
        advice = migration(f"study-{found}", f"study-{FORMAT}")
        raise ValueError(f"format must be {FORMAT}; got {found!r}{advice.replace('written by', 'written for')}")


def make_algorithm(options: dict[str, Any], texts: Texts = NOW) -> Any:
    """Make an algorithm from a table of a study: its kind and its options."""
    options = dict(options)
    if is_own(options.get("kind")):
        return own_algorithm(options, texts)
    kind = _kind(options, list(algorithms()), "algorithm")
    for name, parts in (("tuning", (*TUNINGS.values(),)), ("covariance", (MGR,))):
        if isinstance(options.get(name), dict):
            inner = dict(options[name])
            classes = {part.__name__.lower(): part for part in parts}
            options[name] = _call(classes[_kind(inner, list(classes), name)], inner, name)
    return _call(algorithms()[kind], options, f"algorithm {kind}")


def _kind(options: dict[str, Any], known: list[str], word: str) -> str:
    """Take the kind out of the options and check it."""
    kind = options.pop("kind", None)
    if kind is None:
        raise ValueError(f"an {word} has no kind; known are {', '.join(known)}")
    check_known({str(kind): None}, known, f"kind of {word}")
    return str(kind)


def _call(make: Callable[..., Any], options: dict[str, Any], word: str) -> Any:
    """Call a maker; wrong options are named in a sentence."""
    try:
        return make(**options)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"{word}: {str(error).split(') ', 1)[-1]}") from None


def make_environment(
    options: dict[str, Any], sizes: dict[str, Any], settings: dict[str, int], texts: Texts = NOW
) -> Environment:
    """Make an environment from a table of a study; adversaries go between theta_0 and minus theta_0.

    An environment may have sizes of its own, say ``margin = 1.0``; they go before those of the study. ``draw = 2``
    draws another instance of the same sizes: it is the seed of whatever is drawn, in place of the study's.
    """
    options = dict(options)
    asked = {key: _one_size(options.pop(key), key) for key in SIZES if key in options}
    sizes = {**sizes, **asked}
    draw = whole(options.get("draw", settings["seed"]), 0, "draw")
    asked |= {"draw": options.pop("draw")} if "draw" in options else {}
    drawn = {**settings, "seed": draw, "rarity": sizes.get("rarity")}
    if is_own(options.get("kind")):
        return own_environment(options, asked, lambda: _instance(sizes, draw), drawn, texts)
    kind = _kind(options, list(WORLDS), "environment")
    _check_use(kind, asked)
    try:
        return WORLDS[kind](_instance(sizes, draw), options, drawn)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"environment {kind}: {str(error).split(') ', 1)[-1]}") from None


def _check_use(kind: str, asked: dict[str, Any]) -> None:
    """Refuse sizes of an environment's own that would have no effect."""
    idle = [name for name in asked if name in UNUSED.get(kind, ())]
    if idle:
        used = [name for name in SIZES if name not in UNUSED[kind]]
        raise ValueError(f"environment {kind} has no use for {', '.join(idle)}; its sizes are {', '.join(used)}")


def _one_size(value: Any, name: str) -> Any:
    """Return the size that an environment has of its own."""
    values = _sizes(value, name)
    if len(values) != 1:
        raise ValueError(f"an environment has one {name}; a list of sizes belongs into [sizes]")
    return values[0]


def _instance(sizes: dict[str, Any], seed: int) -> Instance:
    """Draw the instance of a cell; adding an algorithm or an environment changes none."""
    options = {key: value for key, value in sizes.items() if value is not None}
    make = en.margin_instance if "margin" in options else en.random_instance
    return make(**options, seed=seed)


def _pair(instance: Instance) -> tuple[Any, Any]:
    return instance.problem, en.opposite(instance.theta)


def _moving_level(instance: Instance, options: dict[str, Any], _: dict[str, Any]) -> Environment:
    """Add the constant feature that a moving level needs; gaps stay as prescribed, the level moves in the room left."""
    problem = instance.problem
    ones = np.ones((*problem.features.shape[:2], 1))
    wider = type(problem)(
        features=np.concatenate([problem.features, ones], axis=2), probabilities=problem.probabilities
    )
    means = problem.features @ instance.theta
    middle, half = (means.max() + means.min()) / 2.0, (means.max() - means.min()) / 2.0
    theta = np.append(instance.theta, -middle)  # in the middle of [-1, 1], where there is most room
    return en.moving_level(Instance(wider, theta), **{"level": min(0.3, 1.0 - float(half)), **options})


def _fatigue(instance: Instance, options: dict[str, Any], settings: dict[str, Any]) -> Environment:
    """Draw click rates for the sizes of the instance."""
    shape = instance.problem.available.shape
    rates = np.random.default_rng(settings["seed"]).uniform(0.2, 0.6, size=shape)
    return en.ad_fatigue(click_rates=rates, probabilities=instance.problem.probabilities, **options)


def _clicks(instance: Instance, options: dict[str, Any], settings: dict[str, Any]) -> Environment:
    """Make rare clicks with the arms of the study and its rarity, if it has one: even contexts if that is too low."""
    options = {"arms": instance.problem.n_arms, "seed": settings["seed"], "attributes": ATTRIBUTES, **options}
    if settings.get("rarity") is not None:
        options["rarity"] = max(settings["rarity"], np.prod(options["attributes"]))
    return en.clicks(**options)


WORLDS: dict[str, Callable[[Instance, dict[str, Any], dict[str, Any]], Environment]] = {
    "stochastic": lambda i, o, _: en.stochastic(i, **o),
    "stacked": lambda i, o, _: en.stacked(i, **o),
    "alternating": lambda i, o, _: en.alternating(*_pair(i), **o),
    "growing-phases": lambda i, o, _: en.growing_phases(*_pair(i), **o),
    "flip": lambda i, o, n: en.flip(*_pair(i), **{"at": n["horizon"] // 2, **o}),
    "random-walk": lambda i, o, n: en.random_walk(i.problem, **{"seed": n["seed"], **o}),
    "sine": lambda i, o, n: en.sine(i.problem, np.stack([i.theta, 0.0 * i.theta]), **{"period": n["horizon"] / 4, **o}),
    "adaptive-adversary": lambda i, o, _: en.adaptive_adversary(*_pair(i), **o),
    "corrupted": lambda i, o, n: en.corrupted(i, **{"budget": n["horizon"] / 20, **o}),
    "moving-level": _moving_level,
    "lower-bound": lambda i, o, n: en.lower_bound(
        arms=i.problem.n_arms, **{"horizon": n["horizon"], "seed": n["seed"], **o}
    ),
    "ad-fatigue": _fatigue,
    "clicks": _clicks,
}
