"""Do the tests notice? One-line mutations of the package, and the tests that must fail for each.

    python tools/mutations.py                # all of tools/mutations.toml; docs/contributing.md says how long
    python tools/mutations.py --only corral  # those whose function, text or tests contain a word
    python tools/mutations.py --jobs 2       # so many at a time
    python tools/mutations.py --list         # what there is, and where

A mutation is named by a function (or ``Class.method``, or a module's constant) and a whole line of it, wherever in the
package that stands, so that it survives a move of files. The package is copied, the line replaced, and the named tests
run on the copy, with a folder for compiled code of its own; before that they run once on an unchanged copy. Exit status
1 if a mutation survived, was not found, or its tests fail without it.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "bothworlds"
LIST = Path(__file__).with_suffix(".toml")
FAILED, PASSED = 1, 0  # what pytest returns


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A line of a function, what to write in its place, and the tests that must fail then.

    ``equivalent`` says why no test can: the mutation is then looked up and not run.
    """

    function: str
    old: str
    new: str
    tests: tuple[str, ...] = ()
    equivalent: str = ""

    def __str__(self) -> str:
        return f"{self.function}: {self.old}  ->  {self.new}"


@dataclass(frozen=True)
class Place:
    """A line of a file of the package, counted from 0."""

    path: Path
    line: int


def mutations(path: Path = LIST) -> list[Mutation]:
    """Read the list."""
    rows = tomllib.loads(path.read_text())["mutation"]
    return [Mutation(**{**row, "tests": tuple(row.get("tests", "").split())}) for row in rows]


def named_parts(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.stmt]]:
    """Yield functions, methods, classes and assignments by their qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield prefix + node.name, node
            yield from named_parts(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield prefix + node.targets[0].id, node


@cache
def parts_of(path: Path) -> tuple[list[str], list[tuple[str, int, int]]]:
    """Return the lines of a file, and the parts it names: name, first line, line after the last."""
    text = path.read_text()
    found = [(name, node.lineno - 1, node.end_lineno or node.lineno) for name, node in named_parts(ast.parse(text))]
    return text.splitlines(keepends=True), found


def places_of(mutation: Mutation) -> list[Place]:
    """Return where its line stands: one place, if the list is up to date."""
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        lines, parts = parts_of(path)
        for name, first, end in parts:
            if name == mutation.function:
                found |= {Place(path, i) for i in range(first, end) if lines[i].strip() == mutation.old}
    return sorted(found, key=lambda place: (place.path, place.line))


def mutate(mutation: Mutation, place: Place, package: Path) -> None:
    """Replace the line in a copy of the package."""
    path = package / place.path.relative_to(PACKAGE)
    lines = path.read_text().splitlines(keepends=True)
    lines[place.line] = lines[place.line].replace(mutation.old, mutation.new)
    path.write_text("".join(lines))


def run_tests(tests: Sequence[str], mutation: Mutation | None = None) -> tuple[int, str]:
    """Run tests on a copy of the package, mutated or not; return what pytest returns, and what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "src", PACKAGE.name)
        shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        changed = {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        if mutation is not None:
            mutate(mutation, places_of(mutation)[0], package)
            changed["BOTHWORLDS_CACHE_DIR"] = str(Path(folder, "cache"))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **changed}, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


def verdict(mutation: Mutation) -> str:
    """Return found wanting, or not: caught, survived, equivalent, not found, or tests that cannot run."""
    if len(places_of(mutation)) != 1:
        return f"not found ({len(places_of(mutation))} places)"
    if mutation.equivalent:
        return "equivalent"
    code, _ = run_tests(mutation.tests, mutation)
    return {FAILED: "caught", PASSED: "SURVIVED"}.get(code, f"tests cannot run ({code})")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="WORD", help="those whose function, text or tests contain it")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time [1]")
    parser.add_argument("--list", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    chosen = [one for one in mutations() if not options.only or options.only in f"{one} {' '.join(one.tests)}"]
    if not chosen:
        parser.error(f"no mutation's function, text or tests contain {options.only!r}; --list has them all")
    if options.list:
        for one in chosen:
            where = " and ".join(f"{place.path.relative_to(ROOT)}:{place.line + 1}" for place in places_of(one))
            print(f"{one}\n    {where or 'NOT FOUND'}; {one.equivalent or ' '.join(one.tests)}")
        return 0
    began = time.monotonic()
    counts: dict[str, int] = {}
    code, printed = run_tests(sorted({test for one in chosen for test in one.tests}))
    if code != PASSED:
        print(f"{printed}\nthese tests fail without any mutation")
        return 1
    with ThreadPoolExecutor(options.jobs) as pool:
        for one, found in zip(chosen, pool.map(verdict, chosen), strict=True):
            print(f"{found:12s} {one}", flush=True)
            counts[found] = counts.get(found, 0) + 1
    print(f"{len(chosen)} mutations in {(time.monotonic() - began) / 60:.0f} minutes: {counts}")
    return 0 if set(counts) <= {"caught", "equivalent"} else 1


if __name__ == "__main__":
    sys.exit(main())
