"""Mark functions as kernel code, compile them, and cache the machine code on disk.

Numba's own disk cache checks the file of the *calling* function only, so it would miss an edited callee. The name of
the cache folder therefore contains a hash of all source files of `KERNEL_FOLDERS`, and each function has a folder
inside it, named by a hash that covers code from outside the package.
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

from bothworlds.kernels.jit import simd_memory as simd_memory  # registers views of memory as packs
from bothworlds.kernels.jit import simd_ops as simd_ops  # registers operators of packs
from bothworlds.kernels.jit.compile_notice import attach_notice
from bothworlds.kernels.jit.numba_patches import Kind
from bothworlds.kernels.jit.simd_types import CONTEXTS
from bothworlds.kernels.jit.source_hash import foreign_hash, name_hash

F = TypeVar("F", bound=Callable[..., Any])
KEPT_CACHES = 4
CACHE_NAME = "bothworlds-"
KERNEL_FOLDERS = (
    "algorithms",
    "environments",
    "kernels",
    "open_contexts",
    "sampled",
    "simulation",
    "theory",
)  # with kernel code


def kernel(function: F) -> F:
    """Mark a function as kernel code, which runs interpreted or is called from compiled code.

    Kernel code allocates nothing, raises nothing and prints nothing. It uses ``math`` and explicit loops only, so that
    interpreted and compiled results agree bit for bit. Calls between kernel functions are always inlined: passing a
    named tuple of arrays would take longer than most of them run.

    >>> @kernel
    ... def double(x):
    ...     return 2.0 * x
    >>> double(1.5)
    3.0
    """
    marked: F = register_jitable(forceinline=True)(function)
    return marked


def on_gpu(plain: Callable[..., Any]) -> Callable[[F], F]:
    """Mark a kernel function that replaces ``plain`` on a GPU: the same sums in an order that suits it."""

    def mark(function: F) -> F:
        @overload(plain, target="cuda", jit_options={"forceinline": True}, strict=False)
        def choose(*args: Any) -> F:
            return function

        return kernel(function)

    return mark


def on_contexts(plain: F, blocked: F) -> F:
    """Return a function that runs ``plain`` on floats and lanes, and ``blocked`` on packs of eight contexts."""

    def either(*args: Any) -> Any:
        tables = [arg for arg in args if isinstance(arg, np.ndarray)]
        return (blocked if any(table.ndim > 2 for table in tables) else plain)(*args)

    @overload(either, jit_options={"forceinline": True}, strict=False)
    def choose(*args: Any) -> F:
        return blocked if any(isinstance(arg, types.Array) and arg.dtype == CONTEXTS for arg in args) else plain

    function: Any = either
    return function  # type: ignore[no-any-return]


def compiled(function: F, kind: Kind = "call") -> F:
    """Compile a kernel function for the CPU on first use, with a notice if it takes long; later processes load it.

    Division by zero raises no exception, the interpreter lock is released, and floating-point operations are never
    reordered (no ``fastmath``). Reference counting is off, because kernel code allocates nothing: counting the arrays
    of a named tuple would double the time of a small round.
    """
    with _cache_folder(_folder_for(function)) as on_disk:
        options: dict[str, Any] = {"cache": on_disk, "error_model": "numpy", "nogil": True, "_nrt": False}
        dispatcher: F = numba.njit(function, **options)
    if on_disk:
        _ignore_closure_in_key(dispatcher)
    attach_notice(dispatcher, kind)
    return dispatcher


def _ignore_closure_in_key(dispatcher: Any) -> None:
    """Reduce the key of numba's cache to signature and machine; the cache folder identifies the code.

    Numba would also hash the closure. That hash depends on whether Python loaded a module from source or from bytecode,
    so everything would be compiled twice.
    """
    dispatcher._cache._index_key = lambda signature, codegen: (signature, codegen.magic_tuple())


@contextlib.contextmanager
def readable_errors(*, packs: bool) -> Iterator[None]:
    """Raise numba's errors as a TypeError of a few sentences; ``packs``: the kernel works on many numbers at once."""
    try:
        yield
    except NumbaError as error:
        raise TypeError(readable(str(error), packs=packs)) from None


def readable(message: str, *, packs: bool) -> str:
    """Return where in an author's code the compiler failed, why, and what to do, from numba's message.

    >>> readable('Cannot unify float64 and Pack(lanes, 16) File "mine.py", line 12:', packs=True)[:71]
    'kernel code cannot be compiled: mine.py, line 12: Cannot unify float64 '
    """
    places = re.findall(r'File "([^"]+)", line (\d+)', message)
    package = f"{os.sep}bothworlds{os.sep}"
    outside = [f"{Path(file).name}, line {line}: " for file, line in places if package not in file]
    reasons = re.findall(
        r"(?:No implementation of function|Cannot|Invalid|Unknown|Untyped)[^\n]*(?:\n\s*>>>[^\n]*)?", message
    )
    reason = re.sub(r"\s+", " ", reasons[-1] if reasons else message[:200])
    advice = (
        "The kernel is declared to work on many numbers at once: select with `where` instead of `if`, and end loops "
        "with `every`; or leave out `wide` and `together`, and replications play one by one"
        if packs
        else "Kernel code can use numbers, arrays and records only"
    )
    return f"kernel code cannot be compiled: {outside[-1] if outside else ''}{reason}. {advice}"


def source_hash(package: Path | None = None) -> str:
    """Return a short hash of the Python files in `KERNEL_FOLDERS` of the package: their names and contents."""
    root = Path(__file__).parents[2] if package is None else package
    digest = hashlib.blake2b(digest_size=10)
    for path in sorted(path for folder in KERNEL_FOLDERS for path in (root / folder).rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


@lru_cache(maxsize=1)
def cache_folder() -> Path | None:
    """Return the folder for compiled code, or None if no folder is writable.

    It lies in ``BOTHWORLDS_CACHE_DIR``, by default in the user's cache folder.
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
    """Return the folder for the machine code of a function with its closure, or None.

    Numba keeps one index for all functions of a name, and two processes that write to it at the same time can store the
    code of one under the key of the other. So every function and closure has its own folder, to which all processes
    write the same.
    """
    folder = cache_folder()
    if folder is None:
        return None
    foreign = foreign_hash(function)
    return folder / (f"{name_hash(function)}-{foreign}" if foreign else name_hash(function))


def is_cached(function: Callable[..., Any]) -> bool:
    """Return whether machine code of a function is on disk."""
    folder = _folder_for(function)
    return folder is not None and any(folder.rglob("*.nbi"))


def _drop_old_caches(base: Path, keep: Path) -> None:
    """Remove all but the most recently used caches, so that those of old versions do not accumulate."""
    ours = re.compile(re.escape(CACHE_NAME) + "[0-9a-f]{20}")
    others = [p for p in base.iterdir() if p.is_dir() and p != keep and ours.fullmatch(p.name)]
    others.sort(key=lambda p: p.stat().st_mtime, reverse=True)
    for path in others[KEPT_CACHES - 1 :]:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _cache_folder(folder: Path | None) -> Iterator[bool]:
    """Set numba's cache folder while a function is wrapped; yield whether there is one."""
    settings: Any = numba.core.config
    before = settings.CACHE_DIR
    if folder is not None:
        settings.CACHE_DIR = str(folder)
    try:
        yield folder is not None
    finally:
        settings.CACHE_DIR = before
