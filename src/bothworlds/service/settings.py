"""What a service is told: a TOML file as frozen objects. Mistakes are named in a sentence."""

import math
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from bothworlds.problem import Problem
from bothworlds.problem.checks import check_known

LOCAL = ("127.0.0.1", "::1", "localhost")
UNITS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
Scope = Literal["decide", "reward", "admin"]


class Token(Struct, frozen=True, forbid_unknown_fields=True):
    """Someone who may ask: a name, the SHA-256 hash of a secret, and what for. ``rate``: requests a second, at most."""

    name: str
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    scopes: list[Scope]
    rate: Annotated[float, Meta(gt=0)] | None = None


class Experiment(Struct, frozen=True, forbid_unknown_fields=True):
    """One problem, and who plays it.

    The problem is a file (``problem``), or names of contexts and arms, each arm with a rate of its own in each context,
    with rewards from 0 to 1 unless ``reward_range`` says otherwise.
    ``window`` is how long a decision waits for its reward before it gets ``default_reward``; without a default it waits
    for ever. ``safe_arm`` is what is answered when nothing can be stored.
    """

    arms: list[str] = []
    contexts: list[str] | dict[str, float] = []
    problem: str | None = None
    reward_range: tuple[float, float] | None = None
    other: str | None = None
    algorithm: str | dict[str, Any] = "matched"
    window: str = "1 hour"
    default_reward: float | None = 0.0
    holdout: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    safe_arm: str | None = None

    @property
    def seconds(self) -> float:
        """The window in seconds."""
        return seconds_of(self.window)

    def make_problem(self, folder: Path) -> Problem:
        """Make the problem, or read its file."""
        if self.problem is not None:
            if self.arms or self.contexts:
                raise ValueError("give either problem, a file, or contexts and arms")
            for name in ("reward_range", "other"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} belongs to the problem in {self.problem}: say it where that is made")
            return Problem.load(folder / self.problem)
        if len(self.arms) < 2 or not self.contexts:
            raise ValueError("an experiment needs contexts and at least two arms, or a problem, a file")
        shares = self.contexts if isinstance(self.contexts, dict) else dict.fromkeys(self.contexts, 1.0)
        if len(shares) < len(self.contexts):
            raise ValueError("a context stands in contexts twice; give each once")
        odd = next((name for name, share in shares.items() if not 0.0 < share < math.inf), None)
        if odd is not None:
            raise ValueError(f"the share of context {odd!r} must be positive; got {shares[odd]:g}")
        total = sum(shares.values())
        return tabular_problem(
            {name: share / total for name, share in shares.items()},
            self.arms,
            reward_range=self.reward_range or (0.0, 1.0),
            other=self.other,
        )

    @property
    def player(self) -> dict[str, Any]:
        """The algorithm as studies tell it; a name alone is that of a tuning of LCTsallisINF."""
        named = {"kind": "LCTsallisINF", "tuning": self.algorithm}
        return self.algorithm if isinstance(self.algorithm, dict) else named

    def make_algorithm(self) -> Any:
        """Make the algorithm."""
        from bothworlds.simulation.study import make_algorithm  # not for those who only read a store

        return make_algorithm(self.player)


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """All of a service: experiments, store, who may ask, and where it listens."""

    experiments: dict[Annotated[str, Meta(min_length=1, max_length=200)], Experiment]
    store: str = "bothworlds.sqlite"
    durability: Literal["full", "process"] = "full"
    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8080
    tokens: list[Token] = []
    certificate: str | None = None
    key: str | None = None
    most_bytes: Annotated[int, Meta(ge=100)] = 1_000_000
    most_waiting: Annotated[int, Meta(ge=1)] = 10_000
    refresh: Annotated[float, Meta(gt=0)] = 0.02
    folder: str = "."

    def check(self) -> None:
        """Refuse what cannot be meant."""
        if not self.experiments:
            raise ValueError("there is no experiment: add a table [experiments.NAME]")
        if self.host not in LOCAL and not self.tokens:
            raise ValueError(
                f"a service that listens on {self.host} can be reached from elsewhere, and needs tokens: make one with "
                "`bothworlds token NAME`, or listen on 127.0.0.1"
            )
        if (self.certificate is None) != (self.key is None):
            raise ValueError("give certificate and key, two files, or none of them")
        for file in (self.certificate, self.key):
            if file is not None and not (Path(self.folder) / file).is_file():
                raise ValueError(f"there is no file {Path(self.folder) / file}")
        place = (Path(self.folder) / self.store).parent
        if not place.is_dir():
            raise ValueError(f"there is no folder {place} for the store")
        if (Path(self.folder) / self.store).is_dir():
            raise ValueError(f"store is a file; {Path(self.folder) / self.store} is a folder")
        for name, experiment in self.experiments.items():
            try:
                seconds_of(experiment.window)
                problem = experiment.make_problem(Path(self.folder))
                experiment.make_algorithm()
                _check_names(experiment, problem)
            except (ValueError, OSError) as error:
                raise ValueError(f"experiments.{name}: {error}") from None

    def rehearse(self) -> None:
        """Make every algorithm ready for its problem, as a service that begins; refuse those that do not fit."""
        for name, experiment in self.experiments.items():
            try:
                experiment.make_algorithm().machine(experiment.make_problem(Path(self.folder)))
            except ValueError as error:
                raise ValueError(f"experiments.{name}: {error}") from None


