"""The pages docs/reference/api/*.md, made from the docstrings: python tools/reference.py."""

import inspect
import itertools
import re
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, get_args, get_origin

import bothworlds as bw
from bothworlds import kernels
from bothworlds.algorithms.registry import algorithms
from bothworlds.service import client

KINDS = {make: kind for kind, make in algorithms().items()}
INTERNAL = " Internal."  # ends the first paragraph of a docstring: for other parts of the library, not for users
NOTE = "Generated from the docstrings by `python tools/reference.py`."


class Page(NamedTuple):
    """One page: its file, its title, what it covers in a sentence, and its names below a prefix."""

    file: str
    title: str
    about: str
    names: tuple[str, ...]
    prefix: str = "bw."
    home: Any = bw


def listed(module: Any) -> tuple[str, ...]:
    """Return the public functions, classes and choices of words of a module."""
    return tuple(name for name in module.__all__ if _described(getattr(module, name)))


def values(module: Any) -> tuple[str, ...]:
    """Return the other public names of a module: constants and names of types."""
    return tuple(name for name in module.__all__ if not _described(getattr(module, name)))


def _described(thing: Any) -> bool:
    """Tell whether a name has an entry of its own."""
    own = getattr(thing, "__module__", "").partition(".")[0] == bw.__name__
    return get_origin(thing) is Literal or (own and (inspect.isclass(thing) or callable(thing)))


ALGORITHMS = (
    "LCTsallisINF", "RealFTRL", "FTRLLC", "RealLinExp3", "RobustLinExp3", "PerContextTsallisINF", "PerContextExp3",
    "LinUCB", "OFUL", "LinTS", "SquareCB", "DLinUCB", "SWLinUCB", "LinearEXP4", "BoBWRealLinExp3", "BoBWLinearEXP4",
    "LogdetFTRL", "MWULC", "BoBWMWULC", "FixedPolicy",
)  # fmt: skip
PAGES = (
    Page(
        "problem",
        "Problem",
        "State what is known before the first decision: contexts, arms, features and the range of rewards.",
        (
            "Problem", "OpenProblem", "Column", "SampledProblem", "TrafficMix", "DegenerateProblemWarning",
            "ManyContextsWarning", "block_parameters", "stacked_parameters",
        ),
    ),
    Page(
        "policy",
        "Policy and decisions",
        "Start a policy, decide, learn from feedback, publish plans, save and load.",
        (
            "Algorithm", "Policy", "Decision", "load", "Plan", "load_plan", "Prior", "OpenPolicy", "OpenDecision",
            "OpenDecisions", "OpenPlan", "SampledPolicy", "health_of", "Health", "OpenHealth", "warm_up",
        ),
    ),
    Page(
        "algorithms",
        "Algorithms and tunings",
        "Each algorithm and each tuning of `LCTsallisINF` in full: what it plays, what is proved and what is not, what "
        "a round costs, its options, the reference.",
        (
            *ALGORITHMS,
            *(make.__name__ for make in KINDS if make.__name__ not in ALGORITHMS),
            "Paper", "Certified", "Matched", "MGR", "Reservoir", "TuningWarning",
        ),
    ),
    Page(
        "environments",
        "Environments",
        "Simulated worlds that know their own truth, and functions that make a world of yours.",
        listed(bw.environments),
        "bw.environments.",
        bw.environments,
    ),
    Page(
        "simulation",
        "Simulation and studies",
        "Play algorithms against environments, run studies from files, and check algorithms and environments of your "
        "own.",
        (
            "simulate", "Results", "load_results", "Study", "run_study", "replay", "rehearse", "Rehearsal", "diagnose",
            "Diagnosis", "check_algorithm", "check_environment", "NumericalError", "StudyError",
        ),
    ),
    Page(
        "evaluation",
        "Evaluation",
        "Estimate from a log what a policy would have earned, with intervals that hold at any time.",
        listed(bw.evaluation),
        "bw.evaluation.",
        bw.evaluation,
    ),
    Page(
        "logs",
        "Logs",
        "Read, check and write logs of decisions and rewards, and learn from them.",
        listed(bw.logs),
        "bw.logs.",
        bw.logs,
    ),
    Page(
        "theory",
        "Theory and bounds",
        "Regret bounds with their constants, exploration designs, forecasts, and the FTRL point.",
        ("bounds", "Bound", "BoundTable", "design", "Design", "Forecast", "ftrl_point", "transformation"),
    ),
    Page(
        "confidence",
        "Confidence sequences",
        "Intervals and drift alarms that stay valid however often you look.",
        ("BettingSequence", "BernsteinSequence", "rate_interval", "drift_of", "Drift", "DriftAlarm"),
    ),
    Page(
        "kernels",
        "Kernels: the contract of an algorithm",
        "What the author of an algorithm imports to write it once for every way of running it: memory, records, "
        "arithmetic and the steps that algorithms share.",
        listed(kernels),
        "bothworlds.kernels.",
        kernels,
    ),
    Page(
        "service-client",
        "Client of the decision service",
        "Ask a running decision service for decisions and report rewards, with the standard library alone.",
        listed(client),
        "bothworlds.service.client.",
        client,
    ),
    Page(
        "datasets",
        "Data sets",
        "Published data as problems and logs.",
        listed(bw.datasets),
        "bw.datasets.",
        bw.datasets,
    ),
)  # fmt: skip
INDEX = """# API

Every public name, module by module. `bw` is `import bothworlds as bw`. The examples run in the tests of their modules,
where a name is written without its prefix.

"""


