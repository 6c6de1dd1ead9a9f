"""The list of tools/mutations.py, which is run by hand, is up to date: lines are found once, and so are their tests."""

import re
from pathlib import Path

import mutations
import pytest

ROOT = Path(__file__).parents[2]

LIST = mutations.mutations()


@pytest.mark.parametrize("mutation", LIST, ids=str)
def test_every_line_stands_where_the_list_says(mutation: mutations.Mutation) -> None:
    places = mutations.places_of(mutation)
    assert len(places) == 1, (
        f"{mutation.function}: {len(places)} lines read {mutation.old!r}; correct tools/mutations.toml"
    )
    assert mutation.new != mutation.old
    assert bool(mutation.tests) is not bool(mutation.equivalent)
    for test in mutation.tests:
        path, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / path).read_text()


def test_there_are_enough_and_no_two_are_the_same() -> None:
    assert len({(one.function, one.old, one.new) for one in LIST}) == len(LIST) >= 60


def test_a_mutation_is_applied_to_a_copy_and_tests_run_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A package of one function, with a test that sees one of two mutations, and a line that is not there."""
    package = tmp_path / "src" / "tiny"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("class Pair:\n    def double(self, x):\n        y = 2 * x\n        return y\n")
    (tmp_path / "test_tiny.py").write_text("import tiny\ndef test_it():\n    assert tiny.Pair().double(2) == 4\n")
    rows = [("y = 3 * x", ""), ("y = x * x", ""), ("y = x + x", "the same number")]
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # such tests need none
    monkeypatch.setattr(mutations, "ROOT", tmp_path)
    monkeypatch.setattr(mutations, "PACKAGE", package)
    listed = [
        mutations.Mutation(function="Pair.double", old="y = 2 * x", new=new, tests=("test_tiny.py",), equivalent=why)
        for new, why in rows
    ]
    gone = mutations.Mutation(function="Pair.double", old="y = 5 * x", new="y = x", tests=("test_tiny.py",))
    monkeypatch.setattr(mutations, "mutations", lambda: [*listed, gone])
    assert mutations.main([]) == 1
    printed = [re.split(r"  +| Pair", line)[0] for line in capsys.readouterr().out.splitlines()]
    assert printed[:4] == ["caught", "SURVIVED", "equivalent", "not found (0 places)"]
    assert "2 * x" in (package / "__init__.py").read_text()
    monkeypatch.setattr(mutations, "mutations", lambda: [listed[2]])
    assert mutations.main(["--only", "x + x"]) == 0
    assert mutations.main(["--list"]) == 0
    with pytest.raises(SystemExit):
        mutations.main(["--only", "nowhere"])
    assert "contain 'nowhere'" in capsys.readouterr().err
