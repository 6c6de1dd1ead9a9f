"""The page in a real browser, where there is one: chromium, headless, offline."""

import base64
import contextlib
import csv
import gzip
import html
import io
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import bothworlds as bw
from bothworlds.cli import main
from bothworlds.report import page
from bothworlds.report.evaluation_page import evaluation_page
from bothworlds.report.figures import all_charts
from bothworlds.report.picture import picture
from bothworlds.report.theorems import theorem_bounds
from bothworlds.simulation.results import load_results
from bothworlds.studies.comparison import comparison
from support.browser import BROWSER, CHROMIUM
from support.evaluation_by_row import small_log, some_table
from support.report_study import CONTENT, made_page, made_summary, summary_from
from support.soak import size

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the browser chromium"),
]

ANSWER = """<script>
const say = found => { const pre = document.createElement("pre"); pre.id = "found";
  pre.textContent = JSON.stringify(found); document.body.append(pre); };
%s
</script></body>"""


def asked(text: str, script: str, folder: Path, *options: str) -> Any:
    """Open a page, run a script in it that says something, and return what it said; errors on the console fail."""
    path = folder / "page.html"
    path.write_text(text.replace("</body>", ANSWER % script), encoding="utf-8")
    done = subprocess.run([*BROWSER, *options, path.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, flags=re.DOTALL)
    assert found is not None
    return json.loads(html.unescape(found[1]))


TOGGLE = """
const button = document.querySelector('.legend button[data-algorithm="1"]');
const parts = [...document.querySelectorAll('svg g[data-algorithm="1"]')];
const others = [...document.querySelectorAll('svg g[data-algorithm="0"]')];
const hidden = some => some.filter(part => getComputedStyle(part).display === "none").length;
const pressed = () => [...document.querySelectorAll('.legend button[data-algorithm="1"]')]
  .map(same => same.getAttribute("aria-pressed"));
const states = [[hidden(parts), hidden(others), pressed()]];
for (let i = 0; i < 2; i++) { button.click(); states.push([hidden(parts), hidden(others), pressed()]); }
say({count: parts.length, states});
"""


def test_buttons_of_the_legend_hide_and_show_an_algorithm_in_every_chart(tmp_path: Path) -> None:
    found = asked(made_page(), TOGGLE, tmp_path)
    count = found["count"]
    summary = made_summary()
    main_picture = picture(summary)
    assert main_picture is not None
    charts = [*main_picture.charts, *all_charts(summary, theorem_bounds(summary))]
    assert len(charts) == 14  # the picture's, the strip; in each of three regimes two of regret, exponents, exploration
    assert count == sum(line.number == 1 for chart in charts for line in chart.lines) >= 13
    on, off = ["true"] * 4, ["false"] * 4
    assert found["states"] == [[0, 0, on], [count, 0, off], [0, 0, on]]


@contextlib.contextmanager
def served(text: str) -> Iterator[tuple[int, list[str]]]:
    """Serve a page on this machine; yield the port, and the list of what is asked for."""
    wanted: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted.append(f"{self.headers['Host'].partition(':')[0]}{self.path}")
            self.send_response(200 if self.path == "/page.html" else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode() if self.path == "/page.html" else b"")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port, wanted
        server.shutdown()
        thread.join()


def fetched(text: str) -> list[str]:
    """Open a page from a server, with every other host led to that server, too; return all that is asked for."""
    with served(text) as (port, wanted):
        everywhere = f"--host-resolver-rules=MAP * 127.0.0.1:{port}"
        # the browser itself asks for the time and for updates, unless it is told not to
        silent = ["--disable-background-networking", "--disable-features=NetworkTimeServiceQuerying"]
        options = [everywhere, *silent, "--disable-component-update", "--virtual-time-budget=1000"]
        subprocess.run([*BROWSER, *options, f"http://reader.test:{port}/page.html"], capture_output=True, check=True)
        return wanted


def test_nothing_is_fetched() -> None:
    """The page itself and nothing else; the same probe does notice a picture from elsewhere."""
    page = made_page().replace("<details>", "<details open>")
    assert fetched(page) == ["reader.test/page.html"]
    elsewhere = page.replace("</main>", '<img alt="" src="http://elsewhere.test/picture.png"></main>')
    assert fetched(elsewhere) == ["reader.test/page.html", "elsewhere.test/picture.png"]


DOWNLOADS = """
const texts = {};
for (const link of document.querySelectorAll("a[download]")) texts[link.download] = link.href.split(",")[1];
say(texts);
"""


def test_what_the_page_offers_to_save_is_what_the_result_files_hold(tmp_path: Path) -> None:
    """From the files of a run to the numbers a reader saves from the page, through the command line and the browser."""
    folder = tmp_path / "results"
    study = bw.Study.from_dict(CONTENT)
    bw.run_study(study, folder, threads=1, quiet=True)
    assert CliRunner().invoke(main, ["report", str(folder)]).exit_code == 0
    coded = asked((folder / "report.html").read_text(encoding="utf-8"), DOWNLOADS, tmp_path)
    saved = {name: base64.b64decode(content) for name, content in coded.items()}
    texts = {name: (gzip.decompress(one) if name.endswith(".gz") else one).decode() for name, one in saved.items()}
    assert texts["study.toml"] == (folder / "study.toml").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(texts["curves.csv.gz"])))
    regimes = json.loads(texts["results.json"])["regimes"]
    told = {(one["regime"], row["algorithm"]): row for one in regimes for row in one["algorithms"]}
    assert len(told) == len(list(study.cells())) == 9
    for cell in study.cells():
        results = load_results(folder / "cells" / f"{cell.key}.npz")
        (run,) = results.runs.values()
        mine = [row for row in rows if (row["regime"], row["algorithm"]) == (cell.environment, cell.algorithm)]
        at_end = told[cell.environment, cell.algorithm]["regret"]["mean"]
        assert [int(row["t"]) for row in mine] == results.checkpoints.tolist()
        np.testing.assert_allclose(at_end, run.regret[-1], rtol=1e-7, atol=1e-12)
        expected = {"regret": run.regret, "standard_error": run.standard_error, "median": run.quantiles([0.5])[0]}
        for name, values in expected.items():
            np.testing.assert_allclose([float(row[name]) for row in mine], values, rtol=1e-7, atol=1e-12)


