"""The page, and the same in the terminal: claim, what was run, what was seen, verdict; bounds cell by cell."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from answers.common import CONTRADICTED, Answer, Held, Question, held, number, own_sizes
from bothworlds.problem.file_format import write_bytes
from bothworlds.report.chart import Chart
from bothworlds.report.svg import standalone
from bothworlds.studies.folder import Finished

INTRODUCTION = """# Does the paper hold?

Written by `python studies/hold.py` from the results of the studies; do not edit it, run it. Every study is a TOML file
in [studies](../studies) with a fixed seed and can be run alone and resumed. Regret is exact: R_T of Section 1.1 of the
paper, conditional on the past, with one comparator for all replications. Intervals are 95 %, over replications unless
said otherwise.

Verdicts: **seen**; **seen in part**; **not seen at feasible horizons**; **contradicted**, which needs a mean regret
more than three standard errors above an explicit bound where the bound is below 2 T. A theorem is an upper bound for
every problem: a study on some problems can contradict it, it cannot prove it. Rules for verdicts on adversaries,
margin, corruption and entropy were changed after first results were seen, so read the tables first. Nothing is claimed
for `paper` before 10 t0. [Corrections](corrections.md) has what we read differently in the paper, and
[theory.md](theory.md) the bounds.
"""
LEAST_SHOWN = 3  # bounds that are named for each study, the tightest ones


class Part:
    """One question with its answer, and what its studies say about bounds."""

    def __init__(self, question: Question, finished: Mapping[str, Finished]) -> None:
        self.question = question
        self.studies = {name: finished[name] for name in question.studies}
        self.answer: Answer = question.answer(finished)
        self.held: list[Held] = [one for study in self.studies.values() for one in held(study)]

    @property
    def broken(self) -> list[Held]:
        """The cells whose regret is above a bound that says something."""
        return [one for one in self.held if not one.check.holds]

    @property
    def verdict(self) -> str:
        """The answer's verdict, unless a bound was exceeded."""
        return CONTRADICTED if self.broken else self.answer.verdict

    @property
    def bounds_words(self) -> str:
        """How the bounds compare, in a few sentences."""
        if not self.held:
            return "No theorem gives an explicit bound for these cells."
        told = sorted(
            (one for one in self.held if one.check.ratio == one.check.ratio), key=lambda one: -one.check.ratio
        )
        vacuous = sum(one.check.vacuous for one in self.held)
        words = f"{len(self.held)} cells have a bound. {_how_many(vacuous, len(self.broken))}"
        nearest = [
            f"{one.cell.algorithm} in {one.cell.environment}{_sizes(one, self.studies)} {one.check.ratio:.2f} "
            f"({one.bound.source}; at T {number(one.check.regret)} of {number(one.check.bound)}"
            f"{', vacuous' if one.check.vacuous else ''})"
            for one in told[:LEAST_SHOWN]
        ]
        return words + (" Largest (regret + 3 s.e.)/bound: " + "; ".join(nearest) + "." if nearest else "")


def _how_many(vacuous: int, broken: int) -> str:
    """Say how many bounds say nothing at the horizon, and how many regrets are above one that says something."""
    empty = (
        f"In {vacuous} of them it says nothing at T, being 2 T or more" if vacuous else "At T it is below 2 T in all"
    )
    above = f"the regret of {broken} is above it" if broken else "no regret is above it"
    return f"{empty}; {above} at any checkpoint where it says something."


def _sizes(one: Held, studies: Mapping[str, Finished]) -> str:
    """Name the sizes in which the cells of a study differ."""
    varied = {key for study in studies.values() for key, values in study.study.sizes.items() if len(values) > 1}
    sizes = ", ".join(f"{key} {one.cell.sizes[key]}" for key in sorted(varied) if one.cell.sizes[key] is not None)
    return f" ({sizes})" if sizes else ""


def parts_of(questions: Sequence[Question], finished: Mapping[str, Finished]) -> list[Part]:
    """Answer the questions."""
    return [Part(question, finished) for question in questions]