def pages() -> dict[str, str]:
    """Return the Markdown of every page by its file name; refuse to forget a public name."""
    check_complete(itertools.chain.from_iterable(page.names for page in PAGES if page.home is bw))
    made = {f"{page.file}.md": markdown(page) for page in PAGES}
    return {"index.md": INDEX + "\n".join(map(index_line, PAGES)) + f"\n\n{NOTE}\n"} | made


def check_complete(names: Iterable[str]) -> None:
    """Raise ValueError where the pages and ``bothworlds.__all__`` differ."""
    modules = [page.prefix.removeprefix("bw.").rstrip(".") for page in PAGES if page.prefix.startswith("bw.")]
    found = sorted([*names, *filter(None, modules)])
    if found != sorted(bw.__all__):
        raise ValueError(f"tools/api.py and bothworlds.__all__ differ: {sorted(set(found) ^ set(bw.__all__))}")


def index_line(page: Page) -> str:
    """Return a page's line of the index."""
    return f"- [{page.title}]({page.file}.md): {page.about}"


def markdown(page: Page) -> str:
    """Return one page: its title, a list of its names, and an entry for each name."""
    names = ", ".join(f"[`{name}`](#{name.lower()})" for name in page.names)
    parts = [f"# {page.title}\n", f"{page.about}\n", f"{names}\n"]
    parts += [entry(f"{page.prefix}{name}", getattr(page.home, name)) for name in page.names]
    if page.home is not bw and (others := values(page.home)):
        parts += ["## Constants and types\n"]
        parts += [f"- `{page.prefix}{name}`: {_value(getattr(page.home, name))}" for name in others]
        parts.append("")
    return "\n".join([*parts, f"{NOTE}\n"])


def _value(thing: Any) -> str:
    """Return a constant or the meaning of a type's name."""
    if isinstance(thing, tuple | list | dict | frozenset):
        return ", ".join(f"`{one!r}`" for one in thing)
    return f"`{re.sub(r'[a-z_]+[.]', '', str(thing))}`"


def entry(name: str, thing: Any) -> str:
    """Return one name: how it is called, what it is, and the methods of a class."""
    lines = [
        f"## {name.rpartition('.')[2]}\n",
        f"```py\n{name}{signature(thing)}\n```\n",
        f"{_origin(thing)}{text(thing)}",
    ]
    if inspect.isclass(thing):
        lines += [f"**`{signed}`** {about}\n" for signed, about in methods(thing)]
    return "\n".join(lines)


def _origin(thing: Any) -> str:
    """Return where the code of an algorithm is, and how studies name it."""
    if not inspect.isclass(thing) or not thing.__module__.startswith(f"{bw.__name__}.algorithms."):
        return ""
    return (
        f"Code: `{thing.__module__}`" + (f', in studies `kind = "{KINDS[thing]}"`' if thing in KINDS else "") + ".\n\n"
    )


def signature(thing: Any) -> str:
    """Return the arguments that are not private, without their types: the text below says what they are."""
    if get_origin(thing) is Literal:
        return f": one of {', '.join(map(repr, get_args(thing)))}"
    try:
        found = inspect.signature(thing)
    except ValueError:
        return ""
    made = [vars(thing).get(name) for name in ("__init__", "__new__")] if isinstance(thing, type) else []
    if made and (issubclass(thing, Warning | Exception) or any(map(is_internal, made))):
        return ""
    shown = [p for p in found.parameters.values() if p.name != "self" and not re.match(r"_\w", p.name)]
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in shown]
    short = [p.replace(default=...) if _unprintable(p.default) else p for p in bare]
    return str(found.replace(parameters=short, return_annotation=inspect.Signature.empty)).replace("Ellipsis", "...")


def _unprintable(default: object) -> bool:
    """Tell whether a default is a function, a table of functions or the like."""
    return len(repr(default)) >= 40 or " at 0x" in repr(default)


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
