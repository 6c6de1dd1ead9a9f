"""Does the paper hold? Run all studies and write research/does-the-paper-hold.md from their results.

    python studies/hold.py                 # committed sizes, then the page; the same command resumes
    python studies/hold.py --quick         # every study in small, no page unless asked for: under three minutes, warm
    python studies/hold.py --only growth   # some studies only, no page
    python studies/hold.py --page-only     # write the page from the results that are there

Exit code 1 if a regret exceeds its bound.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from answers import choices, curves, scalings
from answers.common import Question
from answers.page import parts_of, text_of, write_page
from bothworlds.studies.folder import Finished, read_folder
from bothworlds.studies.runner import run_study
from bothworlds.studies.study import Study

HERE = Path(__file__).parent
QUESTIONS: list[Question] = sorted(
    [*curves.QUESTIONS, *scalings.QUESTIONS, *choices.QUESTIONS], key=lambda question: question.letter
)
NAMES = [name for question in QUESTIONS for name in question.studies]
QUICK_PART, QUICK_REPLICATIONS, LONGEST_QUICK = 20, 8, 25_000


def smaller(study: Study, horizon: int, replications: int) -> Study:
    """Return a study with a shorter horizon; algorithms tuned to the horizon, delay and batch follow."""
    settings = study.settings
    part = min(1.0, horizon / settings["horizon"])

    def shorter(options: dict[str, Any]) -> dict[str, Any]:
        tuned = options.get("horizon") == settings["horizon"]
        return {**options, "horizon": horizon} if tuned else options

    new = {"horizon": horizon, "replications": replications, "delay": int(part * settings["delay"])}
    new["batch"] = max(1, int(part * settings["batch"]))
    algorithms = {name: shorter(options) for name, options in study.algorithms.items()}
    return replace(study, settings={**settings, **new}, algorithms=algorithms)


def quick_size(study: Study) -> tuple[int, int]:
    """Return horizon and replications of the quick size."""
    horizon = max(1000, min(study.settings["horizon"] // QUICK_PART, LONGEST_QUICK))
    return horizon, min(QUICK_REPLICATIONS, study.settings["replications"])


def run(name: str, folder: Path, size: tuple[int, int] | None, *, quiet: bool) -> Finished:
    """Run a study, or what is left of it, and return what is finished."""
    study = Study.from_toml(HERE / f"{name}.toml")
    if size is not None:
        study = smaller(study, *size)
    began = time.monotonic()
    cells = run_study(study, folder, quiet=quiet)
    print(f"{name}: {len(cells)} cells, {time.monotonic() - began:.0f} s", file=sys.stderr)
    return Finished(study=study, folder=folder, cells=cells, missing=[])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="every study in small")
    parser.add_argument("--only", nargs="+", choices=NAMES, metavar="STUDY", help=f"some of {', '.join(NAMES)}")
    parser.add_argument("--page-only", action="store_true", help="run nothing")
    parser.add_argument("--results", type=Path, help="folder for results [studies/NAME-results]")
    parser.add_argument("--page", type=Path, help="where to write the page [research/does-the-paper-hold.md]")
    parser.add_argument("--size", nargs=2, type=int, metavar=("T", "R"), help="another horizon and replications")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    options = parser.parse_args(arguments)
    small = options.quick or options.size
    finished = {}
    for name in options.only or NAMES:
        folder = (options.results or HERE) / f"{name}{'-quick' if small else ''}-results"
        if options.page_only:
            finished[name] = read_folder(folder)
            continue
        size = tuple(options.size) if options.size else None
        if options.quick and size is None:
            size = quick_size(Study.from_toml(HERE / f"{name}.toml"))
        finished[name] = run(name, folder, size, quiet=options.quiet)
    asked = [question for question in QUESTIONS if all(name in finished for name in question.studies)]
    parts = parts_of(asked, finished)
    print(text_of(parts))
    page = options.page or (None if small or options.only else HERE.parent / "research" / "does-the-paper-hold.md")
    if page is not None:
        write_page(page, parts)
        print(f"page: {page}", file=sys.stderr)
    return 1 if any(part.broken for part in parts) else 0


if __name__ == "__main__":
    sys.exit(main())
