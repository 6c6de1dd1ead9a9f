"""The pages in a browser: nothing is wider than a phone or a screen, in light and in dark, and nothing is refused."""

import html
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bothworlds.service import messages
from bothworlds.service.dashboard.page import page
from bothworlds.service.dashboard.view import VIEWS, View
from bothworlds.service.dashboard_data import OverviewCache
from bothworlds.service.request_stats import RequestStats
from bothworlds.service.service import Service
from bothworlds.service.settings import ExperimentSettings, Settings
from support.browser import BROWSER
from support.service_http import served

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed"),
]
LONG = "a name of an arm that is long " * 6
MEASURED = """
<body><script>
const pages = PAGES, found = {};
let left = 0;
for (const [name, text] of Object.entries(pages)) for (const width of [390, 1280]) {
  left += 1;
  const frame = document.createElement("iframe");
  frame.style.cssText = `width:${width}px;height:900px;border:0`;
  frame.onload = () => {
    const inside = frame.contentDocument.documentElement;
    const colour = frame.contentWindow.getComputedStyle(frame.contentDocument.body).backgroundColor;
    found[`${name} ${width}`] = [inside.scrollWidth - width, colour];
    if (--left === 0) document.body.dataset.found = JSON.stringify(found);
  };
  frame.srcdoc = text;
  document.body.append(frame);
}
</script></body>
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Pages of a service with few arms of long names, and of one with many arms."""
    arms = {"few": [LONG, "blue"], "many": [f"arm {number}" for number in range(30)]}
    experiments = {
        name: ExperimentSettings(arms=names, contexts=[LONG, "y"], algorithm={"kind": "uniform"}, holdout=0.2)
        for name, names in arms.items()
    }
    service = Service(Settings(experiments=experiments, folder=str(tmp_path_factory.mktemp("pages"))))
    stats, watch = RequestStats(), OverviewCache(service)
    for number in range(9):
        stats.sample(10.0 * number)
        stats.observe("/v1/decide", 200, 0.004)
    for name in experiments:
        service.ask_all([messages.Decide(context=LONG, id=f"{LONG}{i}"[-200:], experiment=name) for i in range(99)])
        service.ask_all([messages.Reward(f"{LONG}{i}"[-200:], float(i % 2), experiment=name) for i in range(99)])
        service.experiments[name].expired_through = service.store.last()
    views = [View(name, name=view) for name in experiments for view in VIEWS]
    views += [View("many", name="arms", context=LONG), View("few", decision=f"{LONG}7"[-200:])]
    yield {view.href: page(watch, stats, view) for view in views}
    service.close()


@pytest.mark.parametrize(("mode", "background"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(21, 23, 26)")])
def test_no_page_is_wider_than_the_screen(pages: dict[str, str], mode: str, background: str, tmp_path: Path) -> None:
    control = {"control": '<div style="width:2000px">wide</div>'}
    still = {name: re.sub(r'<meta http-equiv="refresh"[^>]*>', "", text) for name, text in pages.items()}
    content = json.dumps({**still, **control}).replace("</", "<\\/")
    (tmp_path / "all.html").write_text(MEASURED.replace("PAGES", content), encoding="utf-8")
    options = ["--blink-settings=preferredColorScheme=0", "--force-dark-mode"] if mode == "dark" else []
    command = [*BROWSER, *options, "--virtual-time-budget=20000", f"file://{tmp_path / 'all.html'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    found = re.search(r'data-found="([^"]*)"', done.stdout)
    assert found is not None
    measured = json.loads(html.unescape(found[1]))
    assert [measured.pop(f"control {width}")[0] > 0 for width in (390, 1280)] == [True, True]
    assert len(measured) == 2 * len(pages)
    assert {name: over for name, (over, _) in measured.items() if over > 0} == {}
    assert {colour for _, colour in measured.values()} == {background}


def test_the_browser_refuses_nothing_on_any_view(tmp_path: Path) -> None:
    experiment = '[experiments.ads]\narms = ["red", "blue"]\ncontexts = ["x"]\nalgorithm = { kind = "uniform" }\n'
    with served(tmp_path, experiment) as web:
        web.post("/v1/decide", {"context": "x", "id": "one"})
        for query in ("", "?view=arms", "?view=arms&context=x", "?view=service", "?decision=one"):
            command = [*BROWSER, f"http://127.0.0.1:{web.port}/{query}"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
            assert "CONSOLE" not in done.stderr, query
            assert "ads" in done.stdout
