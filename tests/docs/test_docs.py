"""Documentation: links lead somewhere, names exist, commands parse, generated pages are fresh, examples run."""

import contextlib
import importlib
import importlib.util
import io
import json
import re
import shutil
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import click
import msgspec
import pytest
from click.testing import CliRunner

import bothworlds as bw
from bothworlds.algorithms.registry import algorithms
from bothworlds.cli import main
from bothworlds.service.settings import Settings
from documentation import ROOT, blocks, commands, each_page

RUN = {"list", "new", "bounds"}  # commands of the pages that are run here, where they name no file


def anchors(page: Path) -> set[str]:
    """Return the headings of a page as a browser is told to find them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


@each_page
def test_relative_links_exist(page: Path) -> None:
    missing = []
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        place = page.parent / path if path else page
        if "://" not in target and not (place.exists() and (not anchor or anchor in anchors(place))):
            missing.append(target)
    assert missing == []


@each_page
def test_nothing_is_taken_for_a_tag(page: Path) -> None:
    """`<phi, theta>` in running text would vanish from the site, and so would what stands behind a backslash."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
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
def test_toml_blocks_are_studies_or_settings(page: Path) -> None:
    for block in blocks(page, "toml"):
        content = tomllib.loads(block)
        if "experiments" in content:
            msgspec.convert(content, Settings).check()
        else:
            assert list(bw.Study.from_dict(content).cells())


def parsed(name: str, arguments: list[str]) -> None:
    """Parse a command line as the program does: below the group, or click would remember other names for help."""
    parent = click.Context(main, info_name="bothworlds", **main.context_settings)
    command = main.get_command(parent, name)
    assert command is not None
    command.make_context(name, list(arguments), parent=parent)


@each_page
def test_command_lines_are_right(page: Path) -> None:
    """Ours parse (a wrong option or value is refused), and the cheap ones run; others name what is there."""
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for program, *words in commands(page):
        if program == "bothworlds":
            name, *arguments = words
            parsed(name, arguments)
            if name in RUN and not any(word.endswith(".json") for word in arguments):
                assert CliRunner().invoke(main, words).exit_code == 0, words
        elif program == "make":
            assert set(words) <= set(targets), words
        elif program == "curl":
            assert page.name == "service.md"  # where they are run: tests/service/test_service_docs.py
        elif program == "python":
            assert (ROOT / words[0]).exists(), words
        else:
            assert (program, words[0]) == ("pip", "install")


def test_commands_are_found_and_mistakes_too() -> None:
    assert ["bothworlds", "compare"] in commands(ROOT / "docs" / "index.md")
    with pytest.raises(Exception, match="No such option"):
        parsed("compare", ["--horizn", "5"])


def tool(name: str) -> ModuleType:
    """Import a file of tools/."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_api_pages_are_not_stale() -> None:
    api = tool("api")
    command = "python tools/api.py > docs/api.md; python tools/api.py algorithms > docs/each-algorithm.md"
    for name, made in (("api.md", api.page()), ("each-algorithm.md", api.algorithms_page())):
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == made, command
        assert " at 0x" not in made


def test_the_section_of_ten_million_rounds_is_not_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "studies")
    study = importlib.import_module("ten_million")
    made = study.text(json.loads(study.DATA.read_text(encoding="utf-8")))
    assert made in study.PAGE.read_text(encoding="utf-8"), "python studies/ten_million.py page"


def test_every_algorithm_has_a_section_and_is_linked_from_the_table() -> None:
    each = anchors(ROOT / "docs" / "each-algorithm.md")
    table = (ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8")
    for make in algorithms().values():
        name = make.__name__
        assert name.lower() in each
        assert f"[`{name}`](each-algorithm.md#{name.lower()})" in table


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


def test_every_page_is_on_the_site() -> None:
    listed = re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(listed) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))


def test_files_outside_the_pages_are_copied_to_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the builder is told, without the builder: every link out of docs/ leads to a copy, folders included."""
    builder = ("latex2mathml", "latex2mathml.converter", "mkdocs", "mkdocs.structure", "mkdocs.structure.files")
    for name in builder:
        monkeypatch.setitem(sys.modules, name, MagicMock())
    site = tool("site_hooks")
    pages = {page: page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md")}
    linked = {path for text in pages.values() for path in site.OUTSIDE.findall(text)}
    made = site.copies(linked)
    assert {"files/studies.md", "files/studies/first.toml.txt", "files/examples/own_world.py.txt"} <= set(made)
    assert all(made.values())
    for text in pages.values():
        shown = site.OUTSIDE.sub(lambda found: f"]({site.place_of(found[1])})", text)
        assert "](../" not in shown
        assert set(re.findall(r"\]\((files/[^)]+)\)", shown)) <= set(made)
    inside = re.findall(r"\]\(([^)]+)\)", made["files/studies.md"])
    assert inside
    assert all(f"files/{place}" in made for place in inside)


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


def test_own_algorithm(monkeypatch: pytest.MonkeyPatch) -> None:
    out = example("own_algorithm", monkeypatch, ROUNDS=2000, REPLICATIONS=2)
    assert out.startswith("the algorithm conforms\n")
    assert out.count("epsilon-greedy") == 2


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
