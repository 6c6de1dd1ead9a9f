"""Documentation: links lead somewhere, names exist, commands parse, generated pages are fresh, examples run."""

import contextlib
import importlib
import importlib.util
import io
import json
import re
import shutil
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import click
import msgspec
import pytest
from click.testing import CliRunner

import bothworlds as bw
from bothworlds.algorithms.registry import algorithms
from bothworlds.cli import main
from bothworlds.service.settings import Settings
from support.documentation import (
    DOCS,
    HANDWRITTEN,
    MADE,
    PAGES,
    ROOT,
    blocks,
    commands,
    each_page,
    each_text,
    written,
)

PROGRAMS = {"bothworlds", "make", "python", "pip", "curl", "git", "cd", "source"}
MOST_WORDS = 31_000  # of the handwritten pages together, without blocks of code and output
RUN = {"list", "new", "bounds"}  # commands of the pages that are run here, where they name no file


def anchors(page: Path) -> set[str]:
    """Return the headings of a page as a browser is told to find them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


@each_text
def test_relative_links_exist(page: Path) -> None:
    missing, text = [], re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, anchor = target.partition("#")
        place = page.parent / path if path else page
        if "://" not in target and not (place.exists() and (not anchor or anchor in anchors(place))):
            missing.append(target)
    assert missing == []


@each_page
def test_nothing_is_taken_for_a_tag(page: Path) -> None:
    """`<phi, theta>` in running text would vanish from the site, and so would what stands behind a backslash."""
    text = re.sub(r"^```.*?^```$", "", written(page), flags=re.MULTILINE | re.DOTALL)
    running = re.sub(r"`[^`]*`|<!--.*?-->", "", text)
    assert re.findall(r"\\<.{0,20}|<[A-Za-z/!].{0,20}", running) == []


def resolve(name: str) -> object:
    """Import the longest module prefix, then follow attributes."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            found = getattr(found, attribute)
        return found
    raise ModuleNotFoundError(name)


@each_page
def test_dotted_names_exist(page: Path) -> None:
    for name in re.findall(r"`(bothworlds(?:\.\w+)+)`", page.read_text(encoding="utf-8")):
        assert resolve(name) is not None


@each_page
def test_public_names_exist(page: Path) -> None:
    for short, name in re.findall(r"`(bw|en)\.(\w+)", page.read_text(encoding="utf-8")):
        assert hasattr(bw if short == "bw" else bw.environments, name)


@each_page
def test_python_blocks_are_examples_that_run(page: Path) -> None:
    assert all(block.startswith(">>> ") for block in blocks(page, "python"))


