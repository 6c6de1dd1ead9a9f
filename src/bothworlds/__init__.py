"""Best-of-both-worlds linear contextual bandits: LC-Tsallis-INF, exact and fast.

Public names are imported on first use; ``__init__.pyi`` lists the module of each.
"""

import importlib
from typing import Any

from bothworlds._public_names import public_names

__version__ = "0.1.0"

__all__ = sorted(public_names())


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in public_names():
        raise AttributeError(f"module 'bothworlds' has no attribute {name!r}")
    module = importlib.import_module(public_names()[name])
    value = module if module.__name__.endswith(f".{name}") and not hasattr(module, name) else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
