"""Settings of a service: a TOML file as frozen objects."""

import math
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from bothworlds.problem import Problem
from bothworlds.problem.checks import check_known
from bothworlds.service.dsn import is_dsn
from bothworlds.service.limits import check_size, size_of, tabular_size
from bothworlds.service.names import check_name

LOCAL = ("127.0.0.1", "::1", "localhost")
LONGEST_WINDOW = 3650 * 86400.0  # seconds
UNITS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
Scope = Literal["decide", "reward", "local", "admin"]


class Token(Struct, frozen=True, forbid_unknown_fields=True):
    """An access token: name, SHA-256 hash of the secret, scopes, and the allowed requests per second."""

    name: str
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
    scopes: list[Scope]
    rate: Annotated[float, Meta(gt=0)] | None = None


class ExperimentSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of an experiment: its problem and its algorithm.

    The problem is a file (``problem``), or is built from ``contexts`` and ``arms``: with one parameter per context and
    arm, and rewards in ``reward_range``, by default [0, 1]. ``contexts`` may map names to their shares of the traffic;
    ``other`` is the context that stands for unknown ones. After ``window``, a decision without a reward gets
    ``default_reward``; with "none" it is not learned from and counted as unanswered, and with None it waits forever.
    ``learn`` is "in order" (a reward is learned once all earlier decisions are answered or closed) or "at once"; None
    is "in order" if windows close. Decisions older than ``keep`` are erased once a snapshot has learned from them.
    ``safe_arm`` is the answer while nothing can be stored.
    """

    arms: list[str] = []
    contexts: list[str] | dict[str, float] = []
    problem: str | None = None
    reward_range: tuple[float, float] | None = None
    other: str | None = None
    algorithm: str | dict[str, Any] = "matched"
    window: str = "1 hour"
    default_reward: float | Literal["none"] | None = 0.0
    learn: Literal["in order", "at once"] | None = None
    holdout: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    keep: str | None = None
    safe_arm: str | None = None

    @property
    def seconds(self) -> float:
        """The reward window in seconds."""
        return seconds_of(self.window)

    @property
    def keep_seconds(self) -> float | None:
        """The seconds after which decisions are erased; None keeps them."""
        return None if self.keep is None else seconds_of(self.keep)

    @property
    def in_order(self) -> bool:
        """Whether a reward is learned once all earlier decisions are answered or closed, and not at once."""
        return self.default_reward is not None if self.learn is None else self.learn == "in order"

    def make_problem(self, folder: Path) -> Problem:
        """Return the problem; the path of its file is relative to ``folder``."""
        if self.problem is not None:
            if self.arms or self.contexts:
                raise ValueError("give either problem (a file) or contexts and arms, not both")
            for name in ("reward_range", "other"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} belongs to the problem in {self.problem}; set it there")
            return Problem.load(folder / self.problem)
        if len(self.arms) < 2 or not self.contexts:
            raise ValueError("an experiment needs contexts and at least two arms, or problem (a file)")
        shares = self.contexts if isinstance(self.contexts, dict) else dict.fromkeys(self.contexts, 1.0)
        if len(shares) < len(self.contexts):
            raise ValueError("contexts lists a context twice")
        invalid = next((name for name, share in shares.items() if not 0.0 < share < math.inf), None)
        if invalid is not None:
            raise ValueError(f"the share of context {invalid!r} must be positive; got {shares[invalid]:g}")
        check_size(tabular_size(contexts=len(shares), arms=len(self.arms)))
        total = sum(shares.values())
        return tabular_problem(
            {name: share / total for name, share in shares.items()},
            self.arms,
            reward_range=self.reward_range or (0.0, 1.0),
            other=self.other,
        )

    @property
    def player(self) -> dict[str, Any]:
        """The algorithm as a table; a text is the name of a tuning of LCTsallisINF."""
        tuned = {"kind": "LCTsallisINF", "tuning": self.algorithm}
        return self.algorithm if isinstance(self.algorithm, dict) else tuned

    def make_algorithm(self) -> Any:
        """Return the algorithm."""
        from bothworlds.algorithms.registry import make_algorithm  # not needed to read a store

        return make_algorithm(self.player)


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of a service: experiments, store, tokens, address, limits and log lines.

    ``store``, ``certificate`` and ``key`` are paths relative to ``folder``; ``store`` may be the DSN of a PostgreSQL
    database, ``postgresql://...``, which any number of hosts share. ``refresh`` is the shortest time in seconds
    between two batches of rewards, unless a full batch waits. ``drain`` is the time in seconds between SIGTERM and the
    end: the service answers, but says that it is not ready, so that a load balancer sends requests elsewhere. With
    ``access_log``, every request has a log line.
    """

    experiments: dict[Annotated[str, Meta(min_length=1, max_length=200)], ExperimentSettings]
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
    drain: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    access_log: bool = False
    folder: str = "."

    def check(self) -> None:
        """Raise a ValueError if the settings are invalid."""
        if not self.experiments:
            raise ValueError("there are no experiments; add a table [experiments.NAME]")
        if self.host not in LOCAL and not self.tokens:
            raise ValueError(
                f"a service that listens on {self.host} can be reached from other machines and needs tokens: make one "
                "with `bothworlds service token NAME`, or listen on 127.0.0.1"
            )
        _check_tokens(self.tokens)
        if (self.certificate is None) != (self.key is None):
            raise ValueError("give both certificate and key, or neither")
        for file in (self.certificate, self.key):
            if file is not None and not (Path(self.folder) / file).is_file():
                raise ValueError(f"there is no file {Path(self.folder) / file}")
        if isinstance(self.location, Path):
            _check_file(self.location)
        for name, experiment in self.experiments.items():
            check_name("an experiment", name)
            try:
                check_window(experiment)
                problem = experiment.make_problem(Path(self.folder))
                check_size(size_of(problem))
                experiment.make_algorithm()
                _check_names(experiment, problem)
            except (ValueError, OSError) as error:
                raise ValueError(f"experiments.{name}: {error}") from None

    @property
    def location(self) -> Path | str:
        """The path of the store, or the DSN of its database."""
        return self.store if is_dsn(self.store) else Path(self.folder) / self.store

    def rehearse(self) -> None:
        """Build every algorithm for its problem, as at the start of a service; a ValueError if one does not fit."""
        for name, experiment in self.experiments.items():
            try:
                experiment.make_algorithm().machine(experiment.make_problem(Path(self.folder)))
            except ValueError as error:
                raise ValueError(f"experiments.{name}: {error}") from None


