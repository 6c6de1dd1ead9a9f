"""What MkDocs asks of us while it builds the site: formulas without scripts, and files that lie outside docs/.

Blocks fenced with ``math`` become MathML, which browsers show on their own, offline. Links like ``../examples/x.py``
lead to copies of those files inside the site.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).parent.parent
MATH = re.compile(r"^```math\n(.*?)\n```$", flags=re.MULTILINE | re.DOTALL)
OUTSIDE = re.compile(r"\]\(\.\./([^)#]+)\)")


def on_files(files: Files, *, config: Any) -> Files:
    """Add the files that pages link to and that lie outside docs/; as text, so that browsers show them."""
    linked = {path for page in files.documentation_pages() for path in OUTSIDE.findall(page.content_string)}
    for place, content in copies(linked).items():
        files.append(File.generated(config, place, content=content, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Turn formulas into MathML, and point links at the copies."""
    shown = MATH.sub(lambda found: f'<div class="formula">{convert(found[1], display="block")}</div>', markdown)
    return OUTSIDE.sub(lambda found: f"]({place_of(found[1])})", shown)


def place_of(path: str) -> str:
    """Return where the copy of a file lies in the site, or the page that lists a folder."""
    name = path.rstrip("/")
    return f"files/{name}.md" if (ROOT / name).is_dir() else f"files/{name}.txt"


def copies(linked: Iterable[str]) -> dict[str, str]:
    """Return the content of every copy by its place; a folder becomes a list of its files, and those are copied too."""
    found = {}
    for path in sorted(linked):
        if (ROOT / path).is_dir():
            inside = sorted(file for file in (ROOT / path).iterdir() if file.is_file())
            lines = [f"- [{file.name}]({ROOT.joinpath(path).name}/{file.name}.txt)" for file in inside]
            found[place_of(path)] = "\n".join([f"# {path}", "", *lines, ""])
            found |= copies(file.relative_to(ROOT).as_posix() for file in inside)
        else:
            found[place_of(path)] = (ROOT / path).read_text(encoding="utf-8")
    return found
