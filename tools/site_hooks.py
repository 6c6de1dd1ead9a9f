"""What MkDocs asks of us while it builds the site; nothing in it is fetched from elsewhere.

Formulas become MathML, which browsers show on their own: blocks fenced with ``math``, ``$...$``, and the plain letters
of running text (tools/formulas.py). Links like ``../examples/x.py`` lead to copies of those files inside the site. Copy
buttons copy what can be pasted: no prompts, no output. Search works from files, too (tools/theme/file_search.js).
"""

import re
import shutil
import sys
from collections.abc import Iterable
from html import escape, unescape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files, InclusionLevel

sys.path.insert(0, str(Path(__file__).parent))
from formulas import marked

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "build" / "sample" / "report.html"  # made by `make docs`
MATH = re.compile(r"^```math\n(.*?)\n```$", flags=re.MULTILINE | re.DOTALL)
OUTSIDE = re.compile(r"\]\(\.\./([^)#]+)\)")
KEPT = re.compile("\ue000([0-9a-f]+)(z?)\ue001")  # a formula on its way through Markdown
DOCTEST = re.compile(r"^```python\n(?=>>> )", flags=re.MULTILINE)
SESSION = re.compile(r'<div class="language-(?:pycon|console) highlight">(?=<pre>(.*?)</pre>)', flags=re.DOTALL)
SIGNS = {"=", "+", "-", r"\le", r"\ge", r"\lt", r"\gt"}
LONG = 20  # signs of LaTeX
TIGHT = {  # no space around a stroke, nor within 10,000
    "<mo>&#x0002F;</mo>": '<mo lspace="0" rspace="0">/</mo>',
    "</mn><mrow><mo>&#x0002C;</mo></mrow><mn>": ",",
}
LIVE = """<iframe class="sample" src="sample.html" title="A page of bothworlds compare" loading="lazy"></iframe>

*The page itself, as `bothworlds compare` wrote it when this site was built: [open it](sample.html).*
"""


def on_files(files: Files, *, config: Any) -> Files:
    """Add the files that pages link to and that lie outside docs/; as text, so that browsers show them."""
    linked = {path for page in files.documentation_pages() for path in OUTSIDE.findall(page.content_string)}
    for place, content in copies(linked).items():
        files.append(File.generated(config, place, content=content, inclusion=InclusionLevel.NOT_IN_NAV))
    if SAMPLE.exists():
        files.append(File.generated(config, "sample.html", abs_src_path=str(SAMPLE)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Set formulas aside, show sessions as such, point links at the copies, and show the sample page."""
    shown = MATH.sub(lambda found: kept(found[1], True), marked(markdown, kept))
    shown = DOCTEST.sub("```pycon\n", shown)
    shown = shown.replace("<!-- sample -->", LIVE if SAMPLE.exists() else "")
    return OUTSIDE.sub(lambda found: f"]({place_of(found[1])})", shown)


def on_page_content(html: str, **_: Any) -> str:
    """Put formulas in as MathML, and give sessions the text that their copy button copies."""
    html = SESSION.sub(lambda found: f'{found[0][:-1]} data-copy="{escape(pasted(found[1]))}">', html)
    return KEPT.sub(lambda found: formula(bytes.fromhex(found[1]).decode(), own=bool(found[2])), html)


def on_post_build(*, config: Any) -> None:
    """Write the index of the search as a script: pages that are files may not fetch data."""
    folder = Path(config["site_dir"]) / "search"
    index = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"var __index = {index}", encoding="utf-8")
    shutil.rmtree(Path(config["site_dir"]) / "assets" / "javascripts" / "lunr")  # stemmers of other languages


def kept(latex: str, own: bool) -> str:
    """Return a formula as letters that Markdown leaves alone."""
    return f"\ue000{latex.encode().hex()}{'z' if own else ''}\ue001"


def formula(latex: str, *, own: bool) -> str:
    """Return a formula as MathML, in the line or on its own."""
    shown = convert(latex, display="block") if own else " ".join(convert(part) for part in breakable(latex))
    for printed, wanted in TIGHT.items():
        shown = shown.replace(printed, wanted)
    return f'<span class="formula">{shown}</span>' if own else shown


def breakable(latex: str) -> list[str]:
    r"""Return a long formula in parts between which a line may end: before signs that stand in no braces.

    >>> breakable(r"R_{T} \le \sqrt{a + b} + c"), breakable("x = 1")
    (['R_{T}', '{} \\le \\sqrt{a + b}', '{} + c'], ['x = 1'])
    """
    depth, parts = 0, [""]
    for word in latex.split(" "):
        if depth == 0 and word in SIGNS and parts[-1].strip(" {}"):
            parts.append("{} ")  # so that the sign is read as one between two terms
        parts[-1] += f"{word} "
        depth += word.count("{") - word.count("}")
    return [part.strip() for part in parts] if len(latex) > LONG else [latex]


def pasted(block: str) -> str:
    r"""Return what a session can be pasted as: without prompts, without output.

    >>> pasted('<code><span class="gp">$ </span>ls &lt;x\n<span class="go">a b</span>\n</code>')
    'ls <x'
    """
    lines = re.sub(r'<span class="go">.*?</span>', "\0", block, flags=re.DOTALL)
    bare = re.sub(r"<[^>]*>", "", re.sub(r'<span class="gp">.*?</span>', "", lines))
    return "\n".join(line for line in unescape(bare).split("\n") if line.strip() and "\0" not in line)


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
