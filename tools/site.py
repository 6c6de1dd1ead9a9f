"""What MkDocs asks of us while it builds the site: formulas without scripts, and files that lie outside docs/.

Blocks fenced with ``math`` become MathML, which browsers show on their own, offline. Links like ``../examples/x.py``
lead to copies of those files inside the site.
"""

import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
MATH = re.compile(r"^```math\n(.*?)\n```$", flags=re.MULTILINE | re.DOTALL)
OUTSIDE = re.compile(r"\]\(\.\./([^)#]+)\)")


def on_files(files: Files, *, config: Any) -> Files:
    """Add the files that pages link to and that lie outside docs/; as text, so that browsers show them."""
    linked = {path for page in files.documentation_pages() for path in OUTSIDE.findall(page.content_string)}
    for path in sorted(linked):
        files.append(File.generated(config, f"files/{path}.txt", content=(ROOT / path).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Turn formulas into MathML, and point links at the copies."""
    shown = MATH.sub(lambda found: convert(found[1], display="block"), markdown)
    return OUTSIDE.sub(lambda found: f"](files/{found[1]}.txt)", shown)
