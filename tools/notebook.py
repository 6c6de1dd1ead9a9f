"""The notebook examples/tutorial.ipynb, made from examples/tutorial.py: python tools/notebook.py.

The script is cut at lines that begin with ``# %%``; cells marked ``[markdown]`` are text.
"""

import json
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parent.parent / "examples" / "tutorial.py"


def notebook(script: str) -> str:
    """Return the notebook of a script, as JSON."""
    parts = script.split("# %%")[1:]
    cells = [_cell(number, *part.split("\n", 1)) for number, part in enumerate(parts, start=1)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    made = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def _cell(number: int, kind: str, text: str) -> dict[str, Any]:
    """Return one cell; text loses its comment signs."""
    lines = text.strip().split("\n")
    common: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}}
    if kind.strip() == "[markdown]":
        lines = [line.removeprefix("#").removeprefix(" ") for line in lines]
        return {"cell_type": "markdown", **common, "source": _source(lines)}
    return {"cell_type": "code", **common, "execution_count": None, "outputs": [], "source": _source(lines)}


def _source(lines: list[str]) -> list[str]:
    """Return lines as a notebook keeps them: with their ends, but for the last."""
    return [*(f"{line}\n" for line in lines[:-1]), lines[-1]]


if __name__ == "__main__":
    SCRIPT.with_suffix(".ipynb").write_text(notebook(SCRIPT.read_text(encoding="utf-8")), encoding="utf-8")
