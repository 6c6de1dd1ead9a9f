"""`Study`: environments, algorithms and sizes from a TOML file, and the grid of cells they define."""

import hashlib
import itertools
import json
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bothworlds.algorithms.registry import make_algorithm
from bothworlds.environments.environment import Environment
from bothworlds.environments.registry import SIZES, make_environment, size_values
from bothworlds.problem.checks import check_known, whole
from bothworlds.problem.file_format import migration, read_text
from bothworlds.serialization import printable
from bothworlds.simulation.setting import Setting, make_setting
from bothworlds.studies.option_grid import spread
from bothworlds.user_code import FileHashes, file_hashes, with_hashed_file
from bothworlds.user_errors import users_code

FORMAT = 1  # of the file; increased by changes in the meaning of existing files
SETTINGS = {"horizon": 10_000, "replications": 10, "seed": 0, "delay": 0, "batch": 1, "checkpoints": 200}
LEAST = {"horizon": 1, "replications": 1, "seed": 0, "delay": 0, "batch": 1, "checkpoints": 2}
MOST = {"replications": 10**9, "seed": 2**63 - 1}
MOST_INSTANCES = 100_000


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run of a study: an environment, an algorithm and the sizes of the instance; ``texts`` as in `Study`."""

    environment: str
    algorithm: str
    sizes: dict[str, Any]
    environment_options: dict[str, Any]
    algorithm_options: dict[str, Any]
    settings: dict[str, int]
    texts: FileHashes = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name in tables and messages, with sizes; those of the environment override those of the study."""
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
        worded = [
            with_hashed_file(options, self.texts) for options in (self.environment_options, self.algorithm_options)
        ]
        parts = [_installed_version(), self.sizes, *worded, self.settings]
        return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=10).hexdigest()

    def make_environment(self) -> Environment:
        """Draw the instance and make the environment."""
        return make_environment(self.environment_options, self.sizes, self.settings, self.texts)

    def make_algorithm(self) -> Any:
        """Make the algorithm."""
        return make_algorithm(self.algorithm_options, self.texts)


@dataclass(frozen=True, kw_only=True)
class Study:
    """Environments x algorithms x sizes x seeds, with one horizon and number of replications.

    ``sizes`` maps a size to the list of its values; the grid is their product. Each of the ``seeds`` draws its own
    instances, contexts and noise; the first one is the seed in ``settings``. With ``references`` the reference players
    of `bothworlds.studies.references` are played, too, which scores are measured by. ``texts`` has the hashes of files
    of the user's own as they were when the study was read: that text is what all cells play.

    >>> worlds, players = {"noise": {"kind": "stochastic"}}, {"coin": {"kind": "uniform"}, "LinUCB": {"kind": "LinUCB"}}
    >>> study = Study.from_dict({"sizes": {"arms": [2, 5]}, "environments": worlds, "algorithms": players})
    >>> len(list(study.cells())), study.settings["replications"]
    (4, 10)
    """

    name: str
    settings: dict[str, int]
    seeds: tuple[int, ...]
    sizes: dict[str, list[Any]]
    environments: dict[str, dict[str, Any]]
    algorithms: dict[str, dict[str, Any]]
    references: bool = False
    texts: FileHashes = field(default_factory=dict)

    @classmethod
    def from_toml(cls, path: str | Path) -> "Study":
        """Read and check a study; errors for unknown names suggest the nearest known one."""
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

        A list in place of an option makes a grid, also a list of seeds. Files of parts of your own are looked for in
        ``folder``, too.
        """
        _check_format(content.get("format", FORMAT))
        parts = ["instances", "references", "sizes", "environments", "algorithms"]
        check_known(content, [*SETTINGS, "format", "name", *parts], "entry")
        sizes = content.get("sizes", {})
        if not isinstance(sizes, dict):
            raise ValueError(f"sizes must be a table; write [sizes]. Got {sizes!r}")
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
        seeds = _seeds(content.get("seed", SETTINGS["seed"]), content.get("instances"))
        given = {**content, "seed": seeds[0]}
        study = cls(
            name=str(content.get("name", name)),
            settings={key: whole(given.get(key, default), LEAST[key], key) for key, default in SETTINGS.items()},
            seeds=seeds,
            sizes={key: size_values(sizes.get(key, default), key) for key, default in SIZES.items()},
            environments=worlds,
            algorithms=players,
            references=_switch(content.get("references", False), "references"),
            texts=file_hashes([*worlds.values(), *players.values()]),
        )
        for key, value in (("replications", study.settings["replications"]), ("seed", max(seeds))):
            if value > MOST[key]:
                raise ValueError(f"{key} must be at most {MOST[key]}; got {value}")
        for cell in study._cells(seeds[:1]):  # every mistake shows before any work starts
            environment, algorithm = setting_of(cell).environment, cell.make_algorithm()
            if hasattr(algorithm, "machine"):
                with users_code():
                    algorithm.machine(environment.problem)
        return study

    def cells(self) -> Iterator[Cell]:
        """Yield the cells of the grid, in a fixed order; those that differ only in the seed follow each other."""
        return self._cells(self.seeds)

    def _cells(self, seeds: Iterable[int]) -> Iterator[Cell]:
        for values in itertools.product(*self.sizes.values()):
            sizes = dict(zip(self.sizes, values, strict=True))
            for environment, environment_options in self.environments.items():
                for algorithm, algorithm_options in self.algorithms.items():
                    for seed in seeds:
                        yield Cell(
                            environment=environment,
                            algorithm=algorithm,
                            sizes=sizes,
                            environment_options=environment_options,
                            algorithm_options=algorithm_options,
                            settings={**self.settings, "seed": seed},
                            texts=self.texts,
                        )


def setting_of(cell: Cell) -> Setting:
    """Return the simulation setting of a cell."""
    given = {name: cell.settings[name] for name in ("horizon", "checkpoints", "delay", "batch")}
    return make_setting(cell.make_environment(), rng=cell.settings["seed"], **given)


def _seeds(seed: Any, instances: Any) -> tuple[int, ...]:
    """Return the seeds of a study: a list as it is, or as many as there are instances, from one seed on.

    >>> _seeds(7, 3), _seeds([4, 2], None)
    ((7, 8, 9), (4, 2))
    """
    if not isinstance(seed, list):
        first = whole(seed, LEAST["seed"], "seed")
        count = 1 if instances is None else whole(instances, 1, "instances")
        if count > MOST_INSTANCES:
            raise ValueError(f"instances must be at most {MOST_INSTANCES}; got {count}")
        return tuple(range(first, first + count))
    if instances is not None:
        raise ValueError("give a list of seeds or a number of instances, not both")
    seeds = tuple(whole(one, LEAST["seed"], "seed") for one in seed)
    if not seeds:
        raise ValueError("the list of seeds is empty; give one seed at least, or leave it out")
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"a seed occurs twice in {list(seeds)}; each draws one instance")
    return seeds


@cache
def _installed_version() -> str:
    return version("bothworlds")


def _switch(value: Any, name: str) -> bool:
    """Return a boolean; refuse anything else."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false; got {value!r}")
    return value


def _check_format(found: object) -> None:
    """Refuse a study with another format version."""
    if found != FORMAT or isinstance(found, bool):
        advice = migration(f"study-{found}", f"study-{FORMAT}")
        raise ValueError(f"format must be {FORMAT}; got {found!r}{advice.replace('written by', 'written for')}")
