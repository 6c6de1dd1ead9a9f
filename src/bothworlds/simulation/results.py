"""`Results`: cumulative losses at checkpoints, regret and intervals; saved as .npz arrays and a JSON manifest."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from bothworlds._hooks import provided
from bothworlds._public_names import internal
from bothworlds.arrays import Floats, Ints
from bothworlds.environments import Environment
from bothworlds.errors import MissingPackageError
from bothworlds.problem.file_format import RESULTS, checked_format, read_arrays, read_json, write_arrays, write_bytes
from bothworlds.simulation.replication import Outcome
from bothworlds.theory.confidence.student import factor

RATES = ("learning_rate", "exploration_rate")


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One algorithm in one environment: R replications, n checkpoints.

    Attributes
    ----------
    expected, realised
        Cumulative loss of the learner (R, n): expected given the past, and realised.
    own_best
        Loss of the best policy in hindsight of each replication (R, n).
    round_best
        Loss of the best arms of every round, added up: sum over rounds of E_X[min_a <phi(a, X), theta_t>] (R, n).
    best
        Loss in each replication of the policy that is best in expectation, rho*_t of the checkpoint (R, n).
    corruption, spent
        Total corruption of each replication (R,), and mean corruption up to each checkpoint (n,).
    policy
        Final pi, averaged over replications (contexts, arms).
    final
        Final learned state of all replications, arrays by name.
    learning_rate, exploration_rate
        eta_t and gamma_t of the plan of round t at the checkpoints (R, n); None for algorithms without such rates.
    """

    expected: Floats
    realised: Floats
    own_best: Floats
    round_best: Floats
    best: Floats
    corruption: Floats
    spent: Floats
    policy: Floats
    final: dict[str, Floats]
    learning_rate: Floats | None = None
    exploration_rate: Floats | None = None

    @property
    def paths(self) -> Floats:
        """Regret of every replication against the common comparator (R, n); its mean is the regret R_t."""
        return np.asarray(self.expected - self.best)

    @property
    def regret(self) -> Floats:
        """R_t of Section 1.1 at the checkpoints (n,)."""
        return np.asarray(self.paths.mean(axis=0))

    @property
    def paths_against_own_best(self) -> Floats:
        """Regret of every replication against its own best policy in hindsight (R, n)."""
        return np.asarray(self.expected - self.own_best)

    @property
    def regret_against_own_best(self) -> Floats:
        """Mean regret against each replication's own best policy (n,): at least R_t, since E max >= max E."""
        return np.asarray(self.paths_against_own_best.mean(axis=0))

    @property
    def dynamic_paths(self) -> Floats:
        """Dynamic regret of every replication, against the best arms of every round (R, n); it never decreases."""
        return np.asarray(self.expected - self.round_best)

    @property
    def dynamic_regret(self) -> Floats:
        """Mean dynamic regret at the checkpoints (n,): at least R_t, and equal to it if the best arms never change."""
        return np.asarray(self.dynamic_paths.mean(axis=0))

    @internal
    def judged(self, *, changing: bool) -> "Run":
        """Return the run with the regret by which it is judged: in a changing world, dynamic regret as `paths`."""
        return replace(self, best=self.round_best) if changing else self

    @property
    def account(self) -> Floats | None:
        """Sum of the terms of the proof on the path of every replication (R,): stability, price, penalty, drift.

        With the matched tuning and feedback after every decision its mean bounds R_T; a single path may exceed it. None
        for algorithms without such an account.
        """
        account = self.final.get("account")
        return account[:, 0] if account is not None and account.shape[1:] == (1,) else None

    @property
    def standard_error(self) -> Floats:
        """Standard error of the regret (n,); NaN for a single replication."""
        return _standard_error(self.paths)

    @property
    def dynamic_standard_error(self) -> Floats:
        """Standard error of the dynamic regret (n,); NaN for a single replication."""
        return _standard_error(self.dynamic_paths)

    @property
    def half_width(self) -> Floats:
        """Half width of Student's 95 % interval of the regret over replications (n,); NaN for a single one."""
        return np.asarray(factor(len(self.expected)) * self.standard_error)

    def __repr__(self) -> str:
        half = "" if len(self.expected) == 1 else f" ± {self.half_width[-1]:.3g}"
        return f"Run({len(self.expected)} replications, regret {self.regret[-1]:.4g}{half})"

    def quantiles(self, levels: Any, *, own_best: bool = False) -> Floats:
        """Quantiles over replications (levels, n) of the regret, or of that against each one's own best policy."""
        paths = self.paths_against_own_best if own_best else self.paths
        return np.asarray(np.quantile(paths, levels, axis=0))


