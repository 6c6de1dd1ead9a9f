"""Two pages made from the docstrings: every public name, and every algorithm at length.

python tools/api.py > docs/api.md
python tools/api.py algorithms > docs/each-algorithm.md
"""

import inspect
import itertools
import re
import sys
from typing import Any, Literal, get_args, get_origin

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.algorithms.registry import algorithms

KINDS = {make: kind for kind, make in algorithms().items()}

HEAD = """# API reference

Every public name, made from the docstrings by `python tools/api.py > docs/api.md`; a test fails when it is stale.
`bw` is `bothworlds`, `en` is `bothworlds.environments`. The examples run in the tests of their modules, where the name
itself is at hand without `bw.`. Left out is what only other parts of the library use: there
the first paragraph of the docstring ends with "Internal."
"""
EACH_HEAD = """# Each algorithm

One section for each algorithm, then for the tunings of `LCTsallisINF`: what it plays, what is proved of it and what is
not, what a round costs, what we had to correct or choose, its options, the reference. [Algorithms](algorithms.md) has
them side by side: when to take which, all guarantees in one table, measured cost and regret. To run one against others:
`bothworlds compare --algorithms NAME,matched,LinUCB`.

Made from the docstrings by `python tools/api.py algorithms > docs/each-algorithm.md`; a test fails when it is stale.
"""
INTERNAL = " Internal."  # ends the first paragraph of a docstring: for other parts of the library, not for users
AT_LENGTH = ("Algorithms", "Tunings and covariances")  # groups with a page of their own
GROUPS: dict[str, list[str]] = {
    "Problems and decisions": [
        "Problem", "Algorithm", "Policy", "Decision", "load", "Plan", "load_plan", "Prior", "SampledProblem",
        "SampledPolicy", "TrafficMix", "DegenerateProblemWarning", "block_parameters", "stacked_parameters",
        "health_of", "Health", "warm_up",
    ],
    "Algorithms": [
        "LCTsallisINF", "RealFTRL", "FTRLLC", "RealLinExp3", "RobustLinExp3", "PerContextTsallisINF", "PerContextExp3",
        "LinUCB", "OFUL", "LinTS", "LinearEXP4", "BoBWRealLinExp3", "BoBWLinearEXP4", "LogdetFTRL",
        "MWULC", "BoBWMWULC", "FixedPolicy",
    ],
    "Tunings and covariances": ["Paper", "Certified", "Matched", "MGR", "Reservoir", "TuningWarning"],
    "Theory": ["bounds", "Bound", "BoundTable", "design", "Design", "Forecast", "ftrl_point", "transformation"],
    "Intervals at any time": [
        "BettingSequence", "BernsteinSequence", "rate_interval", "drift_of", "Drift", "DriftAlarm",
    ],
    "Simulation": [
        "simulate", "replay", "rehearse", "Rehearsal", "diagnose", "Diagnosis", "Results", "load_results", "Study",
        "run_study", "check_algorithm", "check_environment",
    ],
    "Errors": ["NumericalError", "StudyError"],
}  # fmt: skip
GROUPS["Algorithms"] += [make.__name__ for make in KINDS if make.__name__ not in GROUPS["Algorithms"]]


def page() -> str:
    """Return the reference as Markdown; refuse to forget a public name."""
    rooms = ["datasets", "environments", "evaluation", "logs"]
    listed = sorted([*rooms, *itertools.chain.from_iterable(GROUPS.values())])
    if listed != sorted(bw.__all__):
        raise ValueError(f"GROUPS and bothworlds.__all__ differ: {set(listed) ^ set(bw.__all__)}")
    parts = [HEAD]
    for title, names in GROUPS.items():
        listed_here = [link(name) for name in names] if title in AT_LENGTH else []
        entries = [] if listed_here else [entry(f"bw.{name}", getattr(bw, name)) for name in names]
        parts += [f"## {title}\n", *listed_here, *([""] if listed_here else []), *entries]
    parts.append("## Environments\n")
    parts += [entry(f"en.{name}", getattr(en, name)) for name in sorted(en.__all__, key=str.lower)]
    parts.append("## Logs\n")
    logs = {name: thing for name, thing in vars(bw.logs).items() if inspect.isfunction(thing) or inspect.isclass(thing)}
    parts += [entry(f"bw.logs.{name}", thing) for name, thing in logs.items()]
    parts.append("## Evaluation\n")
    parts += [
        entry(f"bw.evaluation.{name}", getattr(bw.evaluation, name))
        for name in bw.evaluation.__all__
        if name.upper() != name
    ]
    parts.append("## Data sets\n")
    found = {name: getattr(bw.datasets, name) for name in bw.datasets.__all__}
    parts += [entry(f"bw.datasets.{name}", thing) for name, thing in found.items() if callable(thing)]
    return "\n".join(parts)


def link(name: str) -> str:
    """Return a line that leads to the section of an algorithm, with its first sentence."""
    about = first_paragraph(getattr(bw, name))
    return f"- [`bw.{name}`](each-algorithm.md#{name.lower()}): {paragraph(about)}"