def _check_names(experiment: Experiment, problem: Problem) -> None:
    if experiment.safe_arm is not None and experiment.safe_arm not in problem.arms:
        raise ValueError(f"safe_arm {experiment.safe_arm!r} is no arm; the arms are {', '.join(problem.arms[:8])}")
    low, high = problem.reward_range or (-1.0, 1.0)
    if experiment.default_reward is not None and not low <= experiment.default_reward <= high:
        raise ValueError(f"default_reward {experiment.default_reward:g} is outside [{low:g}, {high:g}]")


def tabular_problem(
    shares: dict[str, float], arms: list[str], *, reward_range: tuple[float, float], other: str | None
) -> Problem:
    """Return a problem with one rate for each context and arm.

    >>> tabular_problem({"mobile": 0.75, "desktop": 0.25}, ["red", "blue"], reward_range=(0, 1), other=None).dimension
    4
    """
    return Problem.from_sample(
        list(shares), weights=list(shares.values()), arms=arms, reward_range=reward_range, other=other
    )


def read_settings(path: str | Path) -> Settings:
    """Read the settings in a TOML file; what is wrong with them is a ValueError with a sentence."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"no such file: {path}") from None
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder, not a file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from None
    try:
        _check_fields(content)
        settings = msgspec.convert({"folder": str(Path(path).parent), **content}, Settings)
        settings.check()
    except (msgspec.ValidationError, ValueError) as error:
        raise ValueError(f"{path}: {str(error).replace('`', '')}") from None
    return settings


def _check_fields(content: dict[str, Any]) -> None:
    """Refuse settings that there are not, with the one that may be meant."""
    check_known(content, Settings.__struct_fields__, "setting")
    told = content.get("experiments")
    for name, experiment in told.items() if isinstance(told, dict) else ():
        if isinstance(experiment, dict):
            check_known(experiment, Experiment.__struct_fields__, f"setting of experiments.{name}")


def seconds_of(text: str) -> float:
    """Return a time like "30 minutes" in seconds.

    >>> seconds_of("90 seconds"), seconds_of("1 hour")
    (90.0, 3600.0)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?\s*", text)
    if not found or found[2] not in UNITS or float(found[1]) == 0:
        raise ValueError(f"a time is a number and a unit ({', '.join(f'{unit}s' for unit in UNITS)}); got {text!r}")
    return float(found[1]) * UNITS[found[2]]
