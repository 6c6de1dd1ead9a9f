"""One text, several speeds: mark kernel text, compile it, and keep the machine code on disk.

Numba's own disk cache looks at the file of the *calling* function only, so an edited callee would go
unnoticed. The cache folder is therefore named after a hash of every source file of the rooms in which kernel text, or a
number it uses, can stand, with a folder inside it for every piece of a user's own text.
"""

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numba
import numba.core.config
import numpy as np
from numba import types
from numba.core.errors import NumbaError
from numba.extending import overload, register_jitable

from bothworlds.kernels.jit import views as views  # memory as packs, to the compiler
from bothworlds.kernels.jit import wide as wide  # numbers of eight, to the compiler
from bothworlds.kernels.jit.fingerprint import foreign_hash, identity
from bothworlds.kernels.jit.lean import Kind
from bothworlds.kernels.jit.packs import CONTEXTS
from bothworlds.kernels.jit.telling import tell_of

F = TypeVar("F", bound=Callable[..., Any])
KEPT_CACHES = 4
CACHE_NAME = "bothworlds-"
ROOMS = ("algorithms", "environments", "kernels", "simulation", "theory")  # kernel text stands nowhere else


def kernel(function: F) -> F:
    """Mark a function as kernel text: callable from Python as it stands, and from compiled code.

    Kernel text allocates nothing, raises nothing and prints nothing; it uses ``math`` and written-out
    products only, so that interpreted and compiled results agree bit for bit. Calls between pieces of kernel text are
    always inlined: handing over a named tuple of arrays would take longer than most pieces run.

    >>> @kernel
    ... def double(x):
    ...     return 2.0 * x
    >>> double(1.5)
    3.0
    """
    marked: F = register_jitable(forceinline=True)(function)
    return marked


def on_gpu(plain: Callable[..., Any]) -> Callable[[F], F]:
    """Mark kernel text that a GPU runs instead of some other: the same sums in an order that suits it."""

    def mark(function: F) -> F:
        @overload(plain, target="cuda", jit_options={"forceinline": True}, strict=False)
        def choose(*args: Any) -> F:
            return function

        return kernel(function)

    return mark


def on_contexts(plain: F, ours: F) -> F:
    """Return a function that runs one text on floats and lanes, and another one on packs of eight contexts."""

    def either(*args: Any) -> Any:
        tables = [arg for arg in args if isinstance(arg, np.ndarray)]
        return (ours if any(table.ndim > 2 for table in tables) else plain)(*args)

    @overload(either, jit_options={"forceinline": True}, strict=False)
    def choose(*args: Any) -> F:
        return ours if any(isinstance(arg, types.Array) and arg.dtype == CONTEXTS for arg in args) else plain

    found: Any = either
    return found  # type: ignore[no-any-return]


def compiled(function: F, kind: Kind = "call") -> F:
    """Compile kernel text for the CPU on first use, saying so if it takes long; later processes load it from disk.

    Division follows the hardware (no exception), the interpreter lock is released, and floating-point
    operations are never reordered (no ``fastmath``). Kernel text allocates nothing, so reference counting is
    switched off: counting the arrays of a named tuple would double the time of a small round.
    """
    with _cache_folder(_folder_for(function)) as on_disk:
        options: dict[str, Any] = {"cache": on_disk, "error_model": "numpy", "nogil": True, "_nrt": False}
        made: F = numba.njit(function, **options)
    if on_disk:
        _know_by_folder(made)
    tell_of(made, kind)
    return made


def _know_by_folder(dispatcher: Any) -> None:
    """Let the cache tell code apart by signature and machine alone: its folder stands for all the text.

    Numba would also hash the closure, and that changes with whether Python has read a module from source or from
    bytecode, so that everything would be compiled twice.
    """
    dispatcher._cache._index_key = lambda signature, codegen: (signature, codegen.magic_tuple())


