"""What newcomers write first: a reward without a name, a row of an array, a notebook that shows what they have."""

import copy
import warnings
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import bothworlds as bw

X = np.array([[0.5, 1.5], [2.5, 3.5], [0.5, 2.5], [0.5, 1.5]])


def clicks() -> bw.Problem:
    return bw.Problem.from_sample(["mobile", "desktop"], arms=["red", "blue"], reward_range=(0, 1))


def rows() -> bw.Problem:
    return bw.Problem.from_sample(X, arms=["red", "blue"], reward_range=(0, 1))


@pytest.mark.parametrize("algorithm", [bw.LCTsallisINF(), bw.LinUCB()], ids=["LCTsallisINF", "LinUCB"])
def test_a_number_without_a_name_is_the_reward(algorithm: bw.Algorithm) -> None:
    one, two = (algorithm.start(clicks(), rng=7) for _ in range(2))
    one.update(one.act("mobile"), 1)
    two.update(two.act("mobile"), reward=1)
    for values in ([1, 0, 1], (0, 0, 1), np.array([1.0, 0.0, 0.5])):
        one.update(one.act(["mobile", "desktop", 0]), values)
        two.update(two.act(["mobile", "desktop", 0]), reward=values)
    assert one.learnt().keys() == two.learnt().keys()
    assert all((one.learnt()[name] == two.learnt()[name]).all() for name in one.learnt())


def test_feedback_that_fits_nothing_is_refused_as_before() -> None:
    policy: Any = bw.LinUCB().start(clicks(), rng=7)
    decisions = policy.act(["mobile", "desktop"])
    for arguments, named, words in (
        ((decisions[0], 1), {"loss": 0.5}, "give either loss= or reward="),
        ((decisions[0],), {}, "give either loss= or reward="),
        ((decisions[0], 2), {}, "reward 2.0 is outside"),
        ((decisions[0], [1, 0]), {}, "reward must be a number"),
        ((decisions, 1), {}, "a batch of 2 decisions needs as many values"),
    ):
        with pytest.raises(ValueError, match=words):
            policy.update(*arguments, **named)
    assert policy.updates == 0
    policy.update(decisions, [1, 0])
    assert policy.updates == 2


def test_rewards_without_names_where_contexts_are_not_listed() -> None:
    problem = bw.SampledProblem(lambda rng: rng.uniform(), lambda x: [[1.0, x], [1.0, -x]], samples=100)
    policy = bw.RealFTRL(horizon=100, covariance="reservoir").start(problem, rng=7)
    policy.update(policy.act(context=0.5), 1)
    assert policy.updates == 1


def test_a_row_of_an_array_is_one_context() -> None:
    policy = bw.FixedPolicy(np.array([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])).start(rows(), rng=7)
    decision: Any = policy.act(X[1])
    assert decision.context == 1
    assert policy.probabilities(X[0]).tolist() == [0.25, 0.75]
    plan: Any = policy.plan()
    assert plan.act(X[2], id="visit 9").context == 2
    assert plan.probabilities(X[1]).tolist() == [0.5, 0.5]
    several: Any = policy.act(X)
    assert [made.context for made in several] == [0, 1, 2, 0]
    assert [made.context for made in policy.act(X[1:2])] == [1]
    assert [made.context for made in policy.act(np.array([2, 0]))] == [2, 0]  # whole numbers are indices
    unknown = np.array([7.5, 1.5])
    with pytest.raises(ValueError, match=r"^unknown context \[7.5, 1.5\]; the contexts are '0.5, 1.5', "):
        policy.act(unknown)
    with pytest.raises(ValueError, match=r"^a row of contexts has 2 values; got 3"):
        policy.act(np.array([0.5, 1.5, 2.5]))