def text_of(parts: Sequence[Part]) -> str:
    """Return verdicts and every bound with its ratio, for the terminal."""
    lines = []
    for part in parts:
        lines.append(f"({part.question.letter}) {part.question.title}  {part.verdict.upper()}")
        for one in part.held:
            note = "vacuous at T" if one.check.vacuous else "" if one.check.holds else "ABOVE THE BOUND"
            numbers = (
                f"{number(one.check.regret):>9} of {number(one.check.bound):>9}  ratio {number(one.check.ratio):>5}"
            )
            cell = f"{one.cell.algorithm} in {one.cell.environment}{_sizes(one, part.studies)}"
            lines.append(f"    {numbers}  {one.bound.source}  {cell}  {note}".rstrip())
    return "\n".join(lines)


def write_page(path: Path, parts: Sequence[Part]) -> None:
    """Write the page and, in figures/ beside it, its charts."""
    figures = path.parent / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    blocks = [INTRODUCTION, _overview(parts)]
    for part in parts:
        for chart in part.answer.charts:
            write_bytes(figures / f"{chart.name}.svg", standalone(chart).encode())
        blocks.append(_section(part))
    blocks.append(_bounds(parts))
    write_bytes(path, "\n".join(blocks).encode())


def _overview(parts: Sequence[Part]) -> str:
    rows = [(f"({part.question.letter}) {part.question.title}", part.verdict) for part in parts]
    return "## In short\n\n" + table(("question", "verdict"), rows)


def _section(part: Part) -> str:
    """Return one question as Markdown."""
    question, answer = part.question, part.answer
    run = [f"`bothworlds run studies/{name}.toml`: {_what(study)}" for name, study in part.studies.items()]
    images = [f"![{chart.title}](figures/{chart.name}.svg)\n*{caption(chart)}*" for chart in answer.charts]
    pieces = [
        f"## ({question.letter}) {question.title}\n",
        f"**Claim.** {question.claim}\n",
        "**Run.** " + "; ".join(run) + ".\n",
        f"**Seen.** {answer.words}\n",
        table(answer.head, answer.rows),
        *(f"{image}\n" for image in images),
        f"**Bounds.** {part.bounds_words}\n",
        f"**Verdict: {part.verdict}.**\n",
    ]
    return "\n".join(piece for piece in pieces if piece)


def caption(chart: Chart) -> str:
    """Return what stands below a chart: its title, and what it shows if that is more."""
    return f"{chart.title}." if chart.description == chart.title else f"{chart.title}. {chart.description}"


def _what(study: Finished) -> str:
    """Say the sizes of a study in a few words."""
    settings = study.study.settings
    sizes = ", ".join(
        f"{key} {' / '.join(str(v) for v in values)}" for key, values in study.study.sizes.items() if values != [None]
    )
    own = {cell.environment: own_sizes(cell) for cell, _ in study.cells}
    apart = "".join(
        f"; {name}: " + ", ".join(f"{key} {value}" for key, value in found.items())
        for name, found in own.items()
        if found
    )
    late = "".join(f", {key} {settings[key]}" for key, usual in (("delay", 0), ("batch", 1)) if settings[key] != usual)
    return (
        f"T = {settings['horizon']:,}, {settings['replications']} replications, seed {settings['seed']}{late}, "
        f"{sizes}{apart} ({len(study.cells)} cells)"
    )


def _bounds(parts: Sequence[Part]) -> str:
    """Return all cells with an explicit bound, in one table at the end."""
    rows = [
        (
            part.question.letter,
            f"{one.cell.algorithm} in {one.cell.environment}{_sizes(one, part.studies)}",
            one.bound.source,
            number(one.check.regret),
            number(one.check.bound),
            "vacuous" if one.check.vacuous else f"{one.check.regret / one.check.bound:.3f}",
            number(one.check.ratio),
        )
        for part in parts
        for one in part.held
    ]
    head = ("", "cell", "theorem", "R_T", "bound at T", "R_T/bound", "largest (R_t + 3 s.e.)/bound, bound below 2 t")
    return "## All bounds\n\n" + table(head, rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table.

    >>> print(table(("a", "b"), [("1", "2")]))
    | a | b |
    |---|---|
    | 1 | 2 |
    <BLANKLINE>
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("|" + "|".join(f" {c} " if c != "---" else c for c in line) + "|" for line in lines) + "\n"
