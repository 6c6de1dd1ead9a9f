"""Write a study as TOML, as stored in results folders."""

import json
import math
from typing import Any

from bothworlds.studies.study import FORMAT, SETTINGS, Study


def to_toml(study: Study) -> str:
    """Return a study as TOML; `Study.from_toml` reads it back as the same study.

    >>> parts = {"environments": {"calm": {"kind": "stochastic"}}, "algorithms": {"all": {"kind": "uniform"}}}
    >>> study = Study.from_dict({"horizon": 50, **parts})
    >>> print(to_toml(study).splitlines()[2])
    horizon = 50
    """
    lines = [f"format = {FORMAT}", f"name = {_value(study.name)}"]
    first, *_ = seeds = study.seeds
    consecutive = seeds == tuple(range(first, first + len(seeds)))
    settings: dict[str, Any] = {**study.settings, "seed": first if consecutive else list(seeds)}
    lines += [f"{key} = {_value(settings[key])}" for key in SETTINGS]
    lines += [f"instances = {len(seeds)}"] if consecutive and len(seeds) > 1 else []
    lines += ["references = true"] if study.references else []
    sizes = {key: values[0] if len(values) == 1 else values for key, values in study.sizes.items() if values != [None]}
    lines += _table("[sizes]", sizes)
    for part, tables in (("environments", study.environments), ("algorithms", study.algorithms)):
        for name, options in tables.items():
            lines += _table(f"[{part}.{_key(name)}]", options)
    return "\n".join(lines) + "\n"


def _table(head: str, options: dict[str, Any]) -> list[str]:
    """Return the lines of a table."""
    return ["", head, *(f"{_key(key)} = {_value(value)}" for key, value in options.items())]


def _key(name: str) -> str:
    """Return a key, quoted where it must be."""
    bare = name.isascii() and name.replace("-", "_").isidentifier()
    return name if bare else basic_string(name)


def basic_string(text: str) -> str:
    """Return a TOML basic string; its escapes are those of JSON, except for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    """Return a value in TOML syntax."""
    match value:
        case None:
            return '"none"'
        case bool():
            return "true" if value else "false"
        case float() if math.isinf(value) or math.isnan(value):
            return str(value)
        case int() | float():
            return repr(value)
        case str():
            return basic_string(value)
        case list() | tuple():
            return f"[{', '.join(_value(one) for one in value)}]"
        case dict():
            return "{ " + ", ".join(f"{_key(str(key))} = {_value(one)}" for key, one in value.items()) + " }"
        case _:
            raise ValueError(f"a study in TOML cannot hold {value!r}")
