"""Numbers and files on pages: values come from one place, and whatever is wrong with a mark is an error."""

from pathlib import Path

import page_numbers as tool
import pytest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Make a repository with a page, a key and a file."""
    for folder in ("docs/how-to", "research", "examples"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "README.md").write_text("It scores <!-- n:score-x -->1.68<!-- /n -->.\n")
    (tmp_path / "docs/how-to/a.md").write_text("Here **<!-- n:score-x -->1.68<!-- /n -->**, too.\n")
    (tmp_path / "docs/numbers.toml").write_text('score-x = "1.68"  # a source\n')
    (tmp_path / "examples/a.py").write_text('"""Add.\n\n>>> 1 + 1\n2\n"""\n\nprint(1 + 1)\n')
    return tmp_path


def page(root: Path, text: str) -> str:
    """Write a further page and return its errors."""
    (root / "docs/how-to/b.md").write_text(text)
    return "; ".join(tool.errors(root))


def test_pages_that_are_filled_have_no_errors(root: Path) -> None:
    assert tool.errors(root) == []
    assert page(root, "Marks within code are text: `<!-- n:key -->1<!-- /n -->`\n\n```text\n<!-- /n -->\n```\n") == ""


def test_a_new_value_reaches_every_page(root: Path) -> None:
    (root / "docs/numbers.toml").write_text('score-x = "2.5"\n')
    stale = [line for line in tool.errors(root) if "is stale" in line]
    assert [line.partition(" ")[0] for line in stale] == ["README.md", "docs/how-to/a.md"]
    tool.write(root)
    assert tool.errors(root) == []
    assert (root / "README.md").read_text() == "It scores <!-- n:score-x -->2.5<!-- /n -->.\n"
    assert (root / "docs/how-to/a.md").read_text() == "Here **<!-- n:score-x -->2.5<!-- /n -->**, too.\n"


def test_a_number_that_was_changed_by_hand_is_found(root: Path) -> None:
    assert "docs/how-to/b.md is stale" in page(root, "<!-- n:score-x -->1.77<!-- /n -->\n")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("so\n\n<!-- n:score-y -->1<!-- /n -->\n", "docs/how-to/b.md, line 3: no key 'score-y'"),
        ("<!-- n:score-x -->1.68\n", "line 1: <!-- n:score-x --> has no partner"),
        ("1.68<!-- /n -->\n", "line 1: <!-- /n --> has no partner"),
        ("<!-- n:score-x -->1 <!-- n:score-x -->1.68<!-- /n -->\n", "<!-- n:score-x --> has no partner"),
        ("<!--n:score-x-->1.68<!-- /n -->\n", "has no partner"),
        ("<!-- file: examples/none.py -->\n<!-- /file -->\n", "no file examples/none.py"),
        ("<!-- file: examples/a.py -->\n", "<!-- file: examples/a.py --> has no partner"),
        ("x\n<!-- /file -->\n", "line 2: <!-- /file --> has no partner"),
        ("<!-- file: examples/a.py -->\n<!-- file: examples/a.py -->\n<!-- /file -->\n", "has no partner"),
    ],
)
def test_wrong_marks_are_errors(root: Path, text: str, error: str) -> None:
    assert error in page(root, text)


def test_a_key_that_no_page_uses_is_an_error(root: Path) -> None:
    (root / "docs/numbers.toml").write_text('score-x = "1.68"\nspare = "1"\n')
    assert tool.errors(root)[0].startswith("docs/numbers.toml: no page uses spare")


def test_values_are_strings_and_keys_occur_once(root: Path) -> None:
    (root / "docs/numbers.toml").write_text("score-x = 1.68\n")
    with pytest.raises(ValueError, match="not a string"):
        tool.errors(root)
    (root / "docs/numbers.toml").write_text('score-x = "1.68"\nscore-x = "1.69"\n')
    with pytest.raises(ValueError, match="Cannot overwrite"):
        tool.errors(root)


def test_files_are_shown_whole_but_for_their_doctests(root: Path) -> None:
    (root / "docs/how-to/b.md").write_text("See\n\n<!-- file: examples/a.py -->\nold\n\nold\n<!-- /file -->\n\nend\n")
    tool.write(root)
    shown = '```python\n"""Add."""\n\nprint(1 + 1)\n```'
    wanted = f"See\n\n<!-- file: examples/a.py -->\n{shown}\n<!-- /file -->\n\nend\n"
    assert (root / "docs/how-to/b.md").read_text() == wanted
    assert tool.errors(root) == []
    (root / "examples/a.py").write_text("print(3)\n")
    assert "docs/how-to/b.md is stale" in "; ".join(tool.errors(root))


def test_values_that_data_determine_must_agree(root: Path) -> None:
    data = tool.computed()
    assert list(tool.disagreements({"score-default": f"{data['score-default']:.2f}"}, data)) == []
    wrong = {"score-default": f"{data['score-default'] + 0.01:.2f}"}
    assert len(list(tool.disagreements(wrong, data))) == 1
    (root / "README.md").write_text("<!-- n:score-x -->1.68<!-- /n --> <!-- n:score-default -->9.99<!-- /n -->\n")
    (root / "docs/numbers.toml").write_text('score-x = "1.68"\nscore-default = "9.99"\n')
    assert "score-default = '9.99', but the data say" in "; ".join(tool.errors(root))


def test_the_pages_of_this_repository_are_filled() -> None:
    assert tool.errors() == []
