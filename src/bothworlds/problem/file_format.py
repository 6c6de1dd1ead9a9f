"""File formats of the library: kinds, atomic writing, and reading. JSON is readable, npz is fast; never pickle."""

import contextlib
import io
import json
import secrets
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

PROBLEM, POLICY, SAMPLED_POLICY = "bothworlds-problem-1", "bothworlds-policy-1", "bothworlds-sampled-policy-1"
OPEN_POLICY, OPEN_PLAN = "bothworlds-open-policy-1", "bothworlds-open-plan-1"
PLAN, RESULTS, UNFINISHED = "bothworlds-plan-1", "bothworlds-results-1", "bothworlds-unfinished-1"
DESCRIPTIONS = {  # content of a file, for messages when it is read as another kind
    PROBLEM: "a problem: read it with Problem.load",
    POLICY: "a policy: read it with bothworlds.load",
    SAMPLED_POLICY: "a policy on a SampledProblem: read it with bothworlds.load(path, problem=...)",
    PLAN: "a plan: read it with bothworlds.load_plan",
    OPEN_POLICY: "a policy on an OpenProblem: read it with bothworlds.load",
    OPEN_PLAN: "a plan for an OpenProblem: read it with bothworlds.load_plan",
    RESULTS: "results: read them with bothworlds.load_results",
    UNFINISHED: "an unfinished run: repeat the command that started it to continue it",
}

DATABASE = b"SQLite format 3"
UNREADABLE = (OSError, ValueError, KeyError, TypeError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error)


def read_arrays(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (header, arrays) of an npz file of this library; raise ValueError for damaged and other files.

    A JSON file of this library gives its header and no arrays.
    """
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(str(arrays.pop("header")))
        if not isinstance(header, dict):
            raise ValueError(f"its header is {header!r:.40}")
    except FileNotFoundError:
        raise FileNotFoundError(f"no such file: {path}") from None
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder, not a file") from None
    except UNREADABLE as error:
        if header := _json_header(path):
            return header, {}
        # NumPy's message suggests allow_pickle=True, which runs code from the file: do not pass it on
        reason = "" if "pickle" in str(error) else f": {error}"
        reason += (
            ". It is a database: the store of a service is read by `bothworlds service export`"
            if _is_database(path)
            else ""
        )
        raise ValueError(f"{path} is not a file written by this library, or it is damaged{reason}") from None
    return header, arrays


@contextlib.contextmanager
def undamaged(path: str | Path) -> Iterator[None]:
    """Turn errors from missing or invalid parts of a file into a ValueError that names the file."""
    try:
        yield
    except ValueError:
        raise
    except KeyError as error:
        raise ValueError(f"{path} is incomplete: {error} is missing") from error
    except (AttributeError, IndexError, OverflowError, TypeError) as error:
        raise ValueError(f"{path} is damaged, or was not written by this library: {error}") from error


def _json_header(path: str | Path) -> dict[str, Any] | None:
    """Return the content of a JSON file of this library; None for other files."""
    try:
        content = read_json(path)
    except (OSError, ValueError):
        return None
    return content if content.get("format") in DESCRIPTIONS else None


def _is_database(path: str | Path) -> bool:
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read(len(DATABASE)) == DATABASE
    return False


def check_npz(path: str | Path, word: str) -> None:
    """Raise ValueError unless the path ends in .npz."""
    if Path(path).suffix != ".npz":
        raise ValueError(f"{path}: {word} is saved as .npz")


def write_arrays(path: str | Path, header: dict[str, Any], arrays: dict[str, Any], *, compress: bool = True) -> None:
    """Write header and arrays as an npz file, atomically."""
    buffer = io.BytesIO()
    write = np.savez_compressed if compress else np.savez
    write(buffer, header=np.array(json.dumps(header)), **arrays)
    write_bytes(path, buffer.getvalue())


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file atomically: readers see the old content or the new content."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        partial.write_bytes(content)
        partial.replace(target)
    except OSError as error:
        raise type(error)(f"cannot write {target}: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):  # cleaning up must not hide the first error
            partial.unlink(missing_ok=True)


def read_text(path: str | Path, word: str) -> str:
    """Return the text of a file; FileNotFoundError if it does not exist, ValueError if it is a folder.

    ``word`` names the expected kind of file in messages.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(f"no such file: {path}") from None
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder, not {word}") from None


def read_json(path: str | Path) -> dict[str, Any]:
    """Return the object in a JSON file; raise ValueError if it is not valid JSON or not an object."""
    try:
        content = json.loads(read_text(path, "a file"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}, not a problem")
    return content


def migration(actual: object, expected: str) -> str:
    """Return advice for a file in another version of the expected format; empty for other formats.

    >>> migration("bothworlds-log-2", "bothworlds-log-1")
    ': it was written by a newer bothworlds, which this one cannot read; install that version'
    """
    name, _, known = expected.rpartition("-")
    given, _, version = str(actual).rpartition("-")
    if given != name or not version.isdecimal():
        return ""
    if int(version) > int(known):
        return ": it was written by a newer bothworlds, which this one cannot read; install that version"
    return ": it was written by an older bothworlds; the changelog says which one reads it and how to bring it over"


def checked_format(header: dict[str, Any], expected: str, path: str | Path) -> dict[str, Any]:
    """Return the header without its format; raise ValueError for another kind of file or another version."""
    actual = header.get("format")
    if actual != expected and actual in DESCRIPTIONS:
        raise ValueError(f"{path} holds {DESCRIPTIONS[actual]}")
    if actual != expected:
        raise ValueError(f"{path} has format {actual!r}; expected {expected!r}{migration(actual, expected)}")
    return {key: value for key, value in header.items() if key != "format"}