@each_page
def test_toml_blocks_are_studies_or_settings(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # studies name files of examples/
    for block in blocks(page, "toml"):
        content = tomllib.loads(block)
        if "experiments" in content:
            msgspec.convert(content, Settings).check()
        else:
            assert list(bw.Study.from_dict(content).cells())


def parsed(arguments: list[str]) -> None:
    """Parse a command line as the program does: below its groups, or click would remember other names for help."""
    group: click.Group = main
    context, words = click.Context(main, info_name="bothworlds", **main.context_settings), arguments
    while words:
        name, command, rest = group.resolve_command(context, words)
        assert command is not None
        if not isinstance(command, click.Group):
            command.make_context(name, list(rest), parent=context)
            return
        group, context, words = command, click.Context(command, parent=context, info_name=name), list(rest)


@each_page
def test_command_lines_are_right(page: Path) -> None:
    """Ours parse (a wrong option or value is refused), and the cheap ones run; others name what is there."""
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for program, *words in commands(page):
        assert program in PROGRAMS, (program, words)
        if program == "bothworlds" and words[0] != "--version":
            parsed(words)
            if words[0] in RUN and not any(word.endswith((".json", ".npz")) for word in words):
                assert CliRunner().invoke(main, words).exit_code == 0, words
        elif program == "make":
            assert set(words) <= set(targets), words
        elif program == "curl":
            assert page.name == "service.md"  # where they are run: tests/service/test_service_docs.py
        elif program == "python" and words[0] != "-m":
            assert (ROOT / words[0]).exists(), words
        elif program == "pip":
            assert words[0] == "install", words


def code_of(page: Path) -> str:
    """Return what stands in the fenced blocks of a page."""
    return "\n".join(re.findall(r"^```.*?^```$", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL))


@each_page
def test_commands_can_be_pasted(page: Path) -> None:
    """No prompts; and nothing to install by a name that no package index has."""
    assert re.findall(r"^ *\$ .*", code_of(page), flags=re.MULTILINE) == []
    assert "```console" not in page.read_text(encoding="utf-8")
    assert "pip install " + "'bothworlds[" not in page.read_text(encoding="utf-8")


def test_readers_are_not_asked_for_too_much() -> None:
    """The README is short and has one picture; the handwritten pages fit into an afternoon."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 110
    (picture,) = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", readme)
    assert (ROOT / picture).stat().st_size < 50_000
    assert ElementTree.parse(ROOT / picture).getroot().tag.endswith("svg")
    assert {("make", "demo"), ("make", "test")} <= {tuple(words) for words in commands(ROOT / "README.md")}
    texts = [re.sub(r"<!--.*?-->", "", written(page)) for page in HANDWRITTEN]
    prose = [re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL) for text in texts]
    words, with_code = (sum(len(text.split()) for text in some) for some in (prose, texts))
    print(f"{words:,} words in {len(HANDWRITTEN)} handwritten pages, {with_code:,} with blocks of code and output")
    assert words <= MOST_WORDS


def test_commands_are_found_and_mistakes_too() -> None:
    assert [words for page in PAGES for words in commands(page) if words[:2] == ["bothworlds", "compare"]]
    for line in ("compare --horizn 5", "compair", "list nothing"):
        with pytest.raises(click.UsageError):
            parsed(line.split())


def tool(name: str) -> ModuleType:
    """Import a file of tools/."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_not_stale() -> None:
    assert tool("reference").stale() == [], "python tools/reference.py"
    assert MADE
    assert not [page.name for page in MADE if " at 0x" in page.read_text(encoding="utf-8")]


def test_a_stale_page_a_missing_one_and_one_too_many_are_found(tmp_path: Path) -> None:
    reference = tool("reference")
    reference.write(tmp_path)
    assert reference.stale(tmp_path) == []
    folder = tmp_path / "reference/api"
    (folder / "index.md").write_text("# API\n")
    (folder / "logs.md").unlink()
    (folder / "gone.md").write_text("# Gone\n")
    assert reference.stale(tmp_path) == [f"reference/api/{name}.md" for name in ("gone", "index", "logs")]
    reference.write(tmp_path)
    assert reference.stale(tmp_path) == []


def test_every_public_name_has_a_page() -> None:
    api = tool("api")
    with pytest.raises(ValueError, match="Policy"):
        api.check_complete(name for page in api.PAGES for name in page.names if page.home is bw and name != "Policy")


def test_every_algorithm_has_a_section_and_is_linked_from_the_cards() -> None:
    each = anchors(DOCS / "reference" / "api" / "algorithms.md")
    cards = (DOCS / "reference" / "algorithms.md").read_text(encoding="utf-8")
    for make in algorithms().values():
        name = make.__name__
        assert name.lower() in each
        assert f"(api/algorithms.md#{name.lower()})" in cards


def test_emphasis_is_kept_and_stars_are_not_taken_for_it() -> None:
    paragraph = tool("api").paragraph
    assert paragraph("Neu, *A title: one*, COLT; e* and Delta_* or a*b*c") == (
        r"Neu, *A title: one*, COLT; e\* and Delta_\* or a\*b\*c"
    )


def test_the_layers_are_those_of_the_import_contract_in_order() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    layers = next(one["layers"] for one in tools["importlinter"]["contracts"] if one["name"] == "Arrows point one way")
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    assert f"`{' -> '.join(layers).replace(' | ', ', ')}`" in page


def test_every_page_is_on_the_site_and_is_described() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^ +- .*: (\S+\.md)$", text, flags=re.MULTILINE)
    folders = re.findall(r"^ +- .*: (\S+)/$", text, flags=re.MULTILINE)
    assert sorted(listed) == sorted(page.relative_to(DOCS).as_posix() for page in HANDWRITTEN)
    assert {f"{folder}/{page.name}" for folder in folders for page in (DOCS / folder).glob("*.md")} == {
        page.relative_to(DOCS).as_posix() for page in MADE
    }
    described = dict(re.findall(r"^    (\S+\.md): (.+\.)$", text, flags=re.MULTILINE))
    assert described.keys() == set(listed)
    assert max(map(len, described.values())) < 120


def example(name: str, monkeypatch: pytest.MonkeyPatch, **smaller: Any) -> str:
    """Run an example, made smaller, and return what it prints."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    module = importlib.import_module(name)
    for constant, value in smaller.items():
        monkeypatch.setattr(module, constant, value)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        module.main()
    return out.getvalue()


def test_first_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "certified:" in example("first_decisions", monkeypatch, VISITORS=300)


def test_ads_with_fatigue(monkeypatch: pytest.MonkeyPatch) -> None:
    out = example("ads_with_fatigue", monkeypatch, ROUNDS=5000, REPLICATIONS=4)
    clicks = {name: int(count.replace(",", "")) for count, name in re.findall(r"([\d,]+)  (.*)", out)}
    # Measured: mixture 196, best ad at the start 190, matched 173, at random 148.
    assert clicks["best fixed mixture"] > clicks["best ad at the start, always"] > clicks["ads at random"]
    assert clicks["LC-Tsallis-INF, matched"] > clicks["ads at random"]


def test_a_corrupted_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    out = example("corrupted_experiment", monkeypatch, ROUNDS=4000, REPLICATIONS=2, INSTANCES=3, BUDGETS=(0, 500))
    calm, hit = ([float(word.replace(",", "")) for word in line.split()[1:]] for line in out.splitlines()[2:])
    assert calm[0] < calm[2]  # the optimist wins where nothing is wrong (measured: 14 against 50) ...
    assert hit[0] > hit[2]  # ... and loses to "matched" where the first rewards were (281 against 20)


def test_four_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    out = example("four_processes", monkeypatch, VISITS=300, KILLS=1)
    assert re.search(r"60\d decisions, 600 answered, .* computed again: all the same", out)


@pytest.mark.soak
def test_service_visits(monkeypatch: pytest.MonkeyPatch) -> None:
    out = example("service_visits", monkeypatch, VISITS=100)
    assert re.search(
        r"after a kill, visit 0 is still shown \w+, from version 0\n.*100 visits, \d+ clicks", out, flags=re.DOTALL
    )


def test_softmax(monkeypatch: pytest.MonkeyPatch) -> None:
    out = example("softmax", monkeypatch, ROUNDS=2000, REPLICATIONS=2)
    assert out.startswith("the algorithm conforms\n")
    assert out.count("  softmax\n") == 2


def test_the_notebook_is_made_from_its_script_and_runs(tmp_path: Path) -> None:
    made = tool("notebook")
    path = ROOT / "examples" / "tutorial.ipynb"
    content = path.read_text(encoding="utf-8")
    assert content == made.notebook(made.SCRIPT.read_text(encoding="utf-8")), "python tools/notebook.py"
    if shutil.which("jupyter") and importlib.util.find_spec("nbclient"):
        nbclient, nbformat = importlib.import_module("nbclient"), importlib.import_module("nbformat")
        nbclient.NotebookClient(nbformat.reads(content, 4), resources={"metadata": {"path": tmp_path}}).execute()
        return
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as out:
        for cell in json.loads(content)["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), names)
    assert "1001 updates are still there" in out.getvalue()
    assert names["clicks"] > names["at_random"]


def test_new_visitors(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "LC-Tsallis-INF:" in example("new_visitors", monkeypatch, VISITORS=200)