def test_rows_of_words_and_of_single_values() -> None:
    words = np.array([["mobile", "new"], ["desktop", "known"]])
    problem = bw.Problem.from_sample(words, arms=2)
    assert problem.context_indices(words[1]) == 1
    assert problem.context_indices(np.array(["mobile, new", "desktop, known"])) == [0, 1]
    alone = bw.Problem.from_sample(np.array([0.5, 1.5]), arms=2)
    assert alone.context_indices(np.array([1.5, 0.5])) == [1, 0]
    mixed = np.array([["mobile", 2.5], ["desktop", 1.5]], dtype=object)
    assert bw.Problem.from_sample(mixed, arms=2).context_indices(mixed[1]) == 1


@pytest.mark.parametrize("given", [X, [0, 1], np.array([0, 1])], ids=["table", "list", "array"])
def test_several_contexts_where_one_is_needed_get_a_short_sentence(given: Any) -> None:
    plan: Any = bw.FixedPolicy().start(clicks(), rng=7).plan()
    for ask in (plan.act, plan.probabilities):
        with pytest.raises(ValueError, match=r"^this takes one context, and got \d of them; call it for each$"):
            ask(given)


def test_errors_of_long_names_stay_short() -> None:
    many = np.random.default_rng(7).random((300, 12))
    problem = bw.Problem.from_sample(many, arms=2)
    for given in (many[0] + 1.0, tuple((many[0] + 1.0).tolist()), "nobody", list(many[0])):
        with pytest.raises(ValueError, match="context") as error:
            problem.context_indices(given)
        assert len(str(error.value)) < 300, str(error.value)


def test_a_sample_of_floats_that_never_repeats_gets_a_warning() -> None:
    floats = np.random.default_rng(7).random((2000, 3))
    with pytest.warns(
        bw.ManyContextsWarning, match=r"2,000 of 2,000 rows .* Round or bin the columns of floats"
    ) as told:
        bw.Problem.from_sample(floats, arms=3)
    assert told[0].filename == __file__
    with pytest.warns(bw.ManyContextsWarning):
        bw.Problem.from_sample(floats, arms=2, features=lambda row, arm: [1.0, row[0] * (arm == "1")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bw.Problem.from_sample(floats.round(1), arms=3)  # the cure
        bw.Problem.from_sample(floats, arms=3, weights=np.ones(2000))  # a list of contexts
        bw.Problem.from_sample(floats[:400], arms=3)
        bw.Problem.from_sample(floats, arms=3, rare=0.01, other="the rest")


def test_what_is_printed_has_no_arrays() -> None:
    problem = bw.environments.random_instance(contexts=50, arms=20, dimension=40, gap=0.1).problem
    policy = bw.FixedPolicy(np.full((50, 20), 0.05)).start(problem, rng=7)
    decision = policy.act(0)
    found = bw.simulate(bw.environments.lower_bound(arms=2, horizon=50), bw.FixedPolicy(), horizon=50, replications=2)
    shown = [problem, policy, policy.plan(), decision, found, *found.runs.values()]
    for one in shown:
        assert len(repr(one)) < 200, repr(one)
        assert "array" not in repr(one)
        assert "\n" not in repr(one)
    assert repr(decision) == (f"Decision(context '0', arm {decision.arm_name!r}, propensity 0.05, id {decision.id!r})")
    assert repr(found).startswith("Results('lower bound'")
    assert copy.copy(decision).direction is decision.direction


class Balanced(HTMLParser):
    """Refuse what is opened and never closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_notebooks_show_small_tables_in_which_names_are_texts() -> None:
    evil = "<script>alert('x')</script>"
    problem = bw.Problem.from_sample([evil, *map(str, range(20))], arms=[evil, "blue"], reward_range=(0, 1))
    policy = bw.LinUCB().start(problem, rng=7)
    decision: Any = policy.act(evil)
    policy.update(decision, 1)
    parts: list[Any] = [problem, policy, policy.plan(), decision]
    for one in parts:
        html = one._repr_html_()
        Balanced(html)
        assert "<script>" not in html
        assert "&lt;script&gt;" in html
        assert len(html) < 5000
    assert "of 21 contexts and 2 arms" in policy._repr_html_()
    assert "<th>updates</th><td>1</td>" in policy._repr_html_()
