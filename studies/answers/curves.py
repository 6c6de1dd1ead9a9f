"""Questions about growth in T: the stochastic regime, adversaries, the margin condition, entropies."""

import math
from collections.abc import Mapping

from answers.common import (
    Answer,
    Question,
    final,
    interval,
    number,
    plain_chart,
    regret_chart,
    run_of,
    t0_of,
    verdict,
)
from answers.verdicts import decade_ratio, envelope_exponent, shape_shares, slow_from
from bothworlds.report.statistics import Estimate, growth_exponent, local_exponents
from bothworlds.studies.folder import Finished

SURE = 0.95  # share of resamples that must prefer a shape
FLATTEST = 0.9  # decade ratio below which growth is slower than any shape: the learning phase is not over
WIDEST = 0.25  # half width of an interval around an exponent that still tells something
TOO_EARLY = "T below 100 t0: nothing is claimed"


def growth(finished: Mapping[str, Finished]) -> Answer:
    """Ask whether growth is logarithmic, and from which T on."""
    study = finished["growth"]
    rows, right, good = [], [], []
    for environment in study.study.environments:
        for algorithm in study.study.algorithms:
            cell, t, run = run_of(study, environment, algorithm)
            since = t[-1] / 100.0
            claimed = True
            if algorithm == "paper":  # nothing is claimed below 10 t0, and a decade of what is left is needed
                since, claimed = max(since, 10.0 * t0_of(cell)), t[-1] >= 100.0 * t0_of(cell)
            shares = shape_shares(t, run.paths, since=since) if claimed else {}
            if algorithm in ("paper", "certified") and claimed:
                right.append(shares["log T"] >= SURE)
                good += [f"{algorithm} ({environment})"] if right[-1] else []
            rows.append(
                (
                    environment,
                    algorithm,
                    interval(final(run)),
                    interval(growth_exponent(t, run.paths)),
                    interval(decade_ratio(t, run.paths)) if claimed else "-",
                    f"{shares['log T']:.2f} from t = {since:,.0f} on" if shares else TOO_EARLY,
                    number(slow_from(t, run.paths)),
                )
            )
    words = (
        "The decade ratio is (R_T - R_{T/10})/(R_{T/10} - R_{T/100}): 1 for log T, 1.2 for log^2 T at these "
        "horizons, 3.2 for sqrt(T). The share is how often, over bootstrap samples of "
        f"replications, a + b log t fits better than a + b sqrt t. Logarithmic, with a share of at least {SURE}, among "
        "the tunings with a theorem: "
        f"{', '.join(good) or 'none'}. The last column is the round from which the growth exponent of the decade "
        "before stays below 1/4."
    )
    head = ("instance", "tuning", "R_T", "exponent, last decade", "decade ratio", "share log over sqrt", "slow from t")
    charts = [regret_chart(f"growth-{name}", study, name) for name in study.study.environments]
    return Answer(verdict(right), words, head, rows, charts)


def adversaries(finished: Mapping[str, Finished]) -> Answer:
    """Ask whether the slope is at most 1/2 under every adversary."""
    study = finished["adversaries"]
    rows, right = [], []
    for environment in study.study.environments:
        for algorithm in study.study.algorithms:
            cell, t, run = run_of(study, environment, algorithm)
            since = t[-1] / 100.0
            if algorithm == "paper":
                since = max(since, 10.0 * t0_of(cell))
            slope = envelope_exponent(t, run.paths, since=since)
            word = _against_half(slope)
            right.append(word in ("below 1/2", "1/2 is within"))
            regret, top = final(run), float(run.regret.max())
            highest = f"{number(top)}, {number(top / t[-1] ** 0.5)} sqrt(T)"
            rows.append((environment, algorithm, interval(regret), highest, interval(slope), word))
    words = (
        "Against fixed comparators these adversaries win some rounds and lose others: regret rises and falls, and "
        "may end below zero. The slope is that of log max_{s<=t} R_s, the highest regret so far, against log t over "
        "the last two decades (from 10 t0 on for `paper`). A "
        "slope above 1/2 at one horizon contradicts no upper bound; only a regret above the explicit bound would."
    )
    head = ("adversary", "algorithm", "R_T", "highest R_t", "slope", "reading")
    charts = [
        regret_chart("adversaries-adaptive", study, "adaptive adversary", y_log=True),
        regret_chart("adversaries-phases", study, "growing phases"),
    ]
    return Answer(verdict(right), words, head, rows, charts)


def _against_half(slope: Estimate) -> str:
    """Say where an interval lies; one that is wide and reaches beyond 1/2 tells nothing."""
    if not slope.value + slope.half > 0.5:
        return "no slope" if math.isnan(slope.value) else "below 1/2"
    if slope.half > WIDEST:
        return "too noisy to tell"
    return "above 1/2" if slope.value - slope.half > 0.5 else "1/2 is within"


