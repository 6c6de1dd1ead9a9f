"""What the site makes of pages besides HTML: the navigation, links to copies, Markdown, llms.txt."""

import re
from pathlib import Path

import pages as site
import pytest

from support.documentation import DOCS, HANDWRITTEN

NAV: site.Nav = [{"Home": "index.md"}, {"Reference": [{"Terms": "terms.md"}, {"API": "api/"}]}]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Make a folder of pages, one of its folders generated."""
    (tmp_path / "api").mkdir()
    (tmp_path / "index.md").write_text("# Home\n\nStart *here*. Then go on.\n")
    (tmp_path / "terms.md").write_text("# Terms\n\nOne word, one meaning.\n")
    (tmp_path / "api" / "index.md").write_text("# API\n\nAll names.\n\n- [Z](z.md): last\n- [A](a.md): first\n")
    for name in "az":
        (tmp_path / "api" / f"{name}.md").write_text(f"# Page {name}\n\nAbout {name}.\n")
    (tmp_path / "api" / "extra.md").write_text("# Extra\n\nNot in the index.\n")
    return tmp_path


def test_a_folder_stands_for_its_pages_in_the_order_of_its_index(docs: Path) -> None:
    folder = {"API": ["api/index.md", "api/z.md", "api/a.md", "api/extra.md"]}
    assert site.expanded(NAV, docs) == [{"Home": "index.md"}, {"Reference": [{"Terms": "terms.md"}, folder]}]


def test_llms_txt_has_every_page_in_its_section_with_a_sentence(docs: Path) -> None:
    found = list(site.entries(site.expanded(NAV, docs), docs))
    sentences = [(page, site.first_sentence((docs / page.file).read_text())) for page in found]
    assert site.llms("x", "What x is", sentences) == (
        "# x\n\n> What x is\n\n## Start\n\n- [Home](index.md): Start here.\n\n"
        "## Reference\n\n- [Terms](terms.md): One word, one meaning.\n\n## Reference: API\n\n"
        "- [API](api/index.md): All names.\n- [Page z](api/z.md): About z.\n- [Page a](api/a.md): About a.\n"
        "- [Extra](api/extra.md): Not in the index.\n"
    )


def test_a_page_without_a_heading_is_refused(docs: Path) -> None:
    (docs / "api" / "a.md").write_text("About a.\n")
    with pytest.raises(ValueError, match="has no heading"):
        list(site.entries(site.expanded(NAV, docs), docs))


def test_links_out_of_the_pages_lead_to_copies_and_others_stay() -> None:
    text = "[a](../../studies/first.toml) [b](../api/z.md#x) [c](../../studies) [d](../../research/x.md#y) [e](https://x.y)"
    assert site.with_copies(text, "how-to/studies.md") == (
        "[a](../files/studies/first.toml.txt) [b](../api/z.md#x) [c](../files/studies.md) "
        "[d](../files/research/x.md.txt) [e](https://x.y)"
    )
    assert site.outside(text, "how-to/studies.md") == {"studies/first.toml", "studies", "research/x.md"}
    assert site.with_copies("[c](../studies)", "index.md", folders=".html") == "[c](files/studies.html)"


def test_files_outside_the_pages_are_copied_to_the_site() -> None:
    """Every link out of docs/ leads to a copy, folders included."""
    made = site.copies({"studies", "examples/own_world.py"})
    assert {"files/studies.md", "files/studies/first.toml.txt", "files/examples/own_world.py.txt"} <= set(made)
    inside = re.findall(r"\]\(([^)]+)\)", made["files/studies.md"])
    assert inside
    assert all(f"files/{place}" in made for place in inside)
    for page in HANDWRITTEN:
        place, text = page.relative_to(DOCS).as_posix(), page.read_text(encoding="utf-8")
        assert all(site.copies(site.outside(text, place)).values())


def test_programs_read_pages_without_front_matter_and_marks() -> None:
    text = (
        "---\ntags: [x]\n---\n# A\n\nScore <!-- n:score -->1.68<!-- /n -->, [code](../examples).\n\n"
        "<!-- file: a.py -->\n```python\nx\n```\n<!-- /file -->\n\nEnd.\n"
    )
    wanted = "# A\n\nScore 1.68, [code](files/examples.html).\n\n```python\nx\n```\n\nEnd.\n"
    assert site.for_programs(text, "index.md") == wanted
