"""Algorithms and worlds of a user's own: FILE.py:NAME or MODULE:NAME, wherever a kind is asked for.

What is computed depends on the text of the file and of those beside it that it imports, not on where they lie: cells
are known by a hash of it, results remember the hash, and a folder of results keeps a copy. A study reads its files
once: what is edited while it plays changes none of its cells.
"""

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from bothworlds.algorithms.registry import algorithms
from bothworlds.environments import Environment, Instance
from bothworlds.problem.storage import write_bytes
from bothworlds.simulation.beside import Contents, beside, importable

Texts: TypeAlias = Mapping[str, str]  # hashes of files as they were when a study was read, by path
NOW: Texts = {}  # files as they are now
FOLDER = "own"  # of a folder of results: copies of the files


def is_own(kind: Any) -> bool:
    """Tell whether a kind is a part of one's own.

    >>> is_own("mine.py:Greedy"), is_own("LinUCB")
    (True, False)
    """
    return isinstance(kind, str) and ":" in kind


def file_of(kind: Any) -> Path | None:
    """Return the file that a kind names, None if it names a module or one of our kinds."""
    place = str(kind).rpartition(":")[0] if is_own(kind) else ""
    return Path(place) if place.endswith(".py") else None


def found_in(kind: Any, folder: str | Path | None) -> Any:
    """Return a kind with its file looked for: as it is given, else in a folder, say that of the study."""
    path = file_of(kind)
    if path is None or path.is_file() or folder is None or not (Path(folder) / path).is_file():
        return kind
    return f"{Path(folder) / path}:{str(kind).rpartition(':')[2]}"


