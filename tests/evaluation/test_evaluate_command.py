"""`bothworlds evaluate`, its table, its data and its page."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import bothworlds as bw
from bothworlds.cli import main
from bothworlds.evaluation import evaluate
from bothworlds.logs import Log, Reward, read, row_of, write
from bothworlds.report.evaluation_page import evaluation_data, evaluation_page, evaluation_text
from support.evaluation_by_row import small_log, some_table


@pytest.fixture
def log() -> None:
    """A log, its problem and a plan, in the current folder."""
    names = {"contexts": ["day", "night"], "arms": ["red", "<blue>"]}
    problem = bw.Problem.from_sample(["day", "night"], arms=names["arms"], reward_range=(0, 1))
    policy = bw.LCTsallisINF(tuning="matched").start(problem, rng=1)
    plan, file = policy.plan(), Log("log.jsonl")
    made = [plan.act(["day", "night"][i % 2]) for i in range(400)]
    file.append(*(row_of(one, plan, time=0.0) for one in made))
    file.append(*(Reward(id=one.id, time=1.0, reward=float(one.arm)) for one in made[:399]))
    problem.save("problem.json")
    plan.save("plan.npz")
    policy.save("policy.npz")


def called(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["evaluate", "log.jsonl", *arguments])


@pytest.mark.usefixtures("log")
def test_a_plan_for_another_problem_is_refused_before_the_log_is_read() -> None:
    other = bw.Problem.from_sample(["day", "night"], arms=["red", "green"], reward_range=(0, 1))
    bw.LCTsallisINF(tuning="paper").start(other).plan().save("other.npz")
    Path("log.jsonl").write_text("not a log\n", encoding="utf-8")
    done = called("--problem", "problem.json", "--policy", "new=other.npz")
    assert done.exit_code == 3
    assert "is for other contexts or arms than the log's" in done.output


@pytest.mark.usefixtures("log")
def test_a_table_a_page_and_a_verdict() -> None:
    options = "--policy", "new=plan.npz", "--policy", "always <blue>", "--policy", "old=policy.npz", "--missing", "0"
    done = called(*options, "--against", "new", "--promote", "always <blue>", "--by", "0.2")
    assert done.exit_code == 0, done.output
    assert re.search(r"^always <blue> +[\d. ]+", done.output, flags=re.MULTILINE)
    assert "promote 'always <blue>': its value less that of 'new' lies in" in done.output
    page = Path("evaluation.html").read_text(encoding="utf-8")
    assert "always &lt;blue&gt;" in page
    assert "always <blue>" not in page
    assert not re.findall(r"(?:src|href)=\"?(?:https?:)?//", page)


@pytest.mark.usefixtures("log")
def test_json_has_no_messages_and_no_nan() -> None:
    done = called("--policy", "uniform", "--problem", "problem.json", "--missing", "drop", "--json", "--quiet",
                  "--against", "logging", "--promote", "uniform", "--output", "sub/page.html")  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["rows"] == 399
    assert found["promotes"] is False
    assert found["policies"]["logging"]["kind"] == "bernstein"
    assert found["policies"]["uniform"]["estimates"]["dm"]["error"] is None
    assert Path(found["page"]).exists()


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--policy", "uniform"], 2, "contexts and arms are not known"),
        (["--policy", "new=plan.npz"], 3, "1 of 400 rows have no reward"),
        (["--policy", "new=none.npz"], 3, "none.npz"),
        (["--policy", "new=plan.npz", "--missing", "no"], 2, "a number or 'drop'"),
        (["--policy", "new=plan.npz", "--missing", "0", "--policy", "worst"], 3, "unknown policy 'worst'"),
        (["--policy", "a=plan.npz", "--policy", "a=plan.npz"], 2, "two policies are called 'a'"),
        (["--policy", "new=plan.npz", "--promote", "new"], 2, "--promote needs --against"),
        (
            ["--policy", "new=plan.npz", "--missing", "0", "--against", "new", "--promote", "x"],
            2,
            "is not among the policies",
        ),
        (["--policy", "new=plan.npz", "--missing", "0", "--holdout", "only"], 3, "no rows"),
    ],
)
def test_mistakes_give_an_exit_code_and_a_message(options: list[str], code: int, words: str) -> None:
    done = called(*options, "--quiet")
    assert (done.exit_code, words in done.output) == (code, True), done.output


def test_text_data_and_page_agree() -> None:
    log = small_log(3, 500)
    found = evaluate(log, {"one": some_table(log)}, against="uniform")
    low, high = found["one"].interval
    text, data, page = evaluation_text(found), evaluation_data(found), evaluation_page(found, command="me & you")
    assert data["policies"]["one"]["interval"] == [low, high]
    for content in (text, page):
        assert f"{low:.4f} to {high:.4f}" in content
        assert "not a forecast" in content
    assert "me &amp; you" in page
    assert page.count("<svg") >= 1
    parser = _Balanced()
    parser.feed(page)
    assert parser.open == []


class _Balanced(HTMLParser):
    """Checks that every opened element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "link", "br", "path", "rect", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """Nothing stays open."""


