"""Errors in users' algorithms: reported once, with file and line of the user's code, and exit code 1."""

import importlib.util
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import bothworlds as bw
from bothworlds import environments as en
from bothworlds.errors import UserCodeError
from bothworlds.user_errors import fault_of
from support.command_line import called

BROKEN = """
import math
from typing import Annotated, NamedTuple

import numpy as np

import bothworlds as bw
from bothworlds import kernels as k


class Options(NamedTuple):
    total: float


class State(NamedTuple):
    t: Annotated[k.Floats, k.learnt()]
    pi: Annotated[k.Floats, k.planned("S", "K")]


@k.kernel  # refresh
def refresh(known, options: Options, state: State, work):
    for x in range(state.pi.shape[0]):
        for a in range(state.pi.shape[1]):
            state.pi[x, a] = options.total * known.e[x, a]
    return k.OK


@k.kernel
def refresh_by_words(known, options: Options, state: State, work):
    words = {0: 1.0, "one": 2.0}  # interpreted only
    for x in range(state.pi.shape[0]):
        for a in range(state.pi.shape[1]):
            state.pi[x, a] = words[0] * known.e[x, a]
    return k.OK


@k.kernel
def refresh_beyond(known, options: Options, state: State, work):
    for x in range(state.pi.shape[0]):
        state.pi[x, state.pi.shape[1]] = 1.0  # beyond
    return k.OK


@k.kernel
def learn(known, options, state, play, carried):
    state.t[0] += 1.0


class Sums(bw.Algorithm):
    total, kernel, begin = 1.0, staticmethod(refresh), {}

    def options(self):
        return Options(self.total)

    def machine(self, problem, frame=None):  # machine
        known = k.known_of(problem, k.even_play(problem.available), problem.features)
        kernel = k.build_kernel(self.kernel, k.choose_only, learn, together=True)
        return k.Machine(kernel=kernel, known=known, options=self.options(), begin=self.begin)


class Half(Sums):
    total = 0.5


class Nan(Sums):
    total = math.nan


class Fails(Sums):
    def options(self):
        return Options({}["total"])  # fails


class Shape(Sums):
    begin = {"pi": np.zeros((7, 9, 2))}


class Beyond(Sums):
    kernel = staticmethod(refresh_beyond)


class Words(Sums):
    kernel = staticmethod(refresh_by_words)


class Wide:
    def start(self, problem, *, rng):
        self.shape = (problem.n_contexts, problem.n_arms + 1)
        return self

    def probabilities(self):  # wide
        return np.full(self.shape, 1.0 / self.shape[1])

    def act(self, context):
        raise LookupError("never asked")

    def update(self, decision, *, loss):
        pass
"""
CASES = {  # class: (what its line ends with, what the sentence says)
    "Fails": ("# fails", "KeyError: 'total'"),
    "Nan": ("# refresh", "round 1: the probability of arm 0 in context 0 is nan"),
    "Half": ("# refresh", "round 1: the probabilities of context 0 sum to 0.5, not to 1"),
    "Shape": ("# machine", "begin has an array of shape (7, 9, 2) for 'pi', whose shape is ("),
    "Beyond": ("# beyond", "IndexError"),
    "Wide": ("# wide", "round 1: probabilities have shape"),
}
COMPARE = ("--regimes", "stochastic,corrupted", "--horizon", "30", "--instances", "1", "--replications", "2", "--quiet")


def line_of(mark: str) -> str:
    """Return how an error names the line of the file that ends with a mark."""
    [number] = [n for n, line in enumerate(BROKEN.splitlines(), 1) if line.endswith(mark)]
    return f"broken.py, line {number}, in "


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text(BROKEN)
    return tmp_path


@pytest.fixture
def module(folder: Path) -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("broken_of_a_test", folder / "broken.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    yield found
    del sys.modules[spec.name]


@pytest.mark.parametrize(("name", "mark", "words"), [(name, *case) for name, case in CASES.items()])
def test_each_command_says_it_once_with_file_and_line(folder: Path, name: str, mark: str, words: str) -> None:
    study = f"""
    horizon = 30
    replications = 2
    [environments.calm]
    kind = "stochastic"
    [environments.corrupted]
    kind = "corrupted"
    [algorithms.mine]
    kind = "broken.py:{name}"
    """
    (folder / "study.toml").write_text(study)
    for command in (
        ("check", f"broken.py:{name}"),
        ("compare", "--algorithms", f"broken.py:{name}", *COMPARE),
        ("run", "study.toml", "--quiet"),
    ):
        done = called(*command)
        said = done.stdout + done.stderr
        assert done.exit_code == 1, (command, said)
        assert said.count(line_of(mark)) == 1, (command, said)
        assert said.count(words) == 1, (command, said)
        assert "Traceback" not in said


@pytest.mark.parametrize(("name", "mark", "words"), [(name, *case) for name, case in CASES.items()])
def test_simulate_raises_it_with_file_and_line(module: ModuleType, name: str, mark: str, words: str) -> None:
    world = en.stochastic(en.random_instance(contexts=3, arms=3, dimension=3, gap=0.2))
    with pytest.raises(UserCodeError) as caught:
        bw.simulate(world, getattr(module, name)(), horizon=30)
    assert line_of(mark) in str(caught.value)
    assert words in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_kernel_that_does_not_compile(folder: Path) -> None:
    for command in (("check", "broken.py:Words"), ("compare", "--algorithms", "broken.py:Words", *COMPARE)):
        done = called(*command)
        said = done.stdout + done.stderr
        assert done.exit_code == 1, said
        assert said.count("cannot be compiled") == 1, said
        assert "broken.py, line " in said


def test_errors_of_a_users_world_and_of_an_import_have_a_line(folder: Path) -> None:
    instance = en.random_instance(contexts=3, arms=3, dimension=3, gap=0.2)

    def theta(t: int, probabilities: np.ndarray) -> np.ndarray:
        return np.asarray(instance.theta * (1 // (3 - t)) if t >= 3 else instance.theta)

    with pytest.raises(UserCodeError, match=r"test_user_errors.py, line \d+, in theta: ZeroDivisionError"):
        bw.simulate(en.from_function(instance.problem, theta), bw.FixedPolicy(), horizon=5)
    (folder / "unreadable.py").write_text("import bothworlds\nx = 1 / 0\n")
    done = called("check", "unreadable.py:X")
    assert (done.exit_code, "unreadable.py, line 2, in <module>: ZeroDivisionError" in done.stderr) == (3, True)


def test_what_is_wrong_with_a_table() -> None:
    offered = np.array([[True, False], [True, True]])
    assert fault_of([[1.0, 0.0], [0.5, 0.5]], offered) == ""
    assert "where it is not offered, is 0.5, not 0" in fault_of([[0.5, 0.5], [0.5, 0.5]], offered)
    assert "the probability of arm 1 in context 1 is -0.5" in fault_of([[1.0, 0.0], [1.5, -0.5]], offered)