def _standard_error(paths: Floats) -> Floats:
    """Return the standard error of the mean of paths (R, n); NaN for a single one."""
    R, n = paths.shape
    deviation = paths.std(axis=0, ddof=1) if R > 1 else np.full(n, np.nan)
    return np.asarray(deviation / np.sqrt(R))


def make_run(environment: Environment, outcomes: list[Outcome]) -> Run:
    """Make a run from the outcomes of replications; the comparator is best for the mean of the parameters."""
    sums, spent = (np.stack([getattr(outcome, name) for outcome in outcomes]) for name in ("sums", "spent"))
    names = outcomes[0].final
    rates = [outcome.rates for outcome in outcomes if outcome.rates is not None]
    return Run(
        expected=np.stack([outcome.expected for outcome in outcomes]),
        realised=np.stack([outcome.realised for outcome in outcomes]),
        own_best=np.stack([outcome.own_best for outcome in outcomes]),
        round_best=np.stack([outcome.round_best for outcome in outcomes]),
        best=environment.losses_of_best(sums),
        corruption=spent[:, -1].copy(),
        spent=spent.mean(axis=0),
        policy=np.mean([outcome.policy for outcome in outcomes], axis=0),
        final={name: np.stack([outcome.final[name] for outcome in outcomes]) for name in names},
        learning_rate=np.stack(rates)[:, :, 0] if rates else None,
        exploration_rate=np.stack(rates)[:, :, 1] if rates else None,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Results:
    """Results of `simulate`: one `Run` per algorithm, the checkpoints, and a manifest.

    ``world`` and ``players`` are the environment and the algorithms; files do not contain them.

    >>> from bothworlds import FixedPolicy, environments, simulate
    >>> world = environments.lower_bound(arms=2, horizon=100)
    >>> results = simulate(world, {"coin": FixedPolicy()}, horizon=100, replications=2, checkpoints=[10, 100])
    >>> list(results.runs), results.checkpoints.tolist(), results["coin"].regret.round(2).tolist()
    (['coin'], [10, 100], [0.35, 3.54])
    """

    environment: str
    checkpoints: Ints
    runs: dict[str, Run]
    manifest: dict[str, Any]
    world: Environment | None = None
    players: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        T, R = int(self.checkpoints[-1]), max((len(run.expected) for run in self.runs.values()), default=0)
        regret = ", ".join(f"{label} {run.regret[-1]:.4g}" for label, run in self.runs.items())
        return f"Results({self.environment!r}, T = {T:,}, {R} replications; regret: {regret or 'no runs'})"

    def __getitem__(self, label: str) -> Run:
        """Return the run of an algorithm by its label."""
        if label not in self.runs:
            raise KeyError(f"there is no run {label!r}; the runs are {', '.join(self.runs)}")
        return self.runs[label]

    @property
    def changing(self) -> bool:
        """Whether the environment is one that learners should follow, where dynamic regret is what counts."""
        return bool(self.manifest.get("environment", {}).get("changing"))

    @internal
    def judged(self) -> dict[str, Run]:
        """Return the runs with the regret by which they are judged."""
        return {label: run.judged(changing=self.changing) for label, run in self.runs.items()}

    @internal
    def relabelled(self, label: str) -> "Results":
        """Return results of a single run under another label."""
        (run,) = self.runs.values()
        return replace(self, runs={label: run}, players=dict.fromkeys([label], next(iter(self.players.values()), None)))

    def summary(self, *, at: int | None = None) -> str:
        """Return a plain table of the runs at a checkpoint, by default the last one, the smallest regret first.

        In `changing` worlds the smallest dynamic regret comes first.
        ± is the half width of the 95 % interval; other columns with a % are quantiles over replications. "own best" is
        the regret against each replication's own best policy, "dynamic" that against the best arms of every round.
        """
        n = len(self.checkpoints) - 1 if at is None else int(np.searchsorted(self.checkpoints, at))
        if n >= len(self.checkpoints) or (at is not None and self.checkpoints[n] != at):
            raise ValueError(f"round {at!r} is not a checkpoint; the checkpoints are {self.checkpoints.tolist()}")
        count = len(next(iter(self.runs.values())).expected)
        head = ("regret", "± 95 %", "10 %", "median", "90 %", "own best", "dynamic", "loss", "algorithm")
        rows: list[tuple[str, ...]] = [head]
        order = {label: float(run.regret[n]) for label, run in self.judged().items()}
        for label, run in sorted(self.runs.items(), key=lambda item: order[item[0]]):
            quantiles = run.quantiles([0.1, 0.5, 0.9])[:, n]
            loss = float(run.realised[:, n].mean())
            others = run.regret_against_own_best[n], run.dynamic_regret[n]
            values = [run.regret[n], run.half_width[n], *quantiles, *others, loss]
            rows.append((*(f"{value:,.1f}" for value in values), label))
        lines = [" ".join(f"{word:>10}" for word in row[:-1]) + f"  {row[-1]}" for row in rows]
        title = f"{self.environment}, round {self.checkpoints[n]:,}, {count} replication{'s' if count > 1 else ''}"
        return "\n".join([title, *lines])

    def plot(self, **options: Any) -> Any:
        """Draw the regret with matplotlib and return the figure; options as in `bothworlds.report.drawn`."""
        return provided("drawn")(self, **options)

    def _repr_html_(self) -> str:
        """Return a table and a chart, for notebooks."""
        html: str = provided("html_of")(self)
        return html

    def to_pandas(self) -> Any:
        """Return a long table: algorithm, t, regret, quantiles, dynamic regret, losses, rates (needs pandas)."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingPackageError("to_pandas needs pandas, which is not installed: pip install pandas") from None
        parts = []
        for label, run in self.runs.items():
            low, middle, high = run.quantiles([0.1, 0.5, 0.9])
            columns = {
                "algorithm": label,
                "t": self.checkpoints,
                "regret": run.regret,
                "standard_error": run.standard_error,
                "q10": low,
                "median": middle,
                "q90": high,
                "regret_against_own_best": run.regret_against_own_best,
                "dynamic_regret": run.dynamic_regret,
                "realised_loss": run.realised.mean(axis=0),
                **{name: _mean(getattr(run, name)) for name in RATES},
            }
            parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True)

    def save(self, path: str | Path) -> None:
        """Write the arrays to path (.npz), and the manifest to a .json file of the same name."""
        target = Path(path)
        if target.suffix != ".npz":
            raise ValueError(f"{path}: the path of results must end with .npz; the manifest is a .json file beside it")
        arrays: dict[str, Any] = {"checkpoints": self.checkpoints}
        for number, run in enumerate(self.runs.values()):
            for name in ("expected", "realised", "own_best", "round_best", "best", "corruption", "spent", "policy"):
                arrays[f"{number}.{name}"] = getattr(run, name)
            arrays |= {f"{number}.final.{name}": values for name, values in run.final.items()}
            arrays |= {f"{number}.{name}": rates for name in RATES if (rates := getattr(run, name)) is not None}
        header = {"format": RESULTS, "environment": self.environment, "labels": list(self.runs)}
        manifest = json.dumps(self.manifest, indent=1).encode()
        write_bytes(target.with_suffix(".json"), manifest)
        write_arrays(target, header, arrays)


def _mean(rates: Floats | None) -> Any:
    """Return the mean over replications, or NaN without rates."""
    return np.nan if rates is None else rates.mean(axis=0)


def load_results(path: str | Path) -> Results:
    """Read results written by `Results.save`."""
    header, arrays = read_arrays(path)
    header = checked_format(header, RESULTS, path)
    runs = {}
    try:
        for number, label in enumerate(header["labels"]):
            prefix = f"{number}."
            fields = {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}
            final = {key.removeprefix("final."): fields.pop(key) for key in list(fields) if key.startswith("final.")}
            runs[label] = Run(**fields, final=final)
        manifest = read_json(Path(path).with_suffix(".json"))
        return Results(
            environment=header["environment"], checkpoints=arrays["checkpoints"], runs=runs, manifest=manifest
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} is incomplete: {error}") from None
