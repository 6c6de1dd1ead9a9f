"""Problems as files: JSON for people, npz for speed. Never pickle."""

import io
import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = "bothworlds-problem-1"


def read_arrays(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (header, arrays) of one of our npz files; damaged or foreign files are refused in a sentence."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(str(arrays.pop("header")))
    except FileNotFoundError:
        raise FileNotFoundError(f"no such file: {path}") from None
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder, not a file") from None
    except (OSError, ValueError, KeyError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        # numpy advises to load what it does not know as a pickle, which runs code: no advice to pass on
        reason = "" if "pickle" in str(error) else f": {error}"
        raise ValueError(f"{path} is not a file written by this library, or it is damaged{reason}") from None
    return header, arrays


def write_arrays(path: str | Path, header: dict[str, Any], arrays: dict[str, Any], *, compress: bool = True) -> None:
    """Write header and arrays as an npz file, whole or not at all."""
    buffer = io.BytesIO()
    write = np.savez_compressed if compress else np.savez
    write(buffer, header=np.array(json.dumps(header)), **arrays)
    write_bytes(path, buffer.getvalue())


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file so that a reader sees the old content or the new one, never a part."""
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        partial.write_bytes(content)
        partial.replace(target)
    except OSError as error:
        raise type(error)(f"cannot write {target}: {error.strerror or error}") from None
    finally:
        partial.unlink(missing_ok=True)


def read_json(path: str | Path) -> dict[str, Any]:
    """Return the object in a JSON file; anything else is refused in a sentence."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"no such file: {path}") from None
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder, not a file") from None
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}, not a problem")
    return content


def checked_format(header: dict[str, Any], expected: str, path: str | Path) -> dict[str, Any]:
    """Return the header without its format mark; refuse another kind of file."""
    found = header.get("format")
    if found != expected:
        raise ValueError(f"{path} has format {found!r}; expected {expected!r}")
    return {key: value for key, value in header.items() if key != "format"}
