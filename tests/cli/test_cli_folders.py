"""The command line and users' folders: their files are not overwritten, and locked ones are reported."""

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
from bothworlds.studies import comparison, folder

SMALL = ["--horizon", "20", "--instances", "1", "--replications", "2", "--quiet"]
SMALL += ["--contexts", "2", "--arms", "2", "--dimension", "2"]
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


def write_study(path: str, *, name: str = "mine") -> str:
    """Write a study to a file and return its text."""
    text = STUDY.format(name=name)
    Path(path).write_text(text, encoding="utf-8")
    return text


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_compare_does_not_overwrite_a_study_in_the_current_folder(force: list[str]) -> None:
    text = write_study("study.toml")
    done = called("compare", *FEW, "--output", ".", *force)
    assert (done.exit_code, "study.toml is another study" in done.stderr) == (3, True), done.output
    assert os.listdir() == ["study.toml"]
    assert Path("study.toml").read_text(encoding="utf-8") == text


def test_compare_does_not_overwrite_a_page_of_others() -> None:
    Path("report.html").write_text("mine", encoding="utf-8")
    done = called("compare", *FEW, "--output", ".")
    assert (done.exit_code, "report.html exists already" in done.stderr) == (1, True), done.output
    assert os.listdir() == ["report.html"]
    assert called("compare", *FEW, "--output", ".", "--force").exit_code == 0
    assert "<!DOCTYPE html>" in Path("report.html").read_text(encoding="utf-8")


def test_a_study_can_run_in_its_own_folder_and_keeps_its_comments() -> None:
    text = write_study("study.toml")
    for _ in range(2):
        assert called("run", "study.toml", "--output", ".", "--quiet").exit_code == 0
        assert Path("study.toml").read_text(encoding="utf-8") == text
    assert len(report.summary_of(folder.read_folder(".")).panels) == 1


def test_a_folder_with_results_of_another_study_is_refused() -> None:
    write_study("a.toml", name="a")
    write_study("b.toml", name="b")
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
    folder.check_folder(bw.Study.from_toml("a.toml"), "out")  # a damaged study does not block its results


def test_new_names_studies_after_their_files() -> None:
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
def test_a_folder_is_refused_as_an_output_file(arguments: list[str]) -> None:
    done = called(*arguments)
    assert (done.exit_code, "is a directory" in done.stderr) == (2, True), done.output


@pytest.mark.parametrize(
    "arguments",
    [["compare", *FEW, "--output", ""], ["new", ""], ["evaluate", "log.jsonl", "--policy", "uniform", "--output", ""]],
    ids=lambda arguments: arguments[0],
)
def test_an_empty_name_is_not_the_current_folder(arguments: list[str]) -> None:
    done = called(*arguments)
    assert (done.exit_code, "the name is empty" in done.stderr) == (2, True), done.output
    assert os.listdir() == []


def test_an_error_has_the_path_as_given() -> None:
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
def test_a_folder_without_permission(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    write_study("mine.toml")
    real = Path.stat
    monkeypatch.setattr(Path, "stat", lambda self, **how: (refused if "locked" in str(self) else real)(self, **how))
    done = called(*arguments)
    assert done.exit_code in (1, 3)
    assert done.stderr == "locked/study.toml: Permission denied\n"


def test_the_suggested_command_resumes_the_study() -> None:
    write_study("mine.toml")
    assert called("run", "mine.toml", "--output", "my results", "--quiet").exit_code == 0
    (cell,) = bw.Study.from_toml("mine.toml").cells()
    (Path("my results/cells") / f"{cell.key}.npz").unlink()
    done = called("show", "my results")
    assert done.exit_code == 3
    command = done.stderr.partition("run it: ")[2]
    assert called(*shlex.split(command)[1:], "--quiet").exit_code == 0
    assert called("show", "my results").exit_code == 0
    assert not Path("my results/study-results").exists()


def test_a_report_of_an_unfinished_study_suggests_a_command() -> None:
    text = write_study("mine.toml").replace(
        '{ kind = "uniform" }', '{ kind = "uniform" }\nalgorithms.other = { kind = "OFUL" }'
    )
    Path("mine.toml").write_text(text, encoding="utf-8")
    assert called("run", "mine.toml", "--quiet").exit_code == 0
    cells = {cell.algorithm: cell for cell in bw.Study.from_toml("mine.toml").cells()}
    (Path("mine-results/cells") / f"{cells['other'].key}.npz").unlink()
    for command in ("report", "show"):
        done = called(command, "mine-results")
        assert done.exit_code == 0
        assert done.stderr.endswith(" bothworlds run mine-results/study.toml --output mine-results\n")


def test_a_shard_without_cells_prints_json() -> None:
    write_study("mine.toml")
    (cell,) = bw.Study.from_toml("mine.toml").cells()
    parts = [called("run", "mine.toml", "--output", f"out-{i}", "--shard", f"{i}/2", "--json") for i in (1, 2)]
    assert [done.exit_code for done in parts] == [0, 0]
    results = [json.loads(done.stdout) for done in parts]
    assert sorted(len(result["regimes"]) for result in results) == [0, 1]
    assert sorted(result["missing"] for result in results) == [[], [cell.name]]
    empty = parts[[len(result["regimes"]) for result in results].index(0)]
    assert "1 are left to other parts" in empty.stderr
    again = called("run", "mine.toml", "--output", "out-3", "--shard", f"{parts.index(empty) + 1}/2")
    assert (again.stdout, again.exit_code) == ("", 0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", [["list"], ["bounds", "--json"]])
def test_a_full_disk_gives_a_message_without_a_traceback(arguments: list[str]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        command = [sys.executable, "-m", "bothworlds", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "No space left on device\n")


@pytest.mark.parametrize(("end", "letters"), [(" >&-", "utf-8"), ("", "latin-1")])
def test_a_closed_stdout_or_a_small_encoding(end: str, letters: str) -> None:
    write_study("mine.toml")
    assert called("run", "mine.toml", "--quiet").exit_code == 0
    command = shlex.join([sys.executable, "-m", "bothworlds", "show", "mine-results"]) + end
    environment = {**os.environ, "PYTHONIOENCODING": letters}
    done = subprocess.run(command, shell=True, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_control_characters_in_names_are_escaped() -> None:
    text = write_study("odd.toml", name="two\\nlines")
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


def test_two_classes_of_one_name_are_both_compared() -> None:
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
        (["--instances", "1e30"], "instances must be at most"),
    ],
)
def test_numbers_that_are_too_large(setting: list[str], words: str) -> None:
    done = called("compare", *FEW, *setting)
    assert (done.exit_code, words in done.stderr) == (2, True), done.output
    assert os.listdir() == []


def test_without_stderr_only_data_goes_to_stdout() -> None:
    write_study("mine.toml")
    command = shlex.join([sys.executable, "-m", "bothworlds", "run", "mine.toml", "--json"])
    done = subprocess.run(f"{command} 2>&-", shell=True, capture_output=True, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["regimes"]