LOOKS = """
const style = getComputedStyle(document.body);
document.querySelectorAll("details").forEach(part => part.open = true);
const wide = document.documentElement.scrollWidth > innerWidth;
document.body.style.width = "390px";
const main = document.querySelector("main");
say({dark: matchMedia("(prefers-color-scheme:dark)").matches, paper: style.backgroundColor, ink: style.color,
     wide, narrow: main.scrollWidth <= 390, window: innerWidth,
     names: [...document.querySelectorAll("main > section")].every(part => part.querySelector("h2"))});
"""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [500, 1280])
def test_light_and_dark_wide_and_narrow(dark: bool, width: int, tmp_path: Path) -> None:
    """The window of a headless browser is at least 500 wide; the text is then squeezed to a phone's 390."""
    options = [f"--window-size={width},900", f"--blink-settings=preferredColorScheme={0 if dark else 1}"]
    found = asked(made_page(), LOOKS, tmp_path, *options)
    assert (found["dark"], found["window"]) == (dark, width)
    paper, ink = ("rgb(21, 23, 26)", "rgb(233, 233, 230)") if dark else ("rgb(255, 255, 255)", "rgb(28, 29, 31)")
    assert (found["paper"], found["ink"]) == (paper, ink)
    assert not found["wide"]  # only tables scroll sideways, within themselves
    assert found["names"]
    if width == 500:
        assert found["narrow"]


def test_long_names_and_many_arms_stay_on_a_phone(tmp_path: Path) -> None:
    name = "a world whose name goes on and on, as names of users do, until it has to be broken somewhere"
    content = {
        **CONTENT,
        "horizon": 30,
        "sizes": {"contexts": 3, "arms": 20, "dimension": 4},
        "environments": {name: {"kind": "stochastic"}, "x" * 70: {"kind": "stochastic"}},
        "algorithms": {f"player {'y' * 60}": {"kind": "uniform"}, name: {"kind": "uniform"}},
    }
    text = page(summary_from(content, tmp_path / "long"))
    found = asked(text, LOOKS, tmp_path, "--window-size=500,900")
    assert not found["wide"]
    assert found["narrow"]


