"""What the commands share: exit codes, errors as sentences, options, output."""

import contextlib
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
from bothworlds.plain import to_json

FAILED, USAGE, BAD_INPUT, INTERRUPTED = 1, 2, 3, 130
NARROWEST = 30
LONG = 10.0  # seconds
SERVING = ("granian", "msgspec", "prometheus_client")


class Whole(click.IntRange):
    """A whole number, also written as 1e6 or 1_000_000."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the number; what is not whole is left to click to refuse."""
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            value = int(float(value)) if float(value).is_integer() and "e" in str(value).lower() else value
        return super().convert(value, param, ctx)


class Number(click.FloatRange):
    """A finite number within some limits, if there are any; inf and nan are refused."""

    name = "float"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the number; what is not finite is within no limits."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return found

    def _describe_range(self) -> str:
        return "" if self.min is None and self.max is None else super()._describe_range()


class Place(click.Path):
    """A file or a folder; no name at all, as of a variable that is not set, is not the present folder."""

    def __init__(self, *, file_okay: bool = True, dir_okay: bool = True) -> None:
        super().__init__(file_okay=file_okay, dir_okay=dir_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the path."""
        if value == "":
            self.fail("there is no name; the present folder is called '.'", param, ctx)
        return super().convert(value, param, ctx)


WHOLE = Whole(min=1)
NUMBER = Number()
LEVEL = Number(0, 1, min_open=True, max_open=True)
folder_argument = click.argument("folder", type=Place())
threads_option = click.option("--threads", type=WHOLE, help="Threads to use [default: all cores].")
device_option = click.option(
    "--device",
    type=click.Choice(["cpu", "gpu", "auto"]),
    default="cpu",
    show_default=True,
    help="Where to play; auto: on a GPU if there is one and the work is worth it.",
)
quiet_option = click.option("--quiet", is_flag=True, help="Show no progress.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def leave(message: str, code: int) -> NoReturn:
    """Say what is wrong on stderr and exit."""
    talk(message)
    sys.exit(code)


def talk(message: str) -> None:
    """Say something to a person: on stderr."""
    click.echo(message, err=True)


def answer(data: Any) -> None:
    """Print data for a machine: JSON on stdout, with null for numbers that are not finite."""
    text = to_json(data, indent=1, ensure_ascii=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = to_json(data, indent=1)
    click.echo(text)


def sentence_of(error: BaseException) -> str:
    """Say what went wrong; what the operating system refuses is told with the file, without a number."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"there is not enough memory for this{f': {error}' if str(error) else ''}"
    return str(error)


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Turn what is wrong with an input file into exit code 3."""
    try:
        yield
    except BrokenPipeError:  # of who reads what we say
        raise
    except MissingPackageError as error:  # the file is as good as it was
        leave(str(error), FAILED)
    except (ValueError, OSError) as error:
        leave(sentence_of(error), BAD_INPUT)


@contextlib.contextmanager
def working(interrupted: Callable[[], str] = lambda: "interrupted") -> Iterator[None]:
    """Turn failures of the work into exit codes: 1, 3 for what only the work finds out, 130 for Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        leave(interrupted(), INTERRUPTED)
    except BrokenPipeError:
        raise
    except (MissingPackageError, MissingDeviceError) as error:  # what was given is good, elsewhere
        leave(str(error), FAILED)
    except (ValueError, FileNotFoundError) as error:
        leave(sentence_of(error), BAD_INPUT)
    except (NumericalError, StudyError, OSError, MemoryError) as error:
        leave(sentence_of(error), FAILED)


def bar(things: Any = None, *, quiet: bool, **options: Any) -> Any:
    """Return a bar on stderr, which is not seen if quiet or where there is no stderr."""
    return click.progressbar(things, file=sys.stderr, hidden=quiet or sys.stderr is None, **options)


@contextlib.contextmanager
def accounted() -> Iterator[None]:
    """Say what work has cost that took long, and how much of that the compiler."""
    from bothworlds.kernels.jit.telling import seconds_compiling  # numba: not for those who only ask for help

    began, before = time.monotonic(), seconds_compiling()
    yield
    seconds, compiling = time.monotonic() - began, seconds_compiling() - before
    if seconds >= LONG:
        once = f", {compiling:.0f} of them compiling, once for this machine" if compiling >= 1.0 else ""
        talk(f"took {seconds:.0f} s{once}")


@contextlib.contextmanager
def serving() -> Iterator[None]:
    """Say what to install where the packages of the decision service are missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in SERVING:
            raise
        leave(not_installed("the decision service needs", package, "serve"), FAILED)


def strong(text: str) -> str:
    """Return a text in bold on a terminal, unless NO_COLOR is set."""
    plain = bool(os.environ.get("NO_COLOR")) or sys.stdout is None or not sys.stdout.isatty()
    return text if plain else click.style(text, bold=True)


def width() -> int:
    """Return how many characters fit on a line of the terminal; 120 where there is none."""
    return max(NARROWEST, shutil.get_terminal_size((120, 40)).columns)


def names(_: click.Context, __: click.Parameter, value: str | None) -> list[str] | None:
    """Split a list of names at its commas; one without a name is refused."""
    if value is None:
        return None
    found = [name.strip() for name in value.split(",") if name.strip()]
    if not found:
        raise click.BadParameter(f"{value!r} names nothing; leave it out for all")
    return found
