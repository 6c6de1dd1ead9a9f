"""Make environments from the option tables of studies: built-in kinds by name, and a user's own."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bothworlds import environments as en
from bothworlds.environments import Environment, Instance
from bothworlds.environments.clicks import ATTRIBUTES
from bothworlds.problem.checks import option_errors, take_kind, whole
from bothworlds.user_code import NOW, FileHashes, is_user_kind, load_object, make_object

SIZES: dict[str, Any] = {"contexts": 10, "arms": 5, "dimension": 5, "gap": 0.2, "rarity": None, "margin": None}
UNUSED = {  # sizes that have no effect on an environment of this kind
    "clicks": ("contexts", "dimension", "gap", "margin"),
    "lower-bound": ("contexts", "dimension", "gap", "rarity", "margin"),
    "ad-fatigue": ("gap", "margin"),
}


def make_environment(
    options: dict[str, Any], sizes: dict[str, Any], settings: dict[str, int], texts: FileHashes = NOW
) -> Environment:
    """Make an environment from a table of a study; adversaries alternate between theta_0 and -theta_0.

    The table may contain sizes, for example ``margin = 1.0``, which override those of the study. ``draw = 2`` replaces
    the seed of the study, which draws another instance of the same sizes.
    """
    options = dict(options)
    own_sizes = {key: _single_size(options.pop(key), key) for key in SIZES if key in options}
    sizes = {**sizes, **own_sizes}
    draw = whole(options.get("draw", settings["seed"]), 0, "draw")
    own_sizes |= {"draw": options.pop("draw")} if "draw" in options else {}
    instance_settings = {**settings, "seed": draw, "rarity": sizes.get("rarity")}
    if is_user_kind(options.get("kind")):
        return _user_environment(options, own_sizes, lambda: _instance(sizes, draw), instance_settings, texts)
    kind = take_kind(options, list(WORLDS), "environment")
    _check_sizes_used(kind, own_sizes)
    with option_errors(f"environment {kind}"):
        return WORLDS[kind](_instance(sizes, draw), options, instance_settings)


def _user_environment(
    options: dict[str, Any],
    own_sizes: dict[str, Any],
    instance: Callable[[], Instance],
    settings: Mapping[str, Any],
    texts: FileHashes,
) -> Environment:
    """Make an environment from a table of a study whose kind is a user's function or object.

    A function is called with the options; with the study's instance if it has a parameter ``instance``; and with
    ``horizon`` and ``seed`` if it has these parameters and the table does not set them. Sizes and ``draw`` in the table
    are passed to parameters of the same name, too; if they would have no effect, ValueError is raised.
    """
    options = dict(options)
    kind = options.pop("kind")
    environment = load_object(kind, texts)
    if not isinstance(environment, Environment):
        parameters = inspect.signature(environment).parameters if callable(environment) else {}
        arguments: dict[str, Any] = {name: settings[name] for name in ("horizon", "seed") if name in parameters}
        arguments |= {"instance": instance()} if "instance" in parameters else {}
        arguments |= _matching_sizes(kind, own_sizes, parameters)
        environment = make_object(kind, {**arguments, **options}, texts)
    elif options or own_sizes:
        raise ValueError(f"{kind} is an object, which takes no options; got {', '.join([*options, *own_sizes])}")
    if not isinstance(environment, Environment):
        raise ValueError(f"{kind} must make an environment; got {type(environment).__name__}")
    return environment


def _matching_sizes(
    kind: str, own_sizes: dict[str, Any], parameters: Mapping[str, inspect.Parameter]
) -> dict[str, Any]:
    """Return the sizes of a table for which a function has parameters; refuse sizes that would have no effect."""
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()) and "instance" not in parameters:
        return own_sizes
    matching = {name: value for name, value in own_sizes.items() if name in parameters}
    passed_as_seed = {"draw"} if "seed" in parameters else set()
    unused = [name for name in own_sizes if name not in matching and name not in passed_as_seed]
    if unused and "instance" not in parameters:
        raise ValueError(
            f"{kind} does not use {', '.join(unused)}: give it a parameter of that name, or a parameter `instance`, "
            "which is drawn with the sizes of the study"
        )
    return matching


def _check_sizes_used(kind: str, own_sizes: dict[str, Any]) -> None:
    """Refuse sizes in a table that would have no effect."""
    unused = [name for name in own_sizes if name in UNUSED.get(kind, ())]
    if unused:
        used = [name for name in SIZES if name not in UNUSED[kind]]
        raise ValueError(f"environment {kind} does not use {', '.join(unused)}; its sizes are {', '.join(used)}")


def _single_size(value: Any, name: str) -> Any:
    """Return the value of a size in the table of an environment; refuse a list."""
    values = size_values(value, name)
    if len(values) != 1:
        raise ValueError(f"an environment has one {name}; put lists of sizes into [sizes]")
    return values[0]


def size_values(value: Any, name: str) -> list[Any]:
    """Return the values of a size as a list, checked; refuse an empty list. "none" stands for no value."""
    values: list[Any] = [None if item == "none" else item for item in (value if isinstance(value, list) else [value])]
    if not values:
        raise ValueError(f"the list of sizes {name} is empty; give at least one value, or leave it out")
    for item in values:
        if name in ("contexts", "arms", "dimension"):
            whole(item, 2 if name == "arms" else 1, name)
        elif item is not None and (isinstance(item, bool) or not isinstance(item, int | float)):
            raise ValueError(f"{name} must be a number; got {item!r}")
    return values


def _instance(sizes: dict[str, Any], seed: int) -> Instance:
    """Draw the instance of a cell; it depends on sizes and seed only, not on other parts of the study."""
    options = {key: value for key, value in sizes.items() if value is not None}
    make = en.margin_instance if "margin" in options else en.random_instance
    return make(**options, seed=seed)


def _opposite_pair(instance: Instance) -> tuple[Any, Any]:
    return instance.problem, en.opposite(instance.theta)


def _timed(settings: dict[str, Any]) -> dict[str, Any]:
    return {"horizon": settings["horizon"], "seed": settings["seed"]}


def _moving_level(instance: Instance, options: dict[str, Any], _: dict[str, Any]) -> Environment:
    """Add the constant feature that a moving level needs; the default level is what the prescribed gaps allow."""
    problem = instance.problem
    ones = np.ones((*problem.features.shape[:2], 1))
    wider = type(problem)(
        features=np.concatenate([problem.features, ones], axis=2), probabilities=problem.probabilities
    )
    means = problem.features @ instance.theta
    middle, half = (means.max() + means.min()) / 2.0, (means.max() - means.min()) / 2.0
    theta = np.append(instance.theta, -middle)  # centres mean losses in [-1, 1]
    return en.moving_level(Instance(wider, theta), **{"level": min(0.3, 1.0 - float(half)), **options})


def _fatigue(instance: Instance, options: dict[str, Any], settings: dict[str, Any]) -> Environment:
    """Draw click rates for the contexts and arms of the instance."""
    shape = instance.problem.available.shape
    rates = np.random.default_rng(settings["seed"]).uniform(0.2, 0.6, size=shape)
    return en.ad_fatigue(click_rates=rates, probabilities=instance.problem.probabilities, **options)


def _clicks(instance: Instance, options: dict[str, Any], settings: dict[str, Any]) -> Environment:
    """Make rare clicks with the study's number of arms and its rarity, raised to the number of contexts if lower."""
    options = {"arms": instance.problem.n_arms, "seed": settings["seed"], "attributes": ATTRIBUTES, **options}
    if settings.get("rarity") is not None:
        options["rarity"] = max(settings["rarity"], np.prod(options["attributes"]))
    return en.clicks(**options)