def texts_of(tables: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the hashes of the files that tables name, each read once."""
    paths = [path for table in tables if (path := file_of(table.get("kind"))) is not None]
    return {str(path): hash_of(path) for path in dict.fromkeys(paths)}


def hash_of(path: str | Path, texts: Texts = NOW) -> str:
    """Return a hash of a file's content, and of what it imports from its folder: the one noted, or that of now."""
    return texts.get(str(path)) or _hash(*_content(Path(path)))


def text_of(path: str | Path, mark: str) -> tuple[bytes, Contents]:
    """Return the content of a file that has a hash, and of those beside it; refuse what was edited meanwhile."""
    content, others = _content(Path(path))
    if _hash(content, others) != mark:
        raise ValueError(
            f"{path} was edited after the study was read: its hash was {mark}, and is {_hash(content, others)}. "
            "Begin again with the same command: what changed is played anew"
        )
    return content, others


def _hash(content: bytes, others: Contents) -> str:
    """Return a hash of texts; it ends with how many there are beside the first, if any are."""
    digest = hashlib.blake2b(content, digest_size=10)
    for place, text in others.items():
        digest.update(f"\n# {place} {len(text)}\n".encode() + text)
    return digest.hexdigest() + (f"+{len(others)}" if others else "")


def _content(path: Path) -> tuple[bytes, Contents]:
    try:
        content = path.read_bytes()
        return content, beside(path, content)
    except OSError as error:
        raise ValueError(f"{error.filename or path} cannot be read: {error.strerror or error}") from None


def by_content(options: dict[str, Any], texts: Texts = NOW) -> dict[str, Any]:
    """Return options with a file of one's own replaced by a hash of it: what the numbers depend on."""
    path = file_of(options.get("kind"))
    if path is None:
        return options
    return {**options, "kind": f"{hash_of(path, texts)}:{str(options['kind']).rpartition(':')[2]}"}


def portable(options: dict[str, Any], texts: Texts = NOW) -> dict[str, Any]:
    """Return options as a folder of results keeps them: a file of one's own is a copy in that folder."""
    path = file_of(options.get("kind"))
    if path is None:
        return options
    return {**options, "kind": f"{copy_of(path, texts)}:{options['kind'].rpartition(':')[2]}"}


def copy_of(path: Path, texts: Texts = NOW) -> str:
    """Return the name of the copy of a file, which says what is in it; with others it has a folder of its own."""
    whole = hash_of(path, texts)
    mark = whole[:8]
    if "+" in whole:
        return f"{FOLDER}/{path.stem}-{mark}/{path.name}"
    return f"{FOLDER}/{path.stem.removesuffix(f'-{mark}')}-{mark}.py"


def keep_copy(path: Path, output: Path, texts: Texts = NOW) -> None:
    """Copy a file into a folder of results, with those beside it that it imports, unless that is done."""
    if not (copy := output / copy_of(path, texts)).exists():
        content, others = text_of(path, hash_of(path, texts))
        for place, text in [*others.items(), (copy.name, content)]:  # the file itself last: then all are there
            (copy.parent / place).parent.mkdir(parents=True, exist_ok=True)
            write_bytes(copy.parent / place, text)


def loaded(kind: str, texts: Texts = NOW) -> Any:
    """Import what a kind names; a sentence where it cannot be."""
    place, _, name = kind.rpartition(":")
    path = file_of(kind)
    try:
        module = _by_name(place) if path is None else _from_file(path, hash_of(path, texts))
    except ValueError:
        raise
    except Exception as error:
        raise ValueError(f"{place} cannot be imported: {type(error).__name__}: {error}") from None
    if not hasattr(module, name):
        public = [word for word in vars(module) if not word.startswith("_")]
        near = get_close_matches(name, public, n=1, cutoff=0.5)
        raise ValueError(f"{place} has no {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    return getattr(module, name)


def _by_name(place: str) -> ModuleType:
    """Import a module; one in the folder of the command is found, too."""
    sys.path.insert(0, "")
    try:
        return importlib.import_module(place)
    finally:
        sys.path.remove("")


@cache  # cells of a study share what they import, and its compiled text
def _from_file(path: Path, mark: str) -> ModuleType:
    """Import a file under a name that no other file has; what lies beside it can be imported by it."""
    text, others = text_of(path, mark)
    name = f"{path.stem.replace('-', '_')}_{mark[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise ImportError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        with importable(path.parent, others):
            # Not by the loader: it takes bytecode of an earlier text for this one if both have one size and second.
            exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def made(kind: str, options: dict[str, Any], texts: Texts = NOW) -> Any:
    """Return what a kind names, called with the options if it can be called; an object takes none."""
    found = loaded(kind, texts)
    if not callable(found) and options:
        raise ValueError(f"{kind} is an object, which takes no options; got {', '.join(options)}")
    return _called(kind, found, **options) if callable(found) else found


def own_algorithm(options: dict[str, Any], texts: Texts = NOW) -> Any:
    """Make an algorithm from a table of a study whose kind is one of the user's own."""
    options = dict(options)
    kind = options.pop("kind")
    return require_algorithm(made(kind, options, texts), kind)


def require_algorithm(given: Any, word: str) -> Any:
    """Return an algorithm; refuse what is none, with what it is called.

    >>> require_algorithm("LinUCB", "it")
    Traceback (most recent call last):
    ValueError: 'LinUCB' is a name: write LinUCB()
    """
    if isinstance(given, type):
        raise ValueError(f"{given.__name__} is a class: write {given.__name__}()")
    if isinstance(given, str):
        known = given in algorithms()
        raise ValueError(f"{given!r} is a name: write {given}()" if known else f"{given!r} is text, not an algorithm")
    if not (hasattr(given, "machine") or hasattr(given, "start")):
        raise ValueError(f"{word} is not an algorithm: it has neither machine(problem) nor start(problem, rng=...)")
    return given


def require_environment(given: Any) -> None:
    """Refuse what is no environment, with what makes one."""
    if not isinstance(given, Environment):
        raise ValueError(
            f"{type(given).__name__} is no environment: bothworlds.environments makes them, "
            "stochastic(instance) of an instance, and stochastic(Instance(problem, theta)) of a problem"
        )


def own_environment(
    options: dict[str, Any],
    asked: dict[str, Any],
    instance: Callable[[], Instance],
    settings: Mapping[str, Any],
    texts: Texts = NOW,
) -> Environment:
    """Make a world from a table of a study whose kind is one of the user's own.

    A function is called with the options; with the instance of the study's sizes if it has a parameter ``instance``,
    and with ``horizon`` and ``seed`` if it has these and no such option is given. What the table asks of the instance,
    its sizes and ``draw``, goes to parameters of that name, too, and is refused where nobody would look at it.
    """
    options = dict(options)
    kind = options.pop("kind")
    found = loaded(kind, texts)
    if not isinstance(found, Environment):
        wanted = inspect.signature(found).parameters if callable(found) else {}
        given: dict[str, Any] = {name: settings[name] for name in ("horizon", "seed") if name in wanted}
        given |= {"instance": instance()} if "instance" in wanted else {}
        given |= _named(kind, asked, wanted)
        found = made(kind, {**given, **options}, texts)
    elif options or asked:
        raise ValueError(f"{kind} is an object, which takes no options; got {', '.join([*options, *asked])}")
    if not isinstance(found, Environment):
        raise ValueError(f"{kind} makes no environment but {type(found).__name__}")
    return found


def _named(kind: str, asked: dict[str, Any], wanted: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """Return what is asked of an instance that a function has parameters for; refuse what would have no effect."""
    if any(one.kind is one.VAR_KEYWORD for one in wanted.values()) and "instance" not in wanted:
        return asked
    named = {name: value for name, value in asked.items() if name in wanted}
    seen_through = {"draw"} if "seed" in wanted else set()
    idle = [name for name in asked if name not in named and name not in seen_through]
    if idle and "instance" not in wanted:
        raise ValueError(
            f"{kind} has no use for {', '.join(idle)}: give it a parameter of that name, or `instance`, which is drawn "
            "to the sizes of the study"
        )
    return named


def _called(kind: str, maker: Callable[..., Any], **options: Any) -> Any:
    """Call a maker; what it cannot do with its options is said in a sentence."""
    try:
        return maker(**options)
    except Exception as error:
        raise ValueError(f"{kind}: {type(error).__name__}: {error}") from None


def remembered(*kinds: Any, texts: Texts = NOW) -> dict[str, str]:
    """Return the files among some kinds by name, with their hashes: what results remember of them."""
    paths = [path for kind in kinds if (path := file_of(kind)) is not None]
    return {path.name: hash_of(path, texts) for path in paths}
