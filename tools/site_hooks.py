"""Hooks of MkDocs: what the site is built with besides the theme. Nothing is fetched from elsewhere.

Formulas become MathML, which browsers show on their own: blocks fenced with ``math``, ``$...$``, and the plain letters
of running text (tools/formulas.py). Links out of docs/ lead to copies of those files inside the site. Copy buttons copy
what can be pasted: no prompts, no output. Search works from files, too (tools/theme/file_search.js). For programs there
are llms.txt and the Markdown of every page beside its HTML (tools/pages.py).
"""

import re
import shutil
import sys
from html import escape, unescape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files, InclusionLevel

sys.path.insert(0, str(Path(__file__).parent))
import pages as site
from formulas import marked

SAMPLE = site.ROOT / "build" / "sample" / "report.html"  # made by `make docs`
BOOSTS = {"tutorials/": 2.0, "how-to/": 2.0, "reference/api/": 0.5, "reference/command-line/": 0.5}  # of search results
MATH = re.compile(r"^```math\n(.*?)\n```$", flags=re.MULTILINE | re.DOTALL)
KEPT = re.compile("\ue000([0-9a-f]+)(z?)\ue001")  # a formula on its way through Markdown
DOCTEST = re.compile(r"^```python\n(?=>>> )", flags=re.MULTILINE)
SESSION = re.compile(r'<div class="language-pycon highlight">(?=<pre>(.*?)</pre>)', flags=re.DOTALL)
SIGNS = {"=", "+", "-", r"\le", r"\ge", r"\lt", r"\gt"}
LONG = 20  # signs of LaTeX
TIGHT = {  # no space around a stroke, nor within 10,000
    "<mo>&#x0002F;</mo>": '<mo lspace="0" rspace="0">/</mo>',
    "</mn><mrow><mo>&#x0002C;</mo></mrow><mn>": ",",
}
LIVE = """<iframe class="sample" src="{0}sample.html" title="A page of bothworlds compare" loading="lazy"></iframe>

*The page itself, as `bothworlds compare` wrote it when this site was built: [open it]({0}sample.html).*
"""


def on_config(config: Any) -> Any:
    """Put the pages of generated folders into the navigation."""
    config["nav"] = site.expanded(config["nav"], Path(config["docs_dir"]))
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add the files that pages link to and that lie outside docs/; as text, so that browsers show them."""
    pages = files.documentation_pages()
    linked = {path for page in pages for path in site.outside(page.content_string, page.src_uri)}
    for place, content in site.copies(linked).items():
        files.append(File.generated(config, place, content=content, inclusion=InclusionLevel.NOT_IN_NAV))
    if SAMPLE.exists():
        files.append(File.generated(config, "sample.html", abs_src_path=str(SAMPLE)))
    return files


def descriptions(config: Any) -> dict[str, str]:
    """Return the descriptions of the handwritten pages in mkdocs.yml by their files."""
    found: dict[str, str] = config["extra"]["descriptions"]
    return found


def sentence_of(path: Path) -> str:
    """Return the first sentence of a page."""
    return site.first_sentence(path.read_text(encoding="utf-8"))


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Set formulas aside, show sessions as such, point links at the copies, and show the sample page."""
    file = page.file.src_uri
    boost = next((boost for folder, boost in BOOSTS.items() if file.startswith(folder)), 1.0)
    page.meta["search"] = {"boost": boost} | page.meta.get("search", {})
    page.meta.setdefault("description", descriptions(config).get(file) or site.first_sentence(markdown))
    bare = site.without_marks(markdown)
    shown = MATH.sub(lambda found: kept(found[1], True), marked(bare, kept))
    shown = DOCTEST.sub("```pycon\n", shown)
    live = LIVE.format("../" * file.count("/")) if SAMPLE.exists() else ""
    return site.with_copies(shown.replace("<!-- sample -->", live), file)


def on_page_content(html: str, **_: Any) -> str:
    """Put formulas in as MathML, and give sessions the text that their copy button copies."""
    html = SESSION.sub(lambda found: f'{found[0][:-1]} data-copy="{escape(pasted(found[1]))}">', html)
    return KEPT.sub(lambda found: formula(bytes.fromhex(found[1]).decode(), own=bool(found[2])), html)


def on_post_build(*, config: Any) -> None:
    """Write the search index as a script (pages that are files may not fetch data), and what programs read."""
    to, docs = Path(config["site_dir"]), Path(config["docs_dir"])
    index = (to / "search" / "search_index.json").read_text(encoding="utf-8")
    (to / "search" / "search_index.js").write_text(f"var __index = {index}", encoding="utf-8")
    shutil.rmtree(to / "assets" / "javascripts" / "lunr")  # stemmers of other languages
    pages = list(site.entries(config["nav"], docs))
    for page in pages:
        text = (docs / page.file).read_text(encoding="utf-8")
        (to / page.file).write_text(site.for_programs(text, page.file), encoding="utf-8")
    about = [(page, descriptions(config).get(page.file) or sentence_of(docs / page.file)) for page in pages]
    text = site.llms(config["site_name"], config["site_description"], about)
    (to / "llms.txt").write_text(text, encoding="utf-8")


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