RESCALE = """
const figure = document.querySelector('figure[data-chart="calm-log-x"]');
const numbers = () => [...figure.querySelectorAll("text.yaxis")].map(text => text.textContent);
const places = () => [...figure.querySelectorAll("path.line")].map(path => path.getAttribute("d"));
const ends = () => [...figure.querySelectorAll("text.end")].map(text => [text.textContent, +text.getAttribute("y")]);
const press = n => document.querySelector(`.legend button[data-algorithm="${n}"]`).click();
const at = (path, x) => {
  const points = path.slice(1).split(/[ M]/).map(pair => pair.split(",").map(Number));
  const i = Math.max(1, points.findIndex(point => point[0] >= x)), [a, b] = [points[i - 1], points[i]];
  return a[1] + (x - a[0]) / (b[0] - a[0]) * (b[1] - a[1]);
};
const before = {numbers: numbers(), places: places(), ends: ends()};
press(0);
const others = {numbers: numbers(), places: places(), ends: ends()};
press(0);
const after = {numbers: numbers(), places: places(), ends: ends()};
const off = before.places.map((path, i) => Math.max(...[100, 200, 300, 400, 455].map(x =>
  Math.abs(at(path, x) - at(after.places[i], x)))));
say({before, others, after, off, names: before.ends.map(end => end[0])});
"""


def test_charts_rescale_to_what_is_shown_and_back(tmp_path: Path) -> None:
    """The script and the page agree on ranges, ticks and labels: shown again, all is where it was drawn at first."""
    found = asked(made_page(), RESCALE, tmp_path)
    before, others, after = (found[word] for word in ("before", "others", "after"))
    assert others["numbers"] != before["numbers"]
    assert sorted(after["numbers"]) == sorted(before["numbers"])
    assert [name for name, _ in after["ends"]] == [name for name, _ in before["ends"]]
    for (_, one), (_, two) in zip(before["ends"], after["ends"], strict=True):
        assert one == pytest.approx(two, abs=0.2)
    assert max(found["off"]) < 0.5  # the tolerance of what was drawn first is 0.3


VALUES = """
const figure = document.querySelector('figure[data-chart="calm-log-x"]'), svg = figure.querySelector("svg");
const tip = figure.querySelector(".tip"), box = svg.getBoundingClientRect(), seen = {};
const rows = () => [...tip.querySelectorAll("dt")].map((name, i) =>
  [name.textContent, tip.querySelectorAll("dd")[i].textContent]);
seen.first = tip.hidden;
svg.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + box.width, clientY: box.top + 50}));
seen.pointed = [tip.hidden, tip.querySelector("strong").textContent, rows(), figure.querySelectorAll(".cursor").length];
svg.dispatchEvent(new PointerEvent("pointerleave"));
seen.left = [tip.hidden, figure.querySelectorAll(".cursor").length];
const press = key => svg.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
const head = () => tip.querySelector("strong").textContent;
press("End"); seen.end = head();
press("ArrowLeft"); seen.back = head();
press("ArrowRight"); press("ArrowRight"); seen.stays = head();
press("Home"); seen.home = head();
press("Escape"); seen.escaped = tip.hidden;
const strip = document.querySelector('figure[data-chart="strip"]');
strip.querySelector("svg").dispatchEvent(new KeyboardEvent("keydown", {key: "Home", bubbles: true}));
seen.strip = strip.querySelector(".tip strong").textContent;
seen.tab = [svg.getAttribute("tabindex"), tip.getAttribute("role")];
say(seen);
"""


def test_values_by_pointer_and_by_keyboard(tmp_path: Path) -> None:
    found = asked(made_page(), VALUES, tmp_path)
    panel = made_summary().panels[0]
    hidden, when, rows, cursors = found["pointed"]
    assert (found["first"], hidden, when, cursors) == (True, False, "t = 600", 1)
    expected = sorted(panel.entries, key=lambda entry: -entry.regret.value)
    assert [name for name, _ in rows] == [entry.label for entry in expected]
    for (_, words), entry in zip(rows, expected, strict=True):
        assert float(words.split()[0].replace(",", "")) == pytest.approx(entry.regret.value, rel=0.01, abs=0.5)
    assert found["left"] == [True, 0]
    assert (found["end"], found["stays"], found["home"]) == ("t = 600", "t = 600", "t = 1")
    assert found["back"] not in ("t = 600", "t = 1")
    assert found["escaped"]
    assert found["strip"] == "calm"
    assert found["tab"] == ["0", "status"]


EXPLORED = """
document.querySelectorAll("details").forEach(part => part.open = true);
const figure = document.querySelector('figure[data-chart="calm-exploration"]'), svg = figure.querySelector("svg");
const tip = figure.querySelector(".tip"), ends = [...figure.querySelectorAll("text.end")].map(end => end.textContent);
const press = key => svg.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
const rows = () => Object.fromEntries([...tip.querySelectorAll("dt")].map((name, i) =>
  [name.textContent, tip.querySelectorAll("dd")[i].textContent]));
press("End");
const seen = {ends, last: [tip.querySelector("strong").textContent, rows()]};
press("Home"); seen.first = rows();
const box = svg.getBoundingClientRect();
svg.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + box.width, clientY: box.top + 50}));
seen.pointed = rows();
say(seen);
"""


