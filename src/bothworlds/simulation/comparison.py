"""The comparison that `bothworlds compare` runs: the paper's algorithm and its rivals, regime by regime, as a study."""

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from bothworlds.algorithms.lc_tsallis.lc_tsallis_inf import TUNINGS
from bothworlds.algorithms.registry import algorithms as registered
from bothworlds.algorithms.registry import takes_horizon
from bothworlds.simulation.own import is_own, loaded
from bothworlds.simulation.study import WORLDS, Study

SETTINGS = {"horizon": 40_000, "replications": 16, "seed": 7, "checkpoints": 120}
REGIMES: dict[str, dict[str, Any]] = {
    "stochastic": {"kind": "stochastic"},
    "adversarial": {"kind": "adaptive-adversary"},
    "corrupted": {"kind": "corrupted"},
    "margin": {"kind": "stochastic", "margin": 1.0},
    "ad fatigue": {"kind": "ad-fatigue"},
    "rare clicks": {"kind": "clicks", "attributes": [3, 4], "arms": 3},
}
ON_REQUEST: dict[str, dict[str, Any]] = {  # known by name; not played unless asked for
    "changing clicks": {"kind": "clicks", "attributes": [3, 4], "arms": 3, "changes": [SETTINGS["horizon"] // 4]},
}
OURS: dict[str, dict[str, Any]] = {
    f"LC-Tsallis-INF {tuning}": {"kind": "LCTsallisINF", "tuning": tuning} for tuning in TUNINGS
}
RIVALS: dict[str, dict[str, Any]] = {
    "RealFTRL": {"kind": "RealFTRL"},
    "OFUL": {"kind": "OFUL"},
    "LinUCB": {"kind": "LinUCB", "width": 0.5},
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
    """Return the study of a comparison; what is left out has the values of `bothworlds compare`.

    Algorithms that can be told the horizon are told it, for that is what is proved of them.

    Parameters
    ----------
    algorithms
        Labels of `OURS` and `RIVALS`, the three tunings by their own names, kinds of the registry, or your own:
        FILE.py:NAME.
    regimes
        Names of `REGIMES` and `ON_REQUEST`, kinds of environments, or your own: FILE.py:NAME.
    sizes, settings
        As in a study: contexts, arms, ...; horizon, replications, seed, ...

    >>> study = comparison(algorithms=["matched", "LinUCB"], regimes=["stochastic"], horizon=100)
    >>> list(study.algorithms), study.settings["horizon"]
    (['LC-Tsallis-INF matched', 'LinUCB'], 100)
    """
    given = {**SETTINGS, **{key: value for key, value in settings.items() if value is not None}}
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
    """Return the options of an algorithm with the horizon, if it can be told one.

    >>> _tuned({"kind": "RealFTRL"}, 100), _tuned({"kind": "OFUL"}, 100)
    ({'kind': 'RealFTRL', 'horizon': 100}, {'kind': 'OFUL'})
    """
    kind = options["kind"]
    told = takes_horizon(loaded(kind) if is_own(kind) else registered()[kind])
    return {**options, "horizon": horizon} if told else options


def _timed(options: dict[str, Any], horizon: int) -> dict[str, Any]:
    """Return the options of an environment; what changes once does so after a quarter of the horizon.

    >>> _timed({"kind": "clicks", "changes": [10_000]}, 100)
    {'kind': 'clicks', 'changes': [25]}
    """
    return {**options, "changes": [max(1, horizon // 4)]} if "changes" in options else options


def known_regimes() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return label and options of every regime, by the names it may be called by."""
    worlds = {kind: (kind, {"kind": kind}) for kind in WORLDS}
    return {**worlds, **{name: (name, options) for name, options in {**REGIMES, **ON_REQUEST}.items()}}


def known_algorithms() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return label and options of every algorithm, by the names it may be called by."""
    kinds = {kind: (kind, {"kind": kind}) for kind in registered()}
    tunings = {str(options["tuning"]): (label, options) for label, options in OURS.items()}
    return {**kinds, **tunings, **{label: (label, options) for label, options in {**OURS, **RIVALS}.items()}}


def _chosen(
    names: Iterable[str] | None, default: dict[str, Any], known: dict[str, tuple[str, dict[str, Any]]], word: str
) -> dict[str, dict[str, Any]]:
    """Return the chosen tables by label; unknown names are refused with the nearest known one."""
    lower = {name.lower(): name for name in known}
    found: dict[str, dict[str, Any]] = {}
    for name in default if names is None else names:
        key = name.strip().lower()
        if is_own(name):
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
    """Return the label of a part of one's own: its name, and where it is from if that is taken.

    >>> _own_label("mine.py:Greedy", {"LinUCB"}), _own_label("mine.py:LinUCB", {"LinUCB"})
    ('Greedy', 'LinUCB (mine.py)')
    """
    place, _, name = kind.strip().rpartition(":")
    labels = [name, f"{name} ({Path(place).name})"]
    return next((label for label in labels if label not in taken), f"{name} ({place})")
