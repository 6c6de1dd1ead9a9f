"""The command line and the folders of its users: nothing of theirs is written over, and what is locked is told."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import bothworlds as bw
from bothworlds import report
from bothworlds.cli import main
from bothworlds.simulation import comparison, folder

SMALL = ["--horizon", "20", "--replications", "2", "--contexts", "2", "--arms", "2", "--dimension", "2", "--quiet"]
FEW = [*SMALL, "--algorithms", "uniform", "--regimes", "stochastic"]
STUDY = """
# mine, with a comment
name = "{name}"
horizon = 20
replications = 2
sizes = {{ contexts = 2, arms = 2, dimension = 2 }}
environments.calm = {{ kind = "stochastic" }}
algorithms.even = {{ kind = "uniform" }}
"""


def called(*arguments: str) -> Result:
    done = CliRunner().invoke(main, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def written(path: str, *, name: str = "mine") -> str:
    """Write a study, and return its text."""
    text = STUDY.format(name=name)
    Path(path).write_text(text, encoding="utf-8")
    return text


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_compare_does_not_write_over_a_study_in_the_present_folder(force: list[str]) -> None:
    text = written("study.toml")
    done = called("compare", *FEW, "--output", ".", *force)
    assert (done.exit_code, "study.toml is another study" in done.stderr) == (3, True), done.output
    assert os.listdir() == ["study.toml"]
    assert Path("study.toml").read_text(encoding="utf-8") == text


def test_compare_does_not_write_over_a_page_that_it_has_not_made() -> None:
    Path("report.html").write_text("mine", encoding="utf-8")
    done = called("compare", *FEW, "--output", ".")
    assert (done.exit_code, "report.html is there already" in done.stderr) == (1, True), done.output
    assert os.listdir() == ["report.html"]
    assert called("compare", *FEW, "--output", ".", "--force").exit_code == 0
    assert "<!DOCTYPE html>" in Path("report.html").read_text(encoding="utf-8")


def test_a_study_is_run_beside_itself_and_keeps_its_comments() -> None:
    text = written("study.toml")
    for _ in range(2):
        assert called("run", "study.toml", "--output", ".", "--quiet").exit_code == 0
        assert Path("study.toml").read_text(encoding="utf-8") == text
    assert len(report.summary_of(folder.read_folder(".")).panels) == 1


def test_a_folder_with_results_of_another_study_is_refused() -> None:
    written("a.toml", name="a")
    written("b.toml", name="b")
    assert called("run", "a.toml", "--output", "out", "--quiet").exit_code == 0
    kept = Path("out/study.toml").read_bytes()
    done = called("run", "b.toml", "--output", "out", "--quiet")
    assert (done.exit_code, "out has the results of another study, 'a'" in done.stderr) == (3, True), done.output
    assert Path("out/study.toml").read_bytes() == kept
    edited = Path("a.toml").read_text(encoding="utf-8").replace("horizon = 20", "horizon = 30")
    Path("a.toml").write_text(edited, encoding="utf-8")
    assert called("run", "a.toml", "--output", "out", "--quiet").exit_code == 0  # the same one, edited
    assert b"horizon = 30" in Path("out/study.toml").read_bytes()
    Path("out/study.toml").unlink()
    assert called("run", "b.toml", "--output", "out", "--quiet").exit_code == 0
    Path("out/study.toml").write_text("damaged", encoding="utf-8")
    folder.check_folder(bw.Study.from_toml("a.toml"), "out")  # whoever has results there may mend it


def test_studies_that_new_writes_are_called_as_their_files() -> None:
    for file in ("first.toml", "second one.toml", 'so "quoted".toml'):
        assert called("new", file).exit_code == 0
        assert bw.Study.from_toml(file).name == Path(file).stem
        hint = called("new", file, "--force").stderr.partition("then: ")[2]
        assert shlex.split(hint) == ["bothworlds", "run", file]


def test_new_takes_a_file_whose_name_has_two_lines() -> None:
    assert called("new", "one\ntwo.toml").exit_code == 0
    assert bw.Study.from_toml("one\ntwo.toml").name == "one\\ntwo"


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "results", "--output", "."],
        ["evaluate", "log.jsonl", "--policy", "uniform", "--output", "."],
        ["new", "."],
    ],
)
def test_a_folder_is_no_file_to_write_to(arguments: list[str]) -> None:
    done = called(*arguments)
    assert (done.exit_code, "is a directory" in done.stderr) == (2, True), done.output


@pytest.mark.parametrize(
    "arguments",
    [["compare", *FEW, "--output", ""], ["new", ""], ["evaluate", "log.jsonl", "--policy", "uniform", "--output", ""]],
    ids=lambda arguments: arguments[0],
)
def test_no_name_is_not_the_present_folder(arguments: list[str]) -> None:
    done = called(*arguments)
    assert (done.exit_code, "there is no name" in done.stderr) == (2, True), done.output
    assert os.listdir() == []


def test_what_is_no_folder_is_told_by_the_name_that_was_given() -> None:
    Path("file").write_text("", encoding="utf-8")
    done = called("new", "file/x.toml")
    assert (done.exit_code, done.stderr) == (1, "cannot write file/x.toml: Not a directory\n")


def refused(*_: Any, **__: Any) -> None:
    raise PermissionError(13, "Permission denied", "locked/study.toml")


@pytest.mark.parametrize(
    "arguments",
    [
        ["new", "locked/study.toml"],
        ["compare", *FEW, "--output", "locked"],
        ["run", "mine.toml", "--output", "locked", "--quiet"],
        ["show", "locked"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_folder_that_may_not_be_read(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    written("mine.toml")
    real = Path.stat
    monkeypatch.setattr(Path, "stat", lambda self, **how: (refused if "locked" in str(self) else real)(self, **how))
    done = called(*arguments)
    assert done.exit_code in (1, 3)
    assert done.stderr == "locked/study.toml: Permission denied\n"


def test_the_hint_how_to_go_on_goes_on() -> None:
    written("mine.toml")
    assert called("run", "mine.toml", "--output", "my results", "--quiet").exit_code == 0
    (cell,) = bw.Study.from_toml("mine.toml").cells()
    (Path("my results/cells") / f"{cell.key}.npz").unlink()
    done = called("show", "my results")
    assert done.exit_code == 3
    command = done.stderr.partition("run it: ")[2]
    assert called(*shlex.split(command)[1:], "--quiet").exit_code == 0
    assert called("show", "my results").exit_code == 0
    assert not Path("my results/study-results").exists()


def test_a_report_of_what_is_not_finished_says_how_to_go_on() -> None:
    text = written("mine.toml").replace(
        '{ kind = "uniform" }', '{ kind = "uniform" }\nalgorithms.other = { kind = "OFUL" }'
    )
    Path("mine.toml").write_text(text, encoding="utf-8")
    assert called("run", "mine.toml", "--quiet").exit_code == 0
    cells = {cell.algorithm: cell for cell in bw.Study.from_toml("mine.toml").cells()}
    (Path("mine-results/cells") / f"{cells['other'].key}.npz").unlink()
    for command in ("report", "show"):
        done = called(command, "mine-results")
        assert done.exit_code == 0
        assert done.stderr.endswith("; bothworlds run mine-results/study.toml --output mine-results\n")


def test_a_part_without_cells_speaks_json_too() -> None:
    written("mine.toml")
    (cell,) = bw.Study.from_toml("mine.toml").cells()
    parts = [called("run", "mine.toml", "--output", f"out-{i}", "--shard", f"{i}/2", "--json") for i in (1, 2)]
    assert [done.exit_code for done in parts] == [0, 0]
    told = [json.loads(done.stdout) for done in parts]
    assert sorted(len(one["regimes"]) for one in told) == [0, 1]
    assert sorted(one["missing"] for one in told) == [[], [cell.name]]
    empty = parts[[len(one["regimes"]) for one in told].index(0)]
    assert "1 are left to other parts" in empty.stderr
    again = called("run", "mine.toml", "--output", "out-3", "--shard", f"{parts.index(empty) + 1}/2")
    assert (again.stdout, again.exit_code) == ("", 0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", [["list"], ["bounds", "--json"]])
def test_a_full_disk_is_told_in_a_sentence(arguments: list[str]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        command = [sys.executable, "-m", "bothworlds", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "No space left on device\n")


@pytest.mark.parametrize(("end", "letters"), [(" >&-", "utf-8"), ("", "latin-1")])
def test_where_there_is_no_stdout_or_letters_are_few(end: str, letters: str) -> None:
    written("mine.toml")
    assert called("run", "mine.toml", "--quiet").exit_code == 0
    command = shlex.join([sys.executable, "-m", "bothworlds", "show", "mine-results"]) + end
    environment = {**os.environ, "PYTHONIOENCODING": letters}
    done = subprocess.run(command, shell=True, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_names_that_would_move_a_terminal_are_spelt() -> None:
    text = written("odd.toml", name="two\\nlines")
    for word, odd in (("calm", "calm\\u001b[2J"), ("even", "even\\nabc\\u202edef")):
        text = text.replace(f"s.{word}", f's."{odd}"')
    Path("odd.toml").write_text(text + 'environments.tired = { kind = "ad-fatigue" }\n', encoding="utf-8")
    for command in (["run", "odd.toml"], ["show", "odd-results"]):
        done = called(*command)
        assert done.exit_code == 0, done.output
        assert not set(done.output) & {"\x1b", "\u202e"}
        assert "even\\nabc\\u202edef" in done.stdout
        assert "\nabc" not in done.stdout.replace("\\nabc", "")
    (panel, _) = report.summary_of(folder.read_folder("odd-results")).panels
    assert (panel.name, panel.entries[0].label) == ("calm\x1b[2J", "even\nabc\u202edef")


def test_two_parts_of_one_name_are_both_compared() -> None:
    for place in ("a", "b"):
        Path(place).mkdir()
        text = f"# {place}\nimport bothworlds as bw\nLinUCB = Even = bw.FixedPolicy\n"
        for file in ("mine", "other"):
            Path(place, f"{file}.py").write_text(text, encoding="utf-8")
    names = "a/mine.py:Even,b/other.py:Even,b/mine.py:Even,a/other.py:Even,a/mine.py:LinUCB,LinUCB,a/mine.py:Even"
    study = comparison.comparison(algorithms=names.split(","), regimes=["stochastic"])
    labels = ["Even", "Even (other.py)", "Even (mine.py)", "Even (a/other.py)", "LinUCB (mine.py)", "LinUCB"]
    assert list(study.algorithms) == labels


@pytest.mark.parametrize(
    ("command", "file", "content"),
    [("check", "deep.toml", "a = " + "[" * 20_000), ("design", "deep.json", "[" * 200_000)],
)
def test_files_that_are_nested_too_deep(command: str, file: str, content: str) -> None:
    Path(file).write_text(content, encoding="utf-8")
    done = called(command, file)
    assert (done.exit_code, f"{file} is not" in done.stderr) == (3, True), done.output


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (["--horizon", "1e19"], "at most 2**53"),
        (["--horizon", "1e300"], "at most 2**53"),
        (["--horizon", "1" * 400], "at most 2**53"),
        (["--replications", "1e30"], "replications must be at most"),
        (["--seed", "1e40"], "seed must be at most"),
    ],
)
def test_more_than_can_be_counted(setting: list[str], words: str) -> None:
    done = called("compare", *FEW, *setting)
    assert (done.exit_code, words in done.stderr) == (2, True), done.output
    assert os.listdir() == []


def test_without_stderr_nothing_but_data_goes_to_stdout() -> None:
    written("mine.toml")
    command = shlex.join([sys.executable, "-m", "bothworlds", "run", "mine.toml", "--json"])
    done = subprocess.run(f"{command} 2>&-", shell=True, capture_output=True, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["regimes"]