def test_rates_of_exploration_by_pointer_and_by_keyboard(tmp_path: Path) -> None:
    """Recorded rates, those that have no schedule too, are told as the others are."""
    algorithms = {"paper": {"kind": "LCTsallisINF", "tuning": "paper"}, "ours": {"kind": "LCTsallisINF"}}
    content = {**CONTENT, "environments": {"calm": {"kind": "stochastic"}}, "algorithms": algorithms}
    summary = summary_from(content, tmp_path / "study")
    found = asked(page(summary), EXPLORED, tmp_path)
    assert sorted(found["ends"]) == ["ours", "paper"]
    assert found["pointed"] == found["last"][1]
    assert found["last"][0] == "t = 600"
    for place, told in ((-1, found["last"][1]), (0, found["first"])):
        for entry in summary.panels[0].entries:
            rates = entry.run.exploration_rate
            assert rates is not None
            assert float(told[entry.label].split()[0]) == pytest.approx(rates.mean(axis=0)[place], rel=0.01, abs=1e-3)


def test_the_page_of_the_comparison_is_below_two_megabytes(tmp_path: Path) -> None:
    """All regimes and algorithms of `bothworlds compare`; fewer replications do not make it smaller.

    Fewer rounds do by 3 %: 1,503 kB with 4,000 rounds of all 40,000.
    """
    folder, rounds = tmp_path / "comparison", size(4_000, 40_000)
    bw.run_study(comparison(instances=3, replications=1, horizon=rounds), folder, quiet=True)
    assert CliRunner().invoke(main, ["report", str(folder)]).exit_code == 0
    assert (folder / "report.html").stat().st_size < size(1_700_000, 1_800_000)


SORT = """
const table = document.querySelector("table.headline"), heads = [...table.tHead.rows[0].cells];
const column = n => [...table.tBodies[0].rows].map(row => row.cells[n].textContent);
const states = {};
heads[1].querySelector("button").click();
states.up = [column(1), heads[1].getAttribute("aria-sort")];
heads[1].querySelector("button").click();
states.down = [column(1), heads[1].getAttribute("aria-sort")];
heads[0].querySelector("button").click();
states.names = [column(0), heads[1].getAttribute("aria-sort")];
states.buttons = heads.every(head => head.querySelector("button"));
say(states);
"""


def test_tables_are_sorted_by_their_heads(tmp_path: Path) -> None:
    found = asked(made_page(), SORT, tmp_path)
    rising = sorted(entry.regret.value for entry in made_summary().panels[0].entries)

    def values(column: list[str]) -> list[float]:
        return [float(cell.split("±")[0].replace(",", "")) for cell in column]

    (up, rises), (down, falls), (names, other) = found["up"], found["down"], found["names"]
    assert values(up) == pytest.approx(rising, rel=0.01, abs=0.5)
    assert values(down) == values(up)[::-1]
    assert (rises, falls, other) == ("ascending", "descending", None)
    assert names == sorted(names, key=str.lower)
    assert found["buttons"]


PRINTED = """
window.dispatchEvent(new Event("beforeprint"));
say({open: [...document.querySelectorAll("details")].every(part => part.open)});
"""


def test_printing_opens_everything_and_makes_pages(tmp_path: Path) -> None:
    assert asked(made_page(), PRINTED, tmp_path)["open"]
    assert printed(tmp_path) >= 4


def printed(folder: Path) -> int:
    """Print the page that was asked last; return how many sheets it takes."""
    target, source = folder / "page.pdf", folder / "page.html"
    printing = [*CHROMIUM, f"--print-to-pdf={target}"]
    subprocess.run([*printing, source.as_uri()], capture_output=True, timeout=120, check=True)
    content = target.read_bytes()
    assert content.startswith(b"%PDF")
    return len(re.findall(rb"/Type\s*/Page\b", content))


def test_the_page_of_an_evaluation_fits_a_phone_and_prints(tmp_path: Path) -> None:
    """It has no script of its own: nothing to hover or to sort, and all of it is there on paper."""
    log = small_log(3, 500)
    text = evaluation_page(bw.evaluation.evaluate(log, {"one": some_table(log)}, against="uniform"))
    found = asked(text, LOOKS, tmp_path, "--window-size=500,900")
    assert (found["wide"], found["narrow"]) == (False, True)
    assert printed(tmp_path) >= 1
