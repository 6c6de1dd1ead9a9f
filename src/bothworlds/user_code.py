"""Algorithms and environments of the user, given as a kind ``FILE.py:NAME`` or ``MODULE:NAME``.

Results depend on the content of the file and of the files that it imports from its folder, not on where they are. So
cells are identified by a hash of the content, results store the hash, and a folder of results has a copy of the files.
A study reads its files once: edits while it runs do not affect its cells.
"""

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from bothworlds.errors import UserCodeError
from bothworlds.problem.file_format import write_bytes
from bothworlds.user_errors import place_of
from bothworlds.user_imports import Contents, importable, imported_files

FileHashes: TypeAlias = Mapping[str, str]  # hashes of files when a study was read, by path
NOW: FileHashes = {}  # no stored hashes: hash the files as they are now
FOLDER = "own"  # subfolder of a folder of results, with copies of the files


def is_user_kind(kind: Any) -> bool:
    """Return whether a kind names code of the user.

    >>> is_user_kind("mine.py:Greedy"), is_user_kind("LinUCB")
    (True, False)
    """
    return isinstance(kind, str) and ":" in kind


def file_of(kind: Any) -> Path | None:
    """Return the file that a kind names; None if it names a module or a kind of the library."""
    place = str(kind).rpartition(":")[0] if is_user_kind(kind) else ""
    return Path(place) if place.endswith(".py") else None


def find_file(kind: Any, folder: str | Path | None) -> Any:
    """Return a kind with the path of its file: as given if the file exists, else inside the folder if it is there."""
    path = file_of(kind)
    if path is None or path.is_file() or folder is None or not (Path(folder) / path).is_file():
        return kind
    return f"{Path(folder) / path}:{str(kind).rpartition(':')[2]}"


def file_hashes(tables: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the hashes of the files that tables of options name, by path; each file is read once."""
    paths = [path for table in tables if (path := file_of(table.get("kind"))) is not None]
    return {str(path): hash_of(path) for path in dict.fromkeys(paths)}


def hash_of(path: str | Path, hashes: FileHashes = NOW) -> str:
    """Return the hash of a file and its imports from the folder: the stored one, or computed from the files."""
    return hashes.get(str(path)) or _hash(*_content(Path(path)))


def read_with_hash(path: str | Path, expected: str) -> tuple[bytes, Contents]:
    """Return the content of a file and of its imports from the folder; refuse files whose hash has changed."""
    content, others = _content(Path(path))
    if _hash(content, others) != expected:
        raise ValueError(
            f"{path} was edited after the study was read: its hash was {expected}, and is {_hash(content, others)}. "
            "Run the same command again: changed cells are recomputed"
        )
    return content, others


def _hash(content: bytes, others: Contents) -> str:
    """Return a hash of file contents, with the number of other files appended if there are any."""
    digest = hashlib.blake2b(content, digest_size=10)
    for place, text in others.items():
        digest.update(f"\n# {place} {len(text)}\n".encode() + text)
    return digest.hexdigest() + (f"+{len(others)}" if others else "")


def _content(path: Path) -> tuple[bytes, Contents]:
    try:
        content = path.read_bytes()
        return content, imported_files(path, content)
    except OSError as error:
        raise ValueError(f"{error.filename or path} cannot be read: {error.strerror or error}") from None


def with_hashed_file(options: dict[str, Any], hashes: FileHashes = NOW) -> dict[str, Any]:
    """Return options with the path of a user's file replaced by its hash, which is what results depend on."""
    path = file_of(options.get("kind"))
    if path is None:
        return options
    return {**options, "kind": f"{hash_of(path, hashes)}:{str(options['kind']).rpartition(':')[2]}"}


def with_copied_file(options: dict[str, Any], hashes: FileHashes = NOW) -> dict[str, Any]:
    """Return options with the path of a user's file replaced by that of its copy in a folder of results."""
    path = file_of(options.get("kind"))
    if path is None:
        return options
    return {**options, "kind": f"{copy_of(path, hashes)}:{options['kind'].rpartition(':')[2]}"}


def copy_of(path: Path, hashes: FileHashes = NOW) -> str:
    """Return the path of the copy of a file, with part of its hash; a file with imports gets a folder."""
    full_hash = hash_of(path, hashes)
    short_hash = full_hash[:8]
    if "+" in full_hash:
        return f"{FOLDER}/{path.stem}-{short_hash}/{path.name}"
    return f"{FOLDER}/{path.stem.removesuffix(f'-{short_hash}')}-{short_hash}.py"


def keep_copy(path: Path, output: Path, hashes: FileHashes = NOW) -> None:
    """Copy a file and its imports from the folder into a folder of results, unless the copy exists."""
    if not (copy := output / copy_of(path, hashes)).exists():
        content, others = read_with_hash(path, hash_of(path, hashes))
        for place, text in [*others.items(), (copy.name, content)]:  # the file itself last: it marks a complete copy
            (copy.parent / place).parent.mkdir(parents=True, exist_ok=True)
            write_bytes(copy.parent / place, text)


def load_object(kind: str, hashes: FileHashes = NOW) -> Any:
    """Import the object that a kind names; raise ValueError if it cannot be imported."""
    place, _, name = kind.rpartition(":")
    path = file_of(kind)
    try:
        module = _import_module(place) if path is None else _import_file(path, hash_of(path, hashes))
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(f"{place} cannot be imported: {_describe_error(error)}") from None
    if not hasattr(module, name):
        public = [word for word in vars(module) if not word.startswith("_")]
        near = get_close_matches(name, public, n=1, cutoff=0.5)
        raise ValueError(f"{place} has no {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    return getattr(module, name)


def _import_module(place: str) -> ModuleType:
    """Import a module by name, also from the current folder."""
    sys.path.insert(0, "")
    try:
        return importlib.import_module(place)
    finally:
        sys.path.remove("")


@cache  # cells of a study share the imported module and its compiled functions
def _import_file(path: Path, expected_hash: str) -> ModuleType:
    """Import a file as a module with a unique name; it can import other files of its folder."""
    text, others = read_with_hash(path, expected_hash)
    name = f"{path.stem.replace('-', '_')}_{expected_hash[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise ImportError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module
    try:
        with importable(path.parent, others):
            # Not by the loader, which reuses bytecode of an edited file that has the same size and modification second.
            exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def make_object(kind: str, options: dict[str, Any], hashes: FileHashes = NOW) -> Any:
    """Return the object that a kind names, or the result of calling it with the options if it is callable."""
    target = load_object(kind, hashes)
    if not callable(target) and options:
        raise ValueError(f"{kind} is an object, which takes no options; got {', '.join(options)}")
    return _call(kind, target, **options) if callable(target) else target


def _call(kind: str, maker: Callable[..., Any], **options: Any) -> Any:
    """Call a class or function of the user; name the kind in errors."""
    try:
        return maker(**options)
    except (TypeError, ValueError) as error:  # refused options
        raise ValueError(f"{kind}: {_describe_error(error)}") from None
    except Exception as error:
        raise UserCodeError(place_of(error) or kind, f"{type(error).__name__}: {error}") from error


def _describe_error(error: Exception) -> str:
    """Return place, if known, type and message of an error in a user's code."""
    place = place_of(error)
    return f"{place + ': ' if place else ''}{type(error).__name__}: {error}"


def hashes_by_name(*kinds: Any, hashes: FileHashes = NOW) -> dict[str, str]:
    """Return the hashes of the files among some kinds, by file name, as results store them."""
    paths = [path for kind in kinds if (path := file_of(kind)) is not None]
    return {path.name: hash_of(path, hashes) for path in paths}
