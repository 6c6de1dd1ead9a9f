"""The documentation site: formulas are set, what is copied can be pasted, nothing is fetched, nothing is hidden."""

import html
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from formulas import PROTECTED, marked
from pages import without_marks

from support.browser import CHROMIUM
from support.documentation import DOCS, HANDWRITTEN, MADE, ROOT, name_of

BUILDER = ROOT / "build" / "docs-venv" / "bin" / "mkdocs"
built = pytest.mark.skipif(not BUILDER.exists(), reason="needs `make docs` before")
browser = [pytest.mark.soak, pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the browser chromium")]


def set_in(text: str) -> str:
    """Return running text with its formulas between dollars, doubled where they are paragraphs."""
    return marked(text, lambda latex, own: f"$${latex}$$" if own else f"${latex}$")


@pytest.mark.parametrize(
    ("plain", "printed"),
    [
        ("R_T <= 2 T", r"$R_{T} \le 2 T$"),
        ("a rate of K^(1/4)/sqrt(d t) a round", r"a rate of $K ^{1 / 4} / \sqrt{d t}$ a round"),
        (
            "theta_hat = Sigma_t^-1 phi(A_t, X_t) loss",
            r"$\hat{\theta} = \Sigma_{t} ^{-1} \phi ( A_{t} , X_{t} ) \mathrm{loss}$",
        ),
        ("|&lt;phi_t, m_t>| <= 1", r"$\vert \langle \phi_{t} , m_{t} \rangle \vert \le 1$"),
        (r"Delta_\* and e\*", r"$\Delta_{\ast}$ and $e^{\ast}$"),
        ("O(log T), not O(T log K)", r"$O ( \log \, T )$, not $O ( T \, \log \, K )$"),
        ("for nu in [0, 1), at last", r"for $\nu \in [ 0 , 1 )$, at last"),
        ("E sum_t z_t, C E^2", r"$\mathbb{E} \, \sum_{t} \, z_{t}$, $C E ^{2}$"),
        ("(max_a (l - m)_+)", r"$( \max_{a} ( \ell - m )_{+} )$".replace(" )_{+}", " ) _{+}")),
        ("T = 10,000 and 1e-13", r"$T = 10{,}000$ and 1e-13"),
        ("so.\n\nR_T = O(D),   D = F d,\n\nwhere", "so.\n\n$$R_{T} = O ( D ),\\quad D = F d,$$\n\nwhere"),
        ("it\n\n| t0 | lambda/16 |", "it\n\n| $t_{0}$ | $\\lambda / 16$ |"),
        ("&lt;sum of them, q> + psi(q)/eta_t", r"&lt;sum of them, $q$> + $\psi ( q ) / \eta_{t}$"),
        ("as written: $\\tfrac{1}{2}$", "as written: $\\tfrac{1}{2}$"),
    ],
)
def test_plain_letters_become_formulas(plain: str, printed: str) -> None:
    own = "$$" in printed
    assert set_in(plain if own else f"so {plain}") == (printed if own else f"so {printed}")


@pytest.mark.parametrize(
    "prose",
    [
        "A decision is a thing; I know of e.g. Lemma B.1, Appendix D and i.e. the A/B test (in 3 s, 5 %).",
        "`eta_t` in code, [so](theory.md#a_b), ![beta](x.svg), Cauchy-Schwarz, 4.1-4.4, a well-known one",
        "# alpha = 1/2\n",
        "```python\n>>> eta_t = 1\n```\n",
        "it costs $5 and then $6",
    ],
)
def test_prose_and_code_are_left_alone(prose: str) -> None:
    assert set_in(prose) == prose


GREEK = "alpha|beta|gamma|[Dd]elta|eta|[Tt]heta|lambda|kappa|omega|Sigma|phi|psi"
LEFT = rf"\b[A-Za-z]_\w+\b|\w\^|\bsqrt\b|[<>]=|\b(?:{GREEK})\b"
WORDS = ["log over sqrt", "sqrt of the share", "sum of entropies", r"\|.\|^2", r"mean\|^2"]  # words within, as they are


@pytest.mark.parametrize("page", [*HANDWRITTEN, *MADE], ids=name_of)
def test_no_formula_of_a_page_is_left_in_plain_letters(page: Path) -> None:
    bare = without_marks(page.read_text(encoding="utf-8"))
    text = PROTECTED.sub("", re.sub(r"^#.*$", "", bare, flags=re.MULTILINE))
    left = marked(PROTECTED.sub("", text), lambda latex, own: "")
    for words in WORDS:
        left = left.replace(words, "")
    found = [left[max(0, one.start() - 40) : one.end() + 30] for one in re.finditer(LEFT, left)]
    assert [one for one in found if "/sqrt(1 + " not in one] == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site."""
    folder = tmp_path_factory.mktemp("site")
    command = [BUILDER, "build", "--quiet", "--strict", "--config-file", ROOT / "mkdocs.yml", "--site-dir", folder]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def pages(site: Path) -> Iterator[tuple[Path, str]]:
    """Return the pages of the site and their content."""
    for page in sorted(site.rglob("*.html")):
        if page.name != "sample.html" and "files" not in page.relative_to(site).parts:
            yield page, page.read_text(encoding="utf-8")


@built
def test_the_site_fetches_nothing(site: Path) -> None:
    for page, text in pages(site):
        assert not re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"?(?:https?:)?//", text), page
        assert not re.findall(r"url\(\"?(?:https?:)?//", text), page
    assert "<math" in (site / "explanation" / "what-is-proved.html").read_text(encoding="utf-8")
    assert 'src="figures/' in (site / "index.html").read_text(encoding="utf-8")


@built
def test_formulas_have_a_font_of_the_site_with_its_license(site: Path) -> None:
    (font,) = re.findall(r'src: url\("([^":]+)"\)', (site / "site.css").read_text(encoding="utf-8"))
    assert (site / font).read_bytes()[:4] == b"wOF2"
    assert (site / font).stat().st_size < 100_000
    assert "SIL Open Font License" in (site / font).with_name("OFL.txt").read_text(encoding="utf-8")


@built
def test_every_page_is_there_as_markdown_and_in_llms_txt(site: Path) -> None:
    text = (site / "llms.txt").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^- \[[^\]]+\]\((\S+\.md)\): (.*)$", text, flags=re.MULTILINE))
    assert listed.keys() == {page.relative_to(DOCS).as_posix() for page in HANDWRITTEN + MADE}
    for file, sentence in listed.items():
        assert re.fullmatch(r"[A-Z`a-z].{12,}[.?!:]", sentence), (file, sentence)
        assert (site / file).with_suffix(".html").exists()
        text = (site / file).read_text(encoding="utf-8")
        assert text.startswith("# "), file
        running = re.sub(r"^```.*?^```$|`[^`]*`", "", text, flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)", running):
            assert "://" in target or ((site / file).parent / target).exists(), (file, target)


ASK = """<script>addEventListener("load", async () => {
const say = found => { const pre = document.createElement("pre"); pre.id = "found";
  pre.textContent = JSON.stringify(found); document.body.append(pre); };
%s
});</script></body>"""


def asked(page: Path, script: str, *options: str) -> str:
    """Open a page of the site from its file, with a script at its end, and return what it says."""
    copy = page.with_name(f"asked-{page.name}")
    copy.write_text(page.read_text(encoding="utf-8").replace("</body>", ASK % script), encoding="utf-8")
    command = [*CHROMIUM, "--virtual-time-budget=9000", "--dump-dom"]
    done = subprocess.run([*command, *options, copy.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    copy.unlink()
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, flags=re.DOTALL)
    assert found is not None
    return html.unescape(found[1])


SEARCH = """
const field = document.querySelector("input.md-search__input");
field.focus(); field.value = "%s"; field.dispatchEvent(new Event("keyup", {bubbles: true}));
field.dispatchEvent(new Event("input", {bubbles: true}));
const items = () => [...document.querySelectorAll(".md-search-result__item")];
for (let i = 0; i < 60 && !items().length; i++) await new Promise(done => setTimeout(done, 100));
say(items().map(item => item.querySelector("a").getAttribute("href").split("?")[0].split("#")[0]));
"""


@built
class TestInABrowser:
    """What only a browser can tell."""

    pytestmark = browser

    @pytest.mark.parametrize(
        ("words", "page"),
        [
            ("own algorithm", "tutorials/own-algorithm.html"),
            ("your own algorithm", "tutorials/own-algorithm.html"),
            ("write an algorithm", "tutorials/own-algorithm.html"),
            ("late feedback", "how-to/late-feedback.html"),
            ("evaluate a log", "how-to/evaluate-a-log.html"),
            ("scoreboard", "explanation/scoreboard.html"),
            ("LinUCB", "reference/algorithms.html"),
            ("production", "how-to/production.html"),
        ],
    )
    def test_search_finds_the_page_first_from_a_file(self, site: Path, words: str, page: str) -> None:
        found = json.loads(asked(site / "index.html", SEARCH % words))
        assert found
        assert found[0].endswith(page), found[:5]

    @pytest.mark.parametrize(
        "name",
        [
            "index", "gallery", "tutorials/first-decisions", "how-to/production", "explanation/lc-tsallis-inf",
            "explanation/what-is-proved", "explanation/scoreboard", "reference/algorithms", "reference/api/algorithms",
            "reference/command-line/compare",
        ],
    )  # fmt: skip
    def test_nothing_is_wider_than_a_phone(self, site: Path, name: str) -> None:
        """Tables and formulas scroll within themselves; code breaks, only columns of output scroll.

        The frame of code within a sentence may hang over by two pixels of 16 that are free.
        """
        script = """document.body.style.width = "390px";
        const wide = [...document.querySelectorAll(".md-content__inner > *")].filter(part =>
          part.scrollWidth > part.clientWidth + 2 && getComputedStyle(part).overflowX === "visible");
        const code = [...document.querySelectorAll("pre > code")].filter(part => !part.querySelector(".go") &&
          part.closest("[class*='language-']:not(.language-text)") && part.scrollWidth > part.clientWidth + 1);
        const names = some => some.map(part => part.textContent.slice(0, 60));
        say([names(wide), names(code)]);"""
        assert asked(site / f"{name}.html", script, "--window-size=500,900") == "[[],[]]"

    def test_figures_fit_the_night(self, site: Path) -> None:
        script = """const style = getComputedStyle(document.querySelector("article img[src$='.svg']"));
        say([style.filter, style.mixBlendMode]);"""
        night = asked(site / "gallery.html", script, "--blink-settings=preferredColorScheme=0")
        day = asked(site / "gallery.html", script, "--blink-settings=preferredColorScheme=1")
        assert night == '["invert(1) hue-rotate(180deg)","screen"]'
        assert day == '["none","normal"]'
