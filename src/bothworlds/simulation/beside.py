"""What a file of one's own imports from its folder: found in its text, read with it, and imported from that text."""

import ast
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType

ELSEWHERE = {*sys.stdlib_module_names, __name__.partition(".")[0]}  # imported already, or never from beside a file
Contents = dict[str, bytes]  # of files, by their place in the folder


def beside(path: Path, text: bytes) -> Contents:
    """Return the files in the folder of a file that its text imports, or that they import, in the order of names."""
    found: Contents = {}
    waiting = _imported(text)
    while waiting:
        for file in _files_of(path.parent, waiting.pop()):
            place = file.relative_to(path.parent).as_posix()
            if place not in found and place != path.name:
                found[place] = file.read_bytes()
                waiting |= _imported(found[place])
    return dict(sorted(found.items()))


def _imported(text: bytes) -> set[str]:
    """Return the first names of the modules that a text imports, wherever it does so.

    >>> sorted(_imported(b"import os.path, mine; from theirs.part import one"))
    ['mine', 'os', 'theirs']
    """
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):  # importing it will say so
        return set()
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    return {name.partition(".")[0] for name in names}


def _files_of(folder: Path, name: str) -> list[Path]:
    """Return the files of a module in a folder: one, all of a package, or none for what is imported from elsewhere."""
    if name in ELSEWHERE:
        return []
    if (folder / name / "__init__.py").is_file():
        return sorted((folder / name).rglob("*.py"))
    return [file] if (file := folder / f"{name}.py").is_file() else []


@contextlib.contextmanager
def importable(folder: Path, contents: Mapping[str, bytes]) -> Iterator[None]:
    """Let a folder be imported from; modules among the contents are made anew, and of that text."""
    texts = {_module_of(place): (folder / place, text) for place, text in contents.items()}
    for name in texts:
        sys.modules.pop(name, None)
    finder = _Finder(texts)
    sys.meta_path.insert(0, finder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.meta_path.remove(finder)


def _module_of(place: str) -> str:
    """Return the name of the module in a file.

    >>> _module_of("mine.py"), _module_of("parts/__init__.py"), _module_of("parts/one.py")
    ('mine', 'parts', 'parts.one')
    """
    return place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class _Text(importlib.machinery.SourceFileLoader):
    """Makes a module of a text: bytecode of an earlier one may have its size and second."""

    def __init__(self, name: str, path: str, text: bytes) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, _: str) -> CodeType:
        code: CodeType = compile(self._text, self.path, "exec", dont_inherit=True)
        return code


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules whose text is given."""

    def __init__(self, texts: Mapping[str, tuple[Path, bytes]]) -> None:
        self._texts = texts

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._texts:
            return None
        file, text = self._texts[fullname]
        return importlib.util.spec_from_file_location(fullname, file, loader=_Text(fullname, str(file), text))
