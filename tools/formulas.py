r"""Formulas in the plain letters of docstrings and pages, found in running text and turned into LaTeX.

>>> print(marked("at most sqrt(d T) log^2 T, with eta_t <= lambda/2 a round", lambda formula, _: f"${formula}$"))
at most $\sqrt{d T} \, \log ^{2} T$, with $\eta_{t} \le \lambda / 2$ a round

Text stays as readable as it is in ``help()`` and on a repository host; the site shows it as it would be printed. What a
span is: tokens of formulas side by side, brackets balanced, no words. Code, links and headings are left alone.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

GREEK = re.findall(
    r"\w+",
    "alpha beta gamma delta epsilon eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega "
    "Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega",
)
FUNCTIONS = {"log": r"\log", "exp": r"\exp", "min": r"\min", "max": r"\max", "sum": r"\sum", "sqrt": r"\sqrt"}
FUNCTIONS |= {
    "argmin": r"\operatorname{argmin}",
    "argmax": r"\operatorname{argmax}",
    "log2": r"\log_2",
    "sup": r"\sup",
    "inf": r"\inf",
}
RELATIONS = {"<=": r"\le", ">=": r"\ge", "&lt;=": r"\le", "!=": r"\ne", "~=": r"\approx", "->": r"\to", "+-": r"\pm"}
RELATIONS |= {
    "=": "=",
    ">": r"\gt",
    "+": "+",
    "-": "-",
    "/": "/",
    "·": r"\cdot",
    "×": r"\times",
    "≤": r"\le",
    "±": r"\pm",
}
PLAIN = re.findall(  # words that formulas have within
    r"\w+",
    "losses loss cap gain rows batch price caution recency ridge size lev det ceil due least window context arm "
    "learning_rate",
)
ARTICLES = {"a", "A", "I", "E", "O"}
NAMED = re.compile(r"(?:Appendix|Section|Table|Theorems?|Algorithm|Figure|rule|part|language) \(?$")
PROTECTED = re.compile(
    r"^```.*?^```$|^#+ .*?$|`[^`]*`|<!--.*?-->|!\[[^\]]*\]|\]\([^)]*\)|<https?:[^>]*>|<[a-z/][^>]*>",
    flags=re.MULTILINE | re.DOTALL,
)
WRITTEN = re.compile(r"(?<![\\$\w])\$(?=\S)([^$\n]+?)(?<=\S)\$(?!\w)")
SUB = r"(?:_(?:\{[^}]*\}|\\?\*|\+|[A-Za-z0-9]+))?"
TOKEN = re.compile(
    rf"""(?P<relation>\ [-+=>]\ |&lt;=|<=|>=|!=|\+-|->|[-+=/·×≤±])
    |(?P<product>\ x\ (?=[\dA-Z]\b|\d))
    |(?P<space>\ |\n\ *(?![\s\-*+|>#]|\d+\.))
    |(?P<any>(?<=\()\.(?=,|\ ?\\?\|))
    |(?P<tiny>\d+(?:\.\d+)?e-\d+)\b
    |(?P<number>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?)(?!\w\w|[\d_])
    |(?P<function>(?:{"|".join(FUNCTIONS)}))(?P<under>_(?:[A-Za-z0-9]|\{{[^}}]*\}}))?(?![A-Za-z0-9_-])
    |(?P<member>in(?=\ [\[({{]))
    |(?P<infinite>infinity)\b
    |(?P<symbol>(?:{"|".join(GREEK)}|[A-Za-z])(?:(?P<accent>_hat|bar|~|\^(?=[\s*),.;]))(?![a-z]))?(?P<prime>'(?![a-z]))?(?P<sub>{SUB}|\d))(?P<star>\\?\*(?!\*))?(?![\w])
    |(?P<word>[a-z]{{2,9}}_[A-Za-z])(?!\w)
    |(?P<plain>{"|".join(PLAIN)})(?P<after>'(?![a-z]))?(?![\w-])
    |(?P<times>\ \\?\*\ )
    |(?P<angle>(?:&lt;|<)(?=[\w|\\(])|>)
    |(?P<less>(?:&lt;|<)(?=\ ))
    |(?P<positive>(?<=\))_\+)
    |(?P<power>\^)
    |(?P<bar>\\?\|(?P<norm>_(?:\{{[^}}]*\}}|[A-Z]))?)
    |(?P<comma>,)
    |(?P<open>[\[({{])|(?P<close>[\])}}])""",
    flags=re.VERBOSE,
)


PARTS = {"under": "function", "after": "plain", "norm": "bar"} | dict.fromkeys(
    ("sub", "star", "accent", "prime"), "symbol"
)

HOLE = "\ue002"  # stands for a formula until the paragraph is known
HOLES = re.compile(
    rf"(?:(?<=\n\n)|\A)(?P<indent> *)(?P<own>{HOLE}(?:[ ,;]*{HOLE})*[.,;:]?)(?=\n\s*\n|\n?\Z)|(?P<inline>{HOLE})"
)


class Token(NamedTuple):
    """A piece of a formula: what it is, its text, where it stands in the line."""

    kind: str
    text: str
    start: int
    end: int
    parts: dict[str, str]


def marked(text: str, show: Callable[[str, bool], str]) -> str:
    """Return a page with every formula replaced by ``show(LaTeX, whether it is a paragraph of its own)``."""
    bare = PROTECTED.sub(lambda found: "\0" * len(found[0]), text)  # what must not be read, at its length
    out, at, formulas = [], 0, []
    while at < len(text):
        written = WRITTEN.match(bare, at)
        found = [] if written or _inside_a_word(bare, at) else span(bare, at)
        if written or found:
            formulas.append(written[1] if written else latex(found))
        before = text[at : found[0].start] if found else ""  # a sign that the formula does not begin with
        out.append(f"{before}{HOLE}" if written or found else text[at])
        at = written.end() if written else found[-1].end if found else at + 1
    rest = iter(formulas)

    def filled(found: re.Match[str]) -> str:
        if found["inline"]:
            return show(next(rest), False)
        whole = "".join(next(rest) if one == HOLE else one for one in re.sub("([,;]) +", r"\1\\quad ", found["own"]))
        return f"{found['indent']}{show(whole, True)}"

    return HOLES.sub(filled, "".join(out))


def _inside_a_word(text: str, at: int) -> bool:
    before = text[at - 1] if at else " "
    return text[at] in "\0 \n" or before.isalnum() or before in "_'’.\\$&" or (before in "-/" and text[at].isalpha())


def span(text: str, at: int) -> list[Token]:
    """Return the tokens of the formula that begins here, or none."""
    table = text.startswith("|", text.rfind("\n", 0, at) + 1)
    tokens: list[Token] = []
    depth, place = 0, at
    while found := TOKEN.match(text, place):
        kind = str(found.lastgroup)
        kind = PARTS.get(kind, kind)
        token = Token(kind, found[0], place, found.end(), {k: v or "" for k, v in found.groupdict().items()})
        if (kind == "comma" and not depth) or (table and found[0] == "|") or _odd(token, tokens, text, depth):
            break
        depth += (kind == "open" or token.text in ("<", "&lt;")) - (
            kind == "close" or (token.text == ">" and _angles(tokens) > 0)
        )
        if depth < 0:
            break
        tokens.append(token)
        place = found.end()
    return _trimmed(_balanced(tokens), text)


def _angles(tokens: list[Token]) -> int:
    return sum((token.kind == "angle") * (1 if token.text != ">" else -1) for token in tokens)


def _odd(token: Token, before: list[Token], text: str, depth: int) -> bool:
    """Whether a token belongs to the sentence: an article, e.g., a letter of "B.1", a hyphen between words."""
    last = next((one for one in reversed(before) if one.kind != "space"), None)
    after = text[token.end : token.end + 2]
    if token.kind in ("symbol", "number") and re.match(r"\.\w|['’]\w|/[A-Za-z]{2}", after):
        return not re.match(r"/[A-Za-z]{2}", after) or (token.kind == "number" and not before)
    if token.kind == "product":
        return last is None or len(before) > 1 or not (last.kind == "number" or last.text.isupper())
    if token.text == "s" and last is not None and last.kind == "number":
        return True
    if token.text in ARTICLES - {"E", "O"}:
        joined = text[token.end : token.end + 1] in (")", "|", "(", "]", "\\", "}", "^") or after in (
            " =",
            " >",
            " <",
            ", ",
            "/(",
        )
        joined = joined or (token.text == "I" and last is not None and last.text.isupper())
        return not (joined or (last is not None and last.kind in ("relation", "open", "bar", "comma", "less", "power")))
    if token.kind == "plain":
        joined = last is not None and last.kind in ("relation", "angle", "power")
        return not (depth or joined or "=" in {one.text.strip() for one in before})
    if token.text == "O":
        return not after.startswith("(")
    if token.kind == "relation" and token.text in "-/":
        return (bool(re.match(r"[A-Za-z]{2}", after)) and not TOKEN.match(text, token.end)) or after[:1] in ("-", "")
    return token.kind == "angle" and token.text == ">" and not _angles(before)


def _balanced(tokens: list[Token]) -> list[Token]:
    """Return what comes before a bracket that is never closed; without that bracket, if it is the first token."""
    stack: list[int] = []
    for i, token in enumerate(tokens):
        if token.kind == "open" or (token.kind == "angle" and token.text != ">"):
            stack.append(i)
        elif (token.kind == "close" or (token.kind == "angle" and token.text == ">")) and stack:
            stack.pop()
    bars = [i for i, token in enumerate(tokens) if token.kind == "bar"]
    if stack:
        return tokens[: stack[0]]
    if len(bars) == 1 and not any(token.kind == "open" for token in tokens[: bars[0]]):
        return tokens[: bars[0]]
    return tokens


def _trimmed(tokens: list[Token], text: str) -> list[Token]:
    """Return the tokens without loose ends, or none where they say nothing that a sentence would not."""
    loose = ("space", "relation", "times", "function", "member", "comma", "less", "power")
    while tokens and (tokens[-1].kind in loose or tokens[-1].text == "E" or _article_at_end(tokens)):
        tokens = tokens[:-1]
    while tokens and _loose_at_start(tokens):
        tokens = tokens[1:]
    if not tokens or re.match(r"\w", text[tokens[-1].end : tokens[-1].end + 1]):
        return []
    return tokens if _says_something(tokens, text) else []


def _loose_at_start(tokens: list[Token]) -> bool:
    minus = tokens[0].text == "-" and [token.kind for token in tokens[1:2]] == ["space"]
    return (
        minus
        or tokens[0].kind in ("space", "comma", "times")
        or tokens[0].text.strip(" ") in ("+", "=", "/")
        or (tokens[0].text == " - ")
    )


def _article_at_end(tokens: list[Token]) -> bool:
    return (
        len(tokens) > 2
        and tokens[-1].text in ("a", "A")
        and tokens[-2].kind == "space"
        and tokens[-3].kind != "relation"
    )


def _says_something(tokens: list[Token], text: str) -> bool:
    symbols = [token for token in tokens if token.kind in ("symbol", "word")]
    strong = any(
        t.kind in ("power", "infinite") or (t.text.strip() in RELATIONS and t.text.strip() not in "-/+") for t in tokens
    )
    if not symbols:
        return (
            (any(t.kind in ("power", "plain", "product") for t in tokens) and len(tokens) > 2)
            or tokens[0].text.strip() in ("<=", ">=", "&lt;=", "+-")
            or (any(t.text.startswith(("sqrt", "log")) for t in tokens) and len(tokens) > 2 and strong)
        )
    if len(tokens) > 1:
        return strong or any(t.text not in ARTICLES for t in symbols) or any(t.kind == "function" for t in tokens)
    one = tokens[0]
    if len(one.text) > 1:
        return True
    if one.text == "s" and re.search(r"\d\s$", text[max(0, one.start - 2) : one.start]):
        return False  # seconds
    return one.text not in ARTICLES and not NAMED.search(text[max(0, one.start - 14) : one.start])


def latex(tokens: list[Token]) -> str:
    """Return the LaTeX of a formula."""
    rest = [token for token in tokens if token.kind != "space"]
    out: list[str] = []
    before = ""
    while rest:
        named = rest[0].kind == "function" and rest[0].parts["function"] != "sqrt"
        if named and out and before in ("symbol", "number", "close", "plain"):
            out.append(r"\,")
        before = "close" if rest[0].text.startswith("sqrt") else rest[0].kind
        out.append(_term(rest))
        if named and rest and rest[0].kind not in ("open", "power", "close", "comma"):
            out.append(r"\,")
    return " ".join(out)


def _term(rest: list[Token]) -> str:
    """Take the next token, with what belongs to it, and return it as LaTeX."""
    token = rest.pop(0)
    match token.kind:
        case "tiny":
            mantissa, _, exponent = token.text.partition("e")
            return ("" if mantissa == "1" else rf"{mantissa} \cdot ") + f"10^{{{int(exponent)}}}"
        case "any":
            return r"\cdot"
        case "product":
            return r"\times"
        case "number":
            return token.text.replace(",", "{,}")
        case "symbol":
            return _symbol(
                token, expected=bool(rest) and (rest[0].kind in ("symbol", "function", "word") or rest[0].text == "[")
            )
        case "word":
            name, _, below = token.text.partition("_")
            return rf"\mathrm{{{name}}}_{{{below}}}"
        case "function":
            below = token.parts["under"].strip("_{}")
            name = FUNCTIONS[token.parts["function"]] + (f"_{{{_inner(below)}}}" if below else "")
            return rf"\sqrt{{{_argument(rest)}}}" if token.parts["function"] == "sqrt" else name
        case "power":
            sign = "-" if rest and rest[0].text == "-" and rest.pop(0) else ""
            above = _argument(rest)
            return f"^{{{sign}{chr(92) + 'top' if above == 'T' else above}}}"
        case "plain":
            return rf"\mathrm{{{token.text.replace('_', ' ')}}}"
        case "positive":
            return "_{+}"
        case "bar":
            below = token.parts["norm"].strip("_{}")
            return r"\vert" + (f"_{{{latex(span(below, 0))}}}" if below else "")
        case "angle":
            return r"\rangle" if token.text == ">" else r"\langle"
        case "less":
            return r"\lt"
        case "times":
            return r"\cdot"
        case "member":
            return r"\in"
        case "infinite":
            return r"\infty"
        case "relation":
            return RELATIONS[token.text.strip()]
        case _:
            return {"{": r"\lbrace", "}": r"\rbrace"}.get(token.text, token.text)


def _argument(rest: list[Token]) -> str:
    """Take what stands under a root or in an exponent: a bracket without its parentheses, or one token."""
    if not rest or rest[0].text != "(":
        return _term(rest) if rest else ""
    depth, i = 1, 1
    while depth:
        depth += (rest[i].kind == "open") - (rest[i].kind == "close")
        i += 1
    inside = rest[1 : i - 1]
    del rest[:i]
    return latex(inside)


def _symbol(token: Token, *, expected: bool) -> str:
    """Return a letter with its accent and what stands below it; E before what it is the mean of is an expectation."""
    base = re.match(rf"{'|'.join(GREEK)}|[A-Za-z]", token.text)
    assert base is not None
    name = rf"\{base[0]}" if base[0] in GREEK else {"l": r"\ell"}.get(base[0], base[0])
    name = r"\mathbb{E}" if name == "E" and expected else name
    hat = {"_hat": r"\hat", "^": r"\hat", "bar": r"\bar", "~": r"\tilde"}.get(token.parts["accent"], "")
    below = token.parts["sub"].lstrip("_").strip("{}")
    above = (r"^{\ast}" if token.parts["star"] else "") + ("'" if token.parts["prime"] else "")
    return (rf"{hat}{{{name}}}" if hat else name) + (f"_{{{_inner(below)}}}" if below else "") + above


def _inner(below: str) -> str:
    """Return a subscript: letters as they are, words upright."""
    if below in ("*", r"\*"):
        return r"\ast"
    if not below.isalnum():
        for sign in ("<=", "!=", "<"):
            below = below.replace(sign, f" {RELATIONS.get(sign, chr(92) + 'lt')} ")
        return below
    return rf"\mathrm{{{below}}}" if re.fullmatch(r"[A-Za-z]{2,}", below) and below not in GREEK else below