WORLDS: dict[str, Callable[[Instance, dict[str, Any], dict[str, Any]], Environment]] = {
    "stochastic": lambda i, o, _: en.stochastic(i, **o),
    "stacked": lambda i, o, _: en.stacked(i, **o),
    "alternating": lambda i, o, _: en.alternating(*_opposite_pair(i), **o),
    "growing-phases": lambda i, o, _: en.growing_phases(*_opposite_pair(i), **o),
    "flip": lambda i, o, n: en.flip(*_opposite_pair(i), **{"at": n["horizon"] // 2, **o}),
    "random-walk": lambda i, o, n: en.random_walk(i.problem, **{"seed": n["seed"], **o}),
    "sine": lambda i, o, n: en.sine(i.problem, np.stack([i.theta, 0.0 * i.theta]), **{"period": n["horizon"] / 4, **o}),
    "adaptive-adversary": lambda i, o, _: en.adaptive_adversary(*_opposite_pair(i), **o),
    "change-point": lambda i, o, n: en.change_point(i, **{"at": n["horizon"] // 2, "seed": n["seed"], **o}),
    "seasons": lambda i, o, n: en.seasons(i, **{**_timed(n), **o}),
    "jumps": lambda i, o, n: en.jumps(i, **{**_timed(n), **o}),
    "slow-turn": lambda i, o, n: en.slow_turn(i, **{**_timed(n), **o}),
    "corrupted": lambda i, o, n: en.corrupted(i, **{"budget": n["horizon"] / 20, **o}),
    "moving-level": _moving_level,
    "lower-bound": lambda i, o, n: en.lower_bound(
        arms=i.problem.n_arms, **{"horizon": n["horizon"], "seed": n["seed"], **o}
    ),
    "ad-fatigue": _fatigue,
    "clicks": _clicks,
}
