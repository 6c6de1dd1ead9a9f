"""The page docs/api.md, made from the docstrings: python tools/api.py > docs/api.md."""

import inspect
import itertools
import re
from typing import Any

import bothworlds as bw
from bothworlds import environments as en

HEAD = """# API reference

Every public name, made from the docstrings by `python tools/api.py > docs/api.md`; a test fails when it is stale.
`bw` is `bothworlds`, `en` is `bothworlds.environments`. The examples run in the tests of their modules, where the name
itself is at hand without `bw.`.
"""
GROUPS: dict[str, list[str]] = {
    "Problems and decisions": [
        "Problem", "Policy", "Decision", "load", "SampledProblem", "SampledPolicy", "DegenerateProblemWarning",
        "block_parameters", "stacked_parameters",
    ],
    "Algorithms": [
        "LCTsallisINF", "RealFTRL", "FTRLLC", "RealLinExp3", "RobustLinExp3", "PerContextTsallisINF", "PerContextExp3",
        "LinUCB", "OFUL", "LinTS", "LinearEXP4", "BoBWRealLinExp3", "BoBWLinearEXP4", "LogdetFTRL", "FixedPolicy",
    ],
    "Tunings and covariances": ["Paper", "Certified", "Adaptive", "MGR", "Reservoir", "TuningWarning"],
    "Theory": ["bounds", "Bound", "BoundTable", "design", "Design", "Forecast", "ftrl_point", "transformation"],
    "Simulation": [
        "simulate", "replay", "diagnose", "Diagnosis", "Results", "load_results", "Study", "run_study",
        "check_algorithm", "check_environment",
    ],
    "Errors": ["NumericalError", "StudyError"],
}  # fmt: skip


def page() -> str:
    """Return the reference as Markdown; refuse to forget a public name."""
    listed = sorted(["environments", *itertools.chain.from_iterable(GROUPS.values())])
    if listed != sorted(bw.__all__):
        raise ValueError(f"GROUPS and bothworlds.__all__ differ: {set(listed) ^ set(bw.__all__)}")
    parts = [HEAD]
    for title, names in GROUPS.items():
        parts += [f"## {title}\n", *(entry(f"bw.{name}", getattr(bw, name)) for name in names)]
    parts.append("## Environments\n")
    parts += [entry(f"en.{name}", getattr(en, name)) for name in sorted(en.__all__, key=str.lower)]
    return "\n".join(parts)


def entry(name: str, thing: Any) -> str:
    """Return one name: how it is called, what it is, and the methods of a class."""
    lines = [f"### {name}\n", f"```text\n{name}{signature(thing)}\n```\n", text(thing)]
    if inspect.isclass(thing):
        lines += [f"**`{signed}`** {about}\n" for signed, about in methods(thing)]
    return "\n".join(lines)


def signature(thing: Any) -> str:
    """Return the arguments without their types: the text below says what they are."""
    try:
        found = inspect.signature(thing)
    except ValueError:
        return ""
    if isinstance(thing, type) and issubclass(thing, Warning | Exception):
        return ""
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values() if p.name != "self"]
    short = [
        p if len(repr(p.default)) < 40 else p.replace(default=...) for p in bare
    ]  # tables of functions and the like
    return str(found.replace(parameters=short, return_annotation=inspect.Signature.empty)).replace("Ellipsis", "...")


def text(thing: Any) -> str:
    """Return a docstring as Markdown: sections in bold, parameters as a list, examples fenced."""
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
    items = re.findall(r"^(\S.*)\n((?:    .*\n?)*)", rest, flags=re.MULTILINE)
    listed = [f"- `{name}`: {paragraph(inspect.cleandoc(about))}" for name, about in items]
    return f"**{section[1]}**\n\n" + "\n".join(listed)


def paragraph(given: str) -> str:
    """Return running text on one line, with code marked by single backquotes and no accidental emphasis."""
    line = " ".join(given.split()).replace("``", "`")
    return re.sub(r"(`[^`]*`)|([*<|])", lambda found: found[1] or f"\\{found[2]}", line)


def methods(thing: type) -> list[tuple[str, str]]:
    """Return the public methods and properties of a class, with the first sentence of each."""
    found = []
    for name, member in vars(thing).items():
        plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        about = (inspect.getdoc(plain) or "").split("\n\n")[0]
        if name.startswith("_") or not about:
            continue
        if isinstance(member, property) or type(member).__name__ == "cached_property":
            found.append((f".{name}", paragraph(about)))
        elif inspect.isfunction(plain):
            signed = signature(plain).replace("(cls, ", "(").replace("(cls)", "()")
            found.append((f".{name}{signed}", paragraph(about)))
    return found


if __name__ == "__main__":
    print(page(), end="")
