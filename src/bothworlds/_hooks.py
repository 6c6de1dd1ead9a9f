"""Functions of upper layers that methods of lower layers call, imported by name on first use.

``problem.describe()`` needs designs and schedules, ``results.plot()`` needs charts. The modules of problems and results
must not import them, and call `provided` instead.
"""

import importlib
from collections.abc import Callable
from typing import Any

PROVIDERS = {
    "describe": "bothworlds.theory.describe",
    "describe_open": "bothworlds.algorithms.open_rules.describe_open",
    "describe_sampled": "bothworlds.theory.describe",
    "drawn": "bothworlds.report.notebook",
    "html_of": "bothworlds.report.notebook",
    "open_rule_of": "bothworlds.algorithms.open_rules.rules",
}


def provided(name: str) -> Callable[..., Any]:
    """Return the function with this name, from the module that provides it.

    >>> provided("describe").__module__
    'bothworlds.theory.describe'
    """
    function: Callable[..., Any] = getattr(importlib.import_module(PROVIDERS[name]), name)
    return function