def algorithms_page() -> str:
    """Return every algorithm and every tuning at length, as Markdown."""
    parts = [EACH_HEAD]
    for name in itertools.chain.from_iterable(GROUPS[title] for title in AT_LENGTH):
        thing = getattr(bw, name)
        place = f"`{thing.__module__}`" + (f', in studies `kind = "{KINDS[thing]}"`' if thing in KINDS else "")
        parts.append(entry(f"bw.{name}", thing, title=f"## {name}", note=f"Code: {place}.\n\n"))
    return "\n".join(parts)


def entry(name: str, thing: Any, *, title: str = "", note: str = "") -> str:
    """Return one name: how it is called, what it is, and the methods of a class."""
    lines = [f"{title or f'### {name}'}\n", f"```text\n{name}{signature(thing)}\n```\n", f"{note}{text(thing)}"]
    if inspect.isclass(thing):
        lines += [f"**`{signed}`** {about}\n" for signed, about in methods(thing)]
    return "\n".join(lines)


def signature(thing: Any) -> str:
    """Return the arguments that are not private, without their types: the text below says what they are."""
    if get_origin(thing) is Literal:
        return f": one of {', '.join(map(repr, get_args(thing)))}"
    try:
        found = inspect.signature(thing)
    except ValueError:
        return ""
    if isinstance(thing, type) and (issubclass(thing, Warning | Exception) or is_internal(vars(thing).get("__init__"))):
        return ""
    shown = [p for p in found.parameters.values() if p.name != "self" and not re.match(r"_\w", p.name)]
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in shown]
    short = [
        p if len(repr(p.default)) < 40 else p.replace(default=...) for p in bare
    ]  # tables of functions and the like
    return str(found.replace(parameters=short, return_annotation=inspect.Signature.empty)).replace("Ellipsis", "...")


def is_internal(thing: Any) -> bool:
    """Tell whether the first paragraph of a docstring ends with the word that leaves it out."""
    return first_paragraph(thing).endswith(INTERNAL)


def first_paragraph(thing: Any) -> str:
    """Return what a docstring says first."""
    return (inspect.getdoc(thing) or "").split("\n\n")[0]


def text(thing: Any) -> str:
    """Return a docstring as Markdown: sections in bold, parameters as a list, examples fenced."""
    if get_origin(thing) is Literal:
        return ""
    blocks = re.split(r"\n\s*\n", inspect.getdoc(thing) or "")
    return "\n".join(f"{block(one)}\n" for one in blocks if one.strip())


def block(given: str) -> str:
    """Return one paragraph of a docstring as Markdown."""
    if given.lstrip().startswith(">>>"):
        return f"```python\n{given}\n```"
    section = re.match(r"(\w[\w ]*)\n-{3,}\n", given)
    if not section:
        indented = given.startswith("    ")  # a formula on its own
        return f"```text\n{inspect.cleandoc(given)}\n```" if indented else paragraph(given)
    rest = given[section.end() :]
    if rest.startswith(">>>"):
        return block(rest)
    items = re.findall(r"^(\S.*)\n((?:    .*\n?)+)", rest, flags=re.MULTILINE)
    if not items:
        return f"**{section[1]}**\n\n{paragraph(rest)}"
    listed = [f"- `{name}`: {paragraph(inspect.cleandoc(about))}" for name, about in items]
    return f"**{section[1]}**\n\n" + "\n".join(listed)


def paragraph(given: str) -> str:
    """Return running text on one line, with code marked by single backquotes and no accidental emphasis."""
    line = " ".join(given.split()).replace("``", "`")
    emphasis = r"(?<!\w)\*\w[^*`<|]*\w\*(?!\w)"  # titles of papers, say, but not e* nor Delta_*
    marked = re.sub(rf"(`[^`]*`|{emphasis})|([*<|])", lambda found: found[1] or f"\\{found[2]}", line)
    return marked.replace("\\<", "&lt;")  # not every reader of Markdown knows the other escape


def members(thing: type) -> dict[str, Any]:
    """Return what a class has of its own, and before that what it has from base classes of the library."""
    own = dict(vars(thing))
    bases = [base for base in thing.__mro__[1:] if base.__module__.partition(".")[0] == bw.__name__]
    return {name: member for base in bases for name, member in vars(base).items() if name not in own} | own


def methods(thing: type) -> list[tuple[str, str]]:
    """Return the public methods and properties of a class, those of our own base classes first, in a sentence each."""
    found = []
    for name, member in members(thing).items():
        plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        about = first_paragraph(plain)
        if name.startswith("_") or not about or is_internal(plain):
            continue
        if isinstance(member, property) or type(member).__name__ == "cached_property":
            found.append((f".{name}", paragraph(about)))
        elif inspect.isfunction(plain):
            signed = signature(plain).replace("(cls, ", "(").replace("(cls)", "()")
            found.append((f".{name}{signed}", paragraph(about)))
    return found


if __name__ == "__main__":
    print(algorithms_page() if sys.argv[1:] == ["algorithms"] else page(), end="")