def _check_file(store: Path) -> None:
    if not store.parent.is_dir():
        raise ValueError(f"there is no folder {store.parent} for the store")
    if store.is_dir():
        raise ValueError(f"store must be a file, but {store} is a folder")


def _check_tokens(tokens: list[Token]) -> None:
    known: dict[str, Token] = {}
    for token in tokens:
        check_name("a token", token.name)
        other = known.setdefault(token.sha256, token)
        if other is not token:
            raise ValueError(
                f"the tokens {other.name!r} and {token.name!r} have the same sha256 and cannot be told apart: "
                "remove one, or make a new one with bothworlds service token NAME"
            )


def check_window(experiment: ExperimentSettings) -> None:
    """Raise a ValueError if window, ``keep`` and ``learn`` of an experiment do not fit."""
    if experiment.seconds > LONGEST_WINDOW:
        raise ValueError(f"window is at most {LONGEST_WINDOW / UNITS['day']:,.0f} days; got {experiment.window!r}")
    if experiment.keep_seconds is not None and experiment.keep_seconds <= experiment.seconds:
        raise ValueError(f"keep must be longer than the window of {experiment.window}; got {experiment.keep!r}")
    if experiment.in_order and experiment.default_reward is None:
        raise ValueError(
            'learn = "in order" needs a default_reward: without one a window never closes, and all later rewards would '
            'wait for a decision that nobody answers; give default_reward, or learn = "at once"'
        )


def _check_names(experiment: ExperimentSettings, problem: Problem) -> None:
    for arm in problem.arms:
        check_name("an arm", arm)
    if experiment.safe_arm is not None and experiment.safe_arm not in problem.arms:
        raise ValueError(f"safe_arm {experiment.safe_arm!r} is not an arm; the arms are {', '.join(problem.arms[:8])}")
    low, high = problem.reward_range or (-1.0, 1.0)
    default = experiment.default_reward
    if isinstance(default, float | int) and not low <= default <= high:
        raise ValueError(f"default_reward {default:g} is outside [{low:g}, {high:g}]")


def tabular_problem(
    shares: dict[str, float], arms: list[str], *, reward_range: tuple[float, float], other: str | None
) -> Problem:
    """Return a problem with one parameter per context and arm.

    >>> tabular_problem({"mobile": 0.75, "desktop": 0.25}, ["red", "blue"], reward_range=(0, 1), other=None).dimension
    4
    """
    return Problem.from_sample(
        list(shares), weights=list(shares.values()), arms=arms, reward_range=reward_range, other=other
    )


def read_settings(path: str | Path) -> Settings:
    """Read settings from a TOML file; invalid ones are a ValueError with the name of the file."""
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
    """Refuse unknown settings, and suggest a similar one."""
    check_known(content, Settings.__struct_fields__, "setting")
    experiments = content.get("experiments")
    for name, experiment in experiments.items() if isinstance(experiments, dict) else ():
        if isinstance(experiment, dict):
            check_known(experiment, ExperimentSettings.__struct_fields__, f"setting of experiments.{name}")


def seconds_of(text: str) -> float:
    """Return a duration such as "30 minutes" in seconds.

    >>> seconds_of("90 seconds"), seconds_of("1 hour")
    (90.0, 3600.0)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?\s*", text)
    if not match or match[2] not in UNITS or float(match[1]) == 0:
        units = ", ".join(f"{unit}s" for unit in UNITS)
        raise ValueError(f"a duration is a positive number and a unit ({units}); got {text!r}")
    return float(match[1]) * UNITS[match[2]]


def duration_text(seconds: float) -> str:
    """Return a duration of whole milliseconds as `seconds_of` reads it, in the largest unit that fits.

    >>> duration_text(7200.0), duration_text(1.5)
    ('2 hours', '1.5 seconds')
    """
    unit = max((unit for unit, length in UNITS.items() if seconds % length == 0.0), key=UNITS.__getitem__, default="")
    count = seconds / UNITS.get(unit, 1.0)
    number = f"{count:.3f}".rstrip("0").rstrip(".")
    return f"{number} {unit or 'second'}{'' if number == '1' else 's'}"