WORDS = {"context": "device", "arm": "banner", "reward": "click", "propensity": "p"}


def table_called(*arguments: str, **named: str) -> Result:
    """Evaluate a CSV file whose columns are named; two of them have whole rows of probabilities."""
    problem = bw.Problem.from_sample(["day", "night"], arms=["red", "blue"], reward_range=(0, 1))
    problem.save("ads.json")
    cells = [
        ("day", "red", 1, 0.25, 0.25, 0.75),
        ("night", "blue", 0, 0.5, 0.5, 0.5),
        ("day", "blue", 1, 0.75, 0.25, 0.75),
    ]
    lines = ["device,banner,click,p,p_red,p_blue", *(",".join(map(str, row)) for row in cells * 20), ""]
    Path("clicks.csv").write_text("\n".join(lines), encoding="utf-8")
    columns = [part for field, name in named.items() for part in ("--column", f"{field}={name}")]
    common = ["evaluate", "clicks.csv", "--problem", "ads.json", "--policy", "uniform", "--json", "--quiet"]
    return CliRunner().invoke(main, [*common, *columns, *arguments])


def test_a_table_with_named_columns() -> None:
    done = table_called(**WORDS)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["rows"] == 60
    value = (0.5 / 0.25 + 0.0 + 0.5 / 0.75) / 3.0  # by hand: mean of weight times reward
    assert found["policies"]["uniform"]["estimates"]["ips"]["value"] == pytest.approx(value, rel=1e-12)


def test_whole_rows_in_columns_allow_to_evaluate_the_logging_policy() -> None:
    words = {name: WORDS[name] for name in ("context", "arm", "reward")}
    done = table_called("--against", "logging", **words, **{"probability:red": "p_red", "probability:blue": "p_blue"})
    assert done.exit_code == 0, done.output
    value = json.loads(done.stdout)["policies"]["logging"]["estimates"]["ips"]["value"]
    assert value == pytest.approx(2.0 / 3.0, rel=1e-12)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"colour": "banner"}, "FIELD=NAME"),
        ({"arm:red": "banner"}, "FIELD=NAME"),
        ({"arm": "banner", "context": "device", "reward": "click"}, "propensities"),
        ({**WORDS, "arm": "colour"}, "colour"),
        ({"context": "device", "reward": "click", "propensity": "p"}, "--column arm=NAME is missing"),
        ({}, "--column arm=NAME is missing"),
    ],
)
def test_missing_columns_are_named(columns: dict[str, str], sentence: str) -> None:
    done = table_called(**columns)
    assert done.exit_code != 0
    assert sentence in done.output
    assert "Traceback" not in done.output


@pytest.mark.usefixtures("log")
def test_files_of_our_schema_take_no_columns() -> None:
    done = called("--policy", "uniform", "--problem", "problem.json", "--column", "arm=banner")
    assert done.exit_code == 2
    assert "--column is for tables" in done.output


@pytest.mark.usefixtures("log")
def test_of_dsjson_arm_and_context_are_named() -> None:
    write((row for row in read("log.jsonl") if row.reward is not None), "log.dsjson")
    options = ["evaluate", "log.dsjson", "--problem", "problem.json", "--policy", "uniform", "--quiet", "--json"]
    done = CliRunner().invoke(main, options)
    assert json.loads(done.stdout)["rows"] == 399
    wrong = CliRunner().invoke(main, [*options, "--column", "arm=a", "--column", "reward=click"])
    assert (wrong.exit_code, "--column reward: of a .dsjson file" in wrong.output) == (2, True), wrong.output


def test_a_rounded_table_needs_a_tolerance() -> None:
    words = {name: WORDS[name] for name in ("context", "arm", "reward")}
    table_called(**words)
    text = Path("clicks.csv").read_text(encoding="utf-8").replace("0.25,0.75\n", "0.25,0.745\n")
    Path("rounded.csv").write_text(text, encoding="utf-8")
    columns = [part for field, name in words.items() for part in ("--column", f"{field}={name}")]
    columns += ["--column", "probability:red=p_red", "--column", "probability:blue=p_blue"]
    options = ["evaluate", "rounded.csv", "--problem", "ads.json", "--policy", "logging", "--json", "--quiet", *columns]
    refused = CliRunner().invoke(main, options)
    assert refused.exit_code == 3
    assert "sum to 0.995" in refused.output
    done = CliRunner().invoke(main, [*options, "--tolerance", "0.01"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rows"] == 60
