"""Modules that a user's file imports from its folder: found in its source, read once, imported from that source."""

import ast
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType

ELSEWHERE = {*sys.stdlib_module_names, __name__.partition(".")[0]}  # never imported from a user's folder
Contents = dict[str, bytes]  # contents of files, by path relative to the folder


def imported_files(path: Path, text: bytes) -> Contents:
    """Return the files that a source imports from the folder of its path, directly or indirectly, sorted by path."""
    contents: Contents = {}
    queue = _imported_names(text)
    while queue:
        for file in _files_of(path.parent, queue.pop()):
            place = file.relative_to(path.parent).as_posix()
            if place not in contents and place != path.name:
                contents[place] = file.read_bytes()
                queue |= _imported_names(contents[place])
    return dict(sorted(contents.items()))


def _imported_names(text: bytes) -> set[str]:
    """Return the top-level names of the modules that a source imports, anywhere in it.

    >>> sorted(_imported_names(b"import os.path, mine; from theirs.part import one"))
    ['mine', 'os', 'theirs']
    """
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):  # the import itself will raise the error
        return set()
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    return {name.partition(".")[0] for name in names}


def _files_of(folder: Path, name: str) -> list[Path]:
    """Return the files of a module in a folder: one file, all files of a package, or none if it is not there."""
    if name in ELSEWHERE:
        return []
    if (folder / name / "__init__.py").is_file():
        return sorted((folder / name).rglob("*.py"))
    return [file] if (file := folder / f"{name}.py").is_file() else []


@contextlib.contextmanager
def importable(folder: Path, contents: Mapping[str, bytes]) -> Iterator[None]:
    """Allow imports from a folder; modules among the contents are imported afresh, from these sources."""
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


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """Loads a module from given source; cached bytecode could be of an edit with equal size and modification second."""

    def __init__(self, name: str, path: str, text: bytes) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, _: str) -> CodeType:
        code: CodeType = compile(self._text, self.path, "exec", dont_inherit=True)
        return code


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules whose source is given."""

    def __init__(self, texts: Mapping[str, tuple[Path, bytes]]) -> None:
        self._texts = texts

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._texts:
            return None
        file, text = self._texts[fullname]
        return importlib.util.spec_from_file_location(fullname, file, loader=_SourceLoader(fullname, str(file), text))
