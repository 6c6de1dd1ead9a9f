"""The table of contents: which public name lives where, read from ``__init__.pyi``, the one place that says so."""

import ast
from functools import cache
from pathlib import Path


@cache
def contents() -> dict[str, str]:
    """Return the module of every public name, in the order of the table; a module of the package has its own name.

    >>> contents()["Policy"], contents()["environments"]
    ('bothworlds.policy', 'bothworlds.environments')
    """
    tree = ast.parse((Path(__file__).parent / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    package = __name__.partition(".")[0]
    return {
        alias.name: f"{package}.{node.module}" if node.module else f"{package}.{alias.name}"
        for node in imports
        for alias in node.names
    }
