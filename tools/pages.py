"""What a page of docs/ is beside its HTML: its links, its marks, its Markdown for programs, its line of llms.txt."""

import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
UPWARD = re.compile(r"\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")
MARKS = re.compile(r"<!-- (?:n: *[\w.-]+|/n) -->|^<!-- (?:file: .*?|/file) -->\n", flags=re.MULTILINE)
FRONT = re.compile(r"\A---\n.*?\n---\n+", flags=re.DOTALL)
Nav = list[Any] | dict[str, Any] | str


class Entry(NamedTuple):
    """A page of the navigation: the sections above it, its title, its file below docs/."""

    sections: tuple[str, ...]
    title: str
    file: str


def expanded(nav: Nav, docs: Path) -> Nav:
    """Return a navigation in which every folder is a list of its pages, in the order of the links of its index."""
    if isinstance(nav, list):
        return [expanded(one, docs) for one in nav]
    if isinstance(nav, dict):
        return {title: expanded(inside, docs) for title, inside in nav.items()}
    return [nav + name for name in in_order(docs / nav)] if nav.endswith("/") else nav


def in_order(folder: Path) -> list[str]:
    """Return the pages of a folder: its index, then what the index links to, then the others."""
    linked = re.findall(r"\]\(([\w.-]+\.md)\)", (folder / "index.md").read_text(encoding="utf-8"))
    there = {path.name for path in folder.glob("*.md")}
    return list(dict.fromkeys(["index.md", *(name for name in linked if name in there), *sorted(there)]))


def entries(nav: Nav, docs: Path, sections: tuple[str, ...] = (), title: str = "") -> Iterator[Entry]:
    """Yield the pages of an expanded navigation."""
    if isinstance(nav, str):
        yield Entry(sections, title or title_of((docs / nav).read_text(encoding="utf-8")), nav)
    elif isinstance(nav, dict):
        for name, inside in nav.items():
            below = sections if isinstance(inside, str) else (*sections, name)
            yield from entries(inside, docs, below, name if isinstance(inside, str) else "")
    else:
        for one in nav:
            yield from entries(one, docs, sections)


def title_of(text: str) -> str:
    """Return the first heading of a page."""
    found = re.search(r"^# (.+)$", text, flags=re.MULTILINE)
    if found is None:
        raise ValueError(f"a page has no heading: {text[:60]!r}; begin it with a line '# Title'")
    return found[1].strip()


def first_sentence(text: str) -> str:
    r"""Return the first sentence of the running text of a page, without its marks of Markdown.

    >>> first_sentence("# Batches\n\nDecide for *many* visitors ([how](x.md)). Then learn.\n")
    'Decide for many visitors (how).'
    """
    bare = re.sub(r"^```.*?^```$|<!--.*?-->|^[#|][^\n]*$", "", FRONT.sub("", text), flags=re.MULTILINE | re.DOTALL)
    blocks = (" ".join(block.split()) for block in re.split(r"\n\s*\n", bare))
    first = next(filter(None, blocks), "")
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)|[*`]", lambda found: found[1] or "", first)
    return re.split(r"(?<=[.?!])\s", plain, maxsplit=1)[0]


def without_marks(text: str) -> str:
    """Return a page without the comments that say where numbers and files come from."""
    return MARKS.sub("", text)


def outside(text: str, file: str) -> set[str]:
    """Return the files and folders of the repository outside docs/ that a page links to."""
    return {path for target, _ in UPWARD.findall(text) if (path := _from_root(target, file)) is not None}


def _from_root(target: str, file: str) -> str | None:
    """Return a link's target from the root of the repository, or None for a target within docs/."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(file), target))
    return None if path.startswith("docs/") else path


def with_copies(text: str, file: str, *, folders: str = ".md") -> str:
    """Return a page whose links out of docs/ lead to the copies of those files in the site."""

    def moved(found: re.Match[str]) -> str:
        path = _from_root(found[1], file)
        if path is None:
            return found[0]
        place = re.sub(r"\.md$", folders, place_of(path))
        return f"]({posixpath.relpath(place, posixpath.dirname(file) or '.')})"

    return UPWARD.sub(moved, text)


def place_of(path: str) -> str:
    """Return where the copy of a file is in the site, or the page that lists a folder."""
    return f"files/{path}.md" if (ROOT / path).is_dir() else f"files/{path}.txt"


def copies(linked: Iterable[str]) -> dict[str, str]:
    """Return the content of every copy by its place; a folder becomes a list of its files, which are copied too."""
    found = {}
    for path in sorted(linked):
        if (ROOT / path).is_dir():
            inside = sorted(file for file in (ROOT / path).iterdir() if file.is_file())
            lines = [f"- [{file.name}]({Path(path).name}/{file.name}.txt)" for file in inside]
            found[place_of(path)] = "\n".join([f"# {path}", "", *lines, ""])
            found |= copies(file.relative_to(ROOT).as_posix() for file in inside)
        else:
            found[place_of(path)] = (ROOT / path).read_text(encoding="utf-8")
    return found


def for_programs(text: str, file: str) -> str:
    """Return the Markdown of a page as the site offers it beside the HTML."""
    return with_copies(without_marks(FRONT.sub("", text)), file, folders=".html")


def llms(name: str, about: str, pages: Iterable[tuple[Entry, str]]) -> str:
    """Return llms.txt: name and summary, and below their sections links to the Markdown of all pages."""
    sections: dict[str, list[str]] = {}
    for page, sentence in pages:
        sections.setdefault(": ".join(page.sections), []).append(f"- [{page.title}]({page.file}): {sentence}")
    parts = [f"# {name}\n\n> {about}\n"]
    parts += [f"## {section or 'Start'}\n\n" + "\n".join(lines) + "\n" for section, lines in sections.items()]
    return "\n".join(parts)