def margin(finished: Mapping[str, Finished]) -> Answer:
    """Hold local exponents against 1/(2 + beta)."""
    study = finished["margin"]
    rows, right, lines = [], [], {}
    for environment, options in study.study.environments.items():
        predicted = 1.0 / (2.0 + float(options["margin"]))
        for algorithm in study.study.algorithms:
            cell, t, run = run_of(study, environment, algorithm)
            if algorithm == "paper" and t[-1] < 100.0 * t0_of(cell):
                rows.append((environment, algorithm, f"{predicted:.2f}", TOO_EARLY, "-", interval(final(run)), "-"))
                continue
            early = growth_exponent(t[t <= t[-1] / 10.0], run.paths[:, t <= t[-1] / 10.0])
            late = growth_exponent(t, run.paths)
            shares = shape_shares(t, run.paths, since=t[-1] / 100.0)
            if predicted == 0.0:
                word = "log T" if shares.get("log T", 0.0) >= SURE else "not log T"
            else:
                word = "slower" if late.value + late.half < predicted else "as the theorem's"
                word = "faster" if late.value - late.half > predicted else word
            if algorithm in ("paper", "certified"):
                right.append(word in ("log T", "as the theorem's"))
            shown = (f"{predicted:.2f}", interval(early), interval(late), interval(final(run)), word)
            rows.append((environment, algorithm, *shown))
            if algorithm == "certified":
                at, slopes = local_exponents(t, run.paths)
                lines[f"{environment}: theorem {predicted:.2f}"] = (at, slopes[:, 0])
    words = (
        "The theorem is an upper bound on the exponent, and a finite set of contexts has a smallest gap, so that in "
        "the end growth is logarithmic for every beta; the exponents of a decade tell where we are on the way. "
        "'Slower' is allowed by the theorem; the verdict is 'seen' only where the interval of the last decade "
        "contains 1/(2 + beta), and for beta = inf where a + b log t fits better than a + b sqrt t."
    )
    head = ("margin", "tuning", "1/(2+beta)", "exponent, T/100 to T/10", "exponent, T/10 to T", "R_T", "reading")
    title = "Growth exponent of the decade before t, certified"
    charts = [plain_chart("margin-exponents", title, "round t", "exponent", lines, y_log=False)]
    return Answer(verdict(right), words, head, rows, charts)


def entropy(finished: Mapping[str, Finished]) -> Answer:
    """Ask whether Tsallis entropy gives log T where Shannon entropy gives log^2 T."""
    study = finished["entropy"]
    shapes = ("log T", "log^2 T", "sqrt T")
    rows, found = [], {}
    for algorithm in study.study.algorithms:
        _, t, run = run_of(study, "stochastic", algorithm)
        shares = shape_shares(t, run.paths, shapes, since=t[-1] / 100.0)
        change = decade_ratio(t, run.paths)
        if shares and change.value + change.half < FLATTEST:
            found[algorithm] = "none, it still falls off"
        else:
            found[algorithm] = max(shares, key=lambda shape: shares[shape]) if shares else "none"
        exponent, ratio = interval(growth_exponent(t, run.paths)), interval(change)
        rows.append(
            (algorithm, interval(final(run)), exponent, ratio, *(f"{shares.get(s, math.nan):.2f}" for s in shapes))
        )
    right = [found["alpha 0.5"] == "log T", found["Shannon"] == "log^2 T"]
    words = (
        f"Over the last two decades the shape is '{found['alpha 0.5']}' for alpha = 1/2 and '{found['Shannon']}' for "
        "Shannon entropy. Shares: how often a shape fits best over bootstrap samples of replications. A decade ratio "
        "below 1 means that the earlier decade still holds the end of the learning phase; then log T fits best only "
        "because it is the flattest of the three, and counts as not seen. The table of question (a) has decade "
        "ratios at a longer horizon. For alpha other than 1/2 nothing is proved."
    )
    head = ("algorithm", "R_T", "exponent, last decade", "decade ratio", *shapes)
    return Answer(verdict(right), words, head, rows, [regret_chart("entropy", study, "stochastic")])


QUESTIONS = [
    Question(
        "a",
        "Is growth log T in the stochastic regime, and from which T on?",
        "Theorem 4.4 with C = 0: R_T = O((L d sqrt(K)/Delta_*) log T) for `paper` and `certified`.",
        ("growth",),
        growth,
    ),
    Question(
        "b",
        "sqrt T under each adversary?",
        "Theorem 4.2: R_T = O(sqrt(d sqrt(K) T)) + kappa whatever the losses are; Theorem D.2 for Shannon entropy.",
        ("adversaries",),
        adversaries,
    ),
    Question(
        "c",
        "Exponents 1/(2 + beta) under a margin condition?",
        "Theorem 4.3: R_T = O(T^(1/(2+beta))), the logarithm aside.",
        ("margin",),
        margin,
    ),
    Question(
        "f",
        "Tsallis against Shannon entropy, and alpha other than 1/2",
        "Theorem 4.4 against Theorem D.4: log T with Tsallis entropy at alpha = 1/2, log^2 T with Shannon entropy.",
        ("entropy",),
        entropy,
    ),
]
