"""The study that `bothworlds compare` runs: LC-Tsallis-INF and its rivals in every regime."""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import TUNINGS
from bothworlds.algorithms.registry import algorithms as registered
from bothworlds.algorithms.registry import takes_horizon
from bothworlds.environments.registry import WORLDS
from bothworlds.studies.study import Study
from bothworlds.user_code import is_user_kind, load_object

SETTINGS = {"horizon": 40_000, "seed": 7, "checkpoints": 80}
INSTANCES = 20
FEWEST_PLAYS = 16  # of an algorithm in an environment: replications of all instances
REGIMES: dict[str, dict[str, Any]] = {
    "stochastic": {"kind": "stochastic"},
    "adversarial": {"kind": "adaptive-adversary"},
    "corrupted": {"kind": "corrupted"},
    "changes at T/2": {"kind": "change-point"},
    "seasons": {"kind": "seasons"},
    "jumps": {"kind": "jumps"},
    "slow turn": {"kind": "slow-turn"},
    "margin": {"kind": "stochastic", "margin": 1.0},
    "ad fatigue": {"kind": "ad-fatigue"},
    "rare clicks": {"kind": "clicks", "attributes": [3, 4], "arms": 3},
}
ON_REQUEST: dict[str, dict[str, Any]] = {  # known by name, but not part of the default comparison
    "changing clicks": {"kind": "clicks", "attributes": [3, 4], "arms": 3, "changes": [SETTINGS["horizon"] // 4]},
}
OURS: dict[str, dict[str, Any]] = {
    f"LC-Tsallis-INF {tuning}": {"kind": "LCTsallisINF", "tuning": tuning} for tuning in TUNINGS
}
RIVALS: dict[str, dict[str, Any]] = {
    "RealFTRL": {"kind": "RealFTRL"},
    "RealLinExp3": {"kind": "RealLinExp3", "features": "arm-dependent"},
    "OFUL": {"kind": "OFUL"},
    "LinUCB": {"kind": "LinUCB", "width": 0.5},
    "D-LinUCB": {"kind": "DLinUCB", "width": 0.5},
    "uniform": {"kind": "uniform"},
}
SIZES = {"contexts": 5, "arms": 4, "dimension": 4, "gap": 0.2}


def comparison(
    *,
    algorithms: Iterable[str] | None = None,
    regimes: Iterable[str] | None = None,
    sizes: dict[str, Any] | None = None,
    **settings: int | None,
) -> Study:
    """Return the study of a comparison; arguments left out have the defaults of `bothworlds compare`.

    Algorithms with an option ``horizon`` get the horizon, because their proofs assume it.

    Parameters
    ----------
    algorithms
        Labels of `OURS` and `RIVALS`, the names of the three tunings, kinds of the registry, or your own:
        FILE.py:NAME.
    regimes
        Names of `REGIMES` and `ON_REQUEST`, kinds of environments, or your own: FILE.py:NAME.
    sizes, settings
        As in a study: contexts, arms, ...; horizon, replications, seed, instances, ... Fewer than 16 instances are
        replicated, so that there are about 16 plays.

    >>> study = comparison(algorithms=["matched", "LinUCB"], regimes=["stochastic"], horizon=100)
    >>> list(study.algorithms), study.settings["horizon"]
    (['LC-Tsallis-INF matched', 'LinUCB'], 100)
    """
    given = {**SETTINGS, "instances": INSTANCES, **{key: one for key, one in settings.items() if one is not None}}
    given = {"replications": max(1, FEWEST_PLAYS // max(1, given["instances"])), **given}
    chosen = _chosen(algorithms, {**OURS, **RIVALS}, known_algorithms(), "algorithm")
    worlds = _chosen(regimes, REGIMES, known_regimes(), "regime")
    return Study.from_dict(
        {
            "name": "LC-Tsallis-INF and its rivals",
            "references": True,
            **given,
            "sizes": {**SIZES, **(sizes or {})},
            "environments": {label: _timed(options, given["horizon"]) for label, options in worlds.items()},
            "algorithms": {label: _tuned(options, given["horizon"]) for label, options in chosen.items()},
        }
    )


def _tuned(options: dict[str, Any], horizon: int) -> dict[str, Any]:
    """Return the options of an algorithm, with the horizon if it takes one.

    >>> _tuned({"kind": "RealFTRL"}, 100), _tuned({"kind": "OFUL"}, 100)
    ({'kind': 'RealFTRL', 'horizon': 100}, {'kind': 'OFUL'})
    """
    kind = options["kind"]
    told = takes_horizon(load_object(kind) if is_user_kind(kind) else registered()[kind])
    return {**options, "horizon": horizon} if told else options


def _timed(options: dict[str, Any], horizon: int) -> dict[str, Any]:
    """Return the options of an environment; ``changes`` becomes a single change after a quarter of the horizon.

    >>> _timed({"kind": "clicks", "changes": [10_000]}, 100)
    {'kind': 'clicks', 'changes': [25]}
    """
    return {**options, "changes": [max(1, horizon // 4)]} if "changes" in options else options


def known_regimes() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return label and options of every regime by all of its accepted names."""
    worlds = {kind: (kind, {"kind": kind}) for kind in WORLDS}
    return {**worlds, **{name: (name, options) for name, options in {**REGIMES, **ON_REQUEST}.items()}}


def known_algorithms() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return label and options of every algorithm by all of its accepted names."""
    kinds = {kind: (kind, {"kind": kind}) for kind in registered()}
    tunings = {str(options["tuning"]): (label, options) for label, options in OURS.items()}
    return {**kinds, **tunings, **{label: (label, options) for label, options in {**OURS, **RIVALS}.items()}}


def _chosen(
    names: Iterable[str] | None, default: dict[str, Any], known: dict[str, tuple[str, dict[str, Any]]], word: str
) -> dict[str, dict[str, Any]]:
    """Return the chosen option tables by label; the error for an unknown name suggests the nearest known one."""
    lower = {name.lower(): name for name in known}
    found: dict[str, dict[str, Any]] = {}
    for name in default if names is None else names:
        key = name.strip().lower()
        if is_user_kind(name):
            if (options := {"kind": name.strip()}) not in found.values():
                found[_own_label(name, {*known, *found})] = options
            continue
        if key not in lower:
            near = get_close_matches(key, lower, n=1, cutoff=0.5)
            hint = f"; did you mean {lower[near[0]]!r}?" if near else f"; known are {', '.join(known)}"
            raise ValueError(f"unknown {word} {name!r}{hint}")
        label, options = known[lower[key]]
        found[label] = options
    return found


def _own_label(kind: str, taken: set[str]) -> str:
    """Return the label of a user's algorithm or environment: its name, with its file if the name is taken.

    >>> _own_label("mine.py:Greedy", {"LinUCB"}), _own_label("mine.py:LinUCB", {"LinUCB"})
    ('Greedy', 'LinUCB (mine.py)')
    """
    place, _, name = kind.strip().rpartition(":")
    labels = [name, f"{name} ({Path(place).name})"]
    return next((label for label in labels if label not in taken), f"{name} ({place})")
