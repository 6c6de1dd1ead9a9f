"""Shared by the commands: exit codes, error messages, options, output."""

import contextlib
import itertools
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import click

from bothworlds.errors import MissingDeviceError, MissingPackageError, NumericalError, StudyError, not_installed
from bothworlds.serialization import to_json

FAILED, USAGE, BAD_INPUT, INTERRUPTED = 1, 2, 3, 130
MIN_WIDTH = 30
LONG = 10.0  # seconds
SERVICE_PACKAGES = ("granian", "msgspec", "prometheus_client")


class Integer(click.IntRange):
    """An integer, also written as 1e6 or 1_000_000."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert the text; click refuses anything but integers."""
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            value = int(float(value)) if float(value).is_integer() and "e" in str(value).lower() else value
        return super().convert(value, param, ctx)


class FiniteFloat(click.FloatRange):
    """A finite number, optionally within limits; inf and nan are refused."""

    name = "float"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert the text; refuse numbers that are not finite."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number

    def _describe_range(self) -> str:
        return "" if self.min is None and self.max is None else super()._describe_range()


class PathType(click.Path):
    """The path of a file or a folder; an empty name, for example from an unset shell variable, is refused."""

    def __init__(self, *, file_okay: bool = True, dir_okay: bool = True) -> None:
        super().__init__(file_okay=file_okay, dir_okay=dir_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert the text; refuse an empty name."""
        if value == "":
            self.fail("the name is empty; the current folder is '.'", param, ctx)
        return super().convert(value, param, ctx)


class StoreType(PathType):
    """The path of a store, or of a log; or the DSN of a database, which stays a text."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert the text."""
        from bothworlds.service.dsn import is_dsn

        return value if is_dsn(str(value)) else super().convert(value, param, ctx)


POSITIVE = Integer(min=1)
FINITE = FiniteFloat()
LEVEL = FiniteFloat(0, 1, min_open=True, max_open=True)
folder_argument = click.argument("folder", type=PathType())
threads_option = click.option("--threads", type=POSITIVE, help="Threads to use [all cores].")
device_option = click.option(
    "--device",
    type=click.Choice(["cpu", "gpu", "auto"]),
    default="cpu",
    show_default=True,
    help="Where to simulate; auto uses a GPU if there is one and the work is large enough.",
)
quiet_option = click.option("--quiet", is_flag=True, help="Do not show progress.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def exit_with(message: str, code: int) -> NoReturn:
    """Print a message on stderr and exit with a code."""
    print_message(message)
    sys.exit(code)


def print_message(message: str) -> None:
    """Print a message on stderr."""
    click.echo(message, err=True)


def print_json(data: Any) -> None:
    """Print data as JSON on stdout, with null for numbers that are not finite."""
    text = to_json(data, indent=1, ensure_ascii=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = to_json(data, indent=1)
    click.echo(text)


def error_message(error: BaseException) -> str:
    """Return the message of an error; for errors of the operating system, file and reason without the error number."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"not enough memory{f': {error}' if str(error) else ''}"
    return str(error)


@contextlib.contextmanager
def exit_on_bad_input() -> Iterator[None]:
    """Exit with code 3 on errors of an input file, and with 1 if a package is missing."""
    try:
        yield
    except BrokenPipeError:  # the reader of stdout is gone
        raise
    except MissingPackageError as error:  # the file may be good
        exit_with(str(error), FAILED)
    except (ValueError, OSError) as error:
        exit_with(error_message(error), BAD_INPUT)


@contextlib.contextmanager
def exit_on_failure(interrupted: Callable[[], str] = lambda: "interrupted") -> Iterator[None]:
    """Exit with code 1 on failures, 3 on bad input that appears only during the work, 130 on Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        exit_with(interrupted(), INTERRUPTED)
    except BrokenPipeError:
        raise
    except (MissingPackageError, MissingDeviceError) as error:  # the input is good; this machine lacks something
        exit_with(str(error), FAILED)
    except (ValueError, FileNotFoundError) as error:
        exit_with(error_message(error), BAD_INPUT)
    except (NumericalError, StudyError, OSError, MemoryError) as error:
        exit_with(error_message(error), FAILED)


def progress_bar(things: Any = None, *, quiet: bool, **options: Any) -> Any:
    """Return a progress bar on stderr; hidden if quiet or without stderr."""
    return click.progressbar(things, file=sys.stderr, hidden=quiet or sys.stderr is None, **options)


@contextlib.contextmanager
def report_time() -> Iterator[None]:
    """Print how long the block ran, if it was long, and how much of that was compilation."""
    from bothworlds.kernels.jit.compile_notice import seconds_compiling  # imports numba: too slow for --help

    started, before = time.monotonic(), seconds_compiling()
    yield
    seconds, compiling = time.monotonic() - started, seconds_compiling() - before
    if seconds >= LONG:
        once = f", {compiling:.0f} s of it for compilation, needed once on this machine" if compiling >= 1.0 else ""
        print_message(f"took {seconds:.0f} s{once}")


@contextlib.contextmanager
def require_service_packages() -> Iterator[None]:
    """Exit with the packages to install if those of the decision service are missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in SERVICE_PACKAGES:
            raise
        exit_with(not_installed("the decision service needs", package, "serve"), FAILED)


def bold(text: str) -> str:
    """Return a text in bold on a terminal, unless NO_COLOR is set."""
    plain = bool(os.environ.get("NO_COLOR")) or sys.stdout is None or not sys.stdout.isatty()
    return text if plain else click.style(text, bold=True)


def width() -> int:
    """Return the width of the terminal in characters; 120 without a terminal."""
    return max(MIN_WIDTH, shutil.get_terminal_size((120, 40)).columns)


def unused_folder(first: Path, fits: Callable[[Path], bool]) -> Path:
    """Return the first folder that fits of results, results-2, results-3, ...; print a message if it is a later one."""
    numbered = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
    folder = next(path for path in itertools.chain([first], numbered) if not path.is_file() and fits(path))
    if folder != first:
        print_message(f"{first} has other results; using {folder}")
    return folder


def split_names(_: click.Context, __: click.Parameter, value: str | None) -> list[str] | None:
    """Split a list of names at its commas; refuse an empty list."""
    if value is None:
        return None
    names = [name.strip() for name in value.split(",") if name.strip()]
    if not names:
        raise click.BadParameter(f"{value!r} has no names; leave the option out for all")
    return names