@contextlib.contextmanager
def explained(*, packs: bool) -> Iterator[None]:
    """Say in a sentence why kernel text cannot be compiled, instead of pages; ``packs``: it works on many at once."""
    try:
        yield
    except NumbaError as error:
        raise TypeError(in_words(str(error), packs=packs)) from None


def in_words(message: str, *, packs: bool) -> str:
    """Return what a compiler's message says of an author's text: where, what, and what to do.

    >>> in_words('Cannot unify float64 and Pack(lanes, 16) File "mine.py", line 12:', packs=True)[:71]
    'kernel text cannot be compiled: mine.py, line 12: Cannot unify float64 '
    """
    places = re.findall(r'File "([^"]+)", line (\d+)', message)
    own = [f"{Path(file).name}, line {line}: " for file, line in places if f"{os.sep}bothworlds{os.sep}" not in file]
    said = re.findall(
        r"(?:No implementation of function|Cannot|Invalid|Unknown|Untyped)[^\n]*(?:\n\s*>>>[^\n]*)?", message
    )
    reason = re.sub(r"\s+", " ", said[-1] if said else message[:200])
    advice = (
        "The text is declared to work on many numbers at once: choose with `where` instead of `if`, and stop loops "
        "with `every`; or leave `wide` and `together` out, and replications play one by one"
        if packs
        else "Kernel text knows numbers, arrays and records only"
    )
    return f"kernel text cannot be compiled: {own[-1] if own else ''}{reason}. {advice}"


def source_hash(package: Path | None = None) -> str:
    """Return a short hash over the Python files of the package's rooms with kernel text: names and contents."""
    root = Path(__file__).parents[2] if package is None else package
    digest = hashlib.blake2b(digest_size=10)
    for path in sorted(path for room in ROOMS for path in (root / room).rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


@lru_cache(maxsize=1)
def cache_folder() -> Path | None:
    """Return the folder for compiled code, or None where no folder can be written.

    ``BOTHWORLDS_CACHE_DIR`` chooses the place; the default is the user's cache folder.
    """
    chosen = os.environ.get("BOTHWORLDS_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    base = Path(chosen) if chosen else Path(home) / "bothworlds"
    folder = base / f"{CACHE_NAME}{source_hash()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.touch()
        if not os.access(folder, os.W_OK):
            return None
        _drop_old_caches(base, keep=folder)
    except OSError:
        return None
    return folder


def _folder_for(function: Callable[..., Any]) -> Path | None:
    """Return the folder for the machine code of a function and what it encloses.

    Numba keeps one index for all functions of a name, and two processes that write to it at once can file the code of
    one under the key of the other. Each function with its own enclosed text has a folder of its own, so that whoever
    writes to it writes the same.
    """
    folder = cache_folder()
    if folder is None:
        return None
    foreign = foreign_hash(function)
    return folder / (f"{identity(function)}-{foreign}" if foreign else identity(function))


def is_kept(function: Callable[..., Any]) -> bool:
    """Tell whether machine code for a function is on disk."""
    folder = _folder_for(function)
    return folder is not None and any(folder.rglob("*.nbi"))


def _drop_old_caches(base: Path, keep: Path) -> None:
    """Remove all but the most recently used caches, so that upgrades do not pile up."""
    ours = re.compile(re.escape(CACHE_NAME) + "[0-9a-f]{20}")
    others = [p for p in base.iterdir() if p.is_dir() and p != keep and ours.fullmatch(p.name)]
    others.sort(key=lambda p: p.stat().st_mtime, reverse=True)
    for path in others[KEPT_CACHES - 1 :]:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _cache_folder(folder: Path | None) -> Iterator[bool]:
    """Point numba's cache at a folder while a function is being wrapped; the setting of others stays."""
    settings: Any = numba.core.config
    before = settings.CACHE_DIR
    if folder is not None:
        settings.CACHE_DIR = str(folder)
    try:
        yield folder is not None
    finally:
        settings.CACHE_DIR = before
