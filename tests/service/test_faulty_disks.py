"""Disks that hang or are full under a service in a process of its own, and things that are no disks."""

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bothworlds.service.service import Service
from support.service_http import Answer, Web, served
from support.services import assert_verified, settings, wait_until

SETTINGS = """
[experiments.ads]
arms = ["red", "blue"]
contexts = ["mobile", "desktop"]
algorithm = {kind = "LinUCB"}
"""
SOURCE = Path(__file__).parents[1] / "support" / "faulty_disk.c"


@pytest.fixture
def faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the files "stuck" and "full" disturb processes that are started from now on."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("there is no C compiler here, or no LD_PRELOAD")
    folder = tmp_path / "faults"
    folder.mkdir()
    library = folder / "faulty_disk.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("FAULTS", str(folder))
    return folder


def decide(web: Web, name: str) -> Answer:
    return web.post("/v1/decide", {"context": "mobile", "id": name})


def statuses(web: Web) -> tuple[int, ...]:
    """Return the statuses of live, ready and health."""
    return tuple(web.ask("GET", f"/v1/{path}").status for path in ("live", "ready", "health"))


def test_a_disk_that_hangs_and_then_is_full(tmp_path: Path, faults: Path) -> None:
    with served(tmp_path, SETTINGS) as web, ThreadPoolExecutor(2) as pool:
        before = decide(web, "before")
        assert (before.status, statuses(web)) == (200, (200, 200, 200))
        (faults / "stuck").touch()
        start = time.monotonic()
        hanging = pool.submit(decide, web, "hanging")
        wait_until(lambda: statuses(web) == (503, 503, 503))
        assert time.monotonic() - start < 15.0  # about 2 s on an idle machine
        assert "the writer thread is stuck: it writes to the store" in web.ask("GET", "/v1/live").said["failures"][0]
        assert "it is not known whether this was stored" in hanging.result(30).said["error"]
        assert decide(web, "later").status == 503
        assert web.ask("GET", "/v1/plan").status == 200
        (faults / "stuck").unlink()
        wait_until(lambda: statuses(web) == (200, 200, 200))
        assert [decide(web, name).status for name in ("hanging", "later")] == [200, 200]
        (faults / "full").touch()
        refused = decide(web, "full")
        assert (refused.status, "nothing was stored, try again" in refused.said["error"]) == (503, True)
        assert web.post("/v1/reward", {"id": "before", "reward": 1}).status == 503
        assert statuses(web) == (200, 503, 503), "a full disk is no reason to restart"
        assert decide(web, "before").body == before.body, "what is stored is still answered"
        (faults / "full").unlink()
        wait_until(lambda: statuses(web) == (200, 200, 200))
        assert web.post("/v1/reward", {"id": "before", "reward": 1}).status == 200
        assert decide(web, "full").status == 200
        assert decide(web, "before").body == before.body
    assert_verified(tmp_path)


@pytest.mark.parametrize("kind", ["fifo", "full device"])
def test_a_store_that_is_no_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "bothworlds.sqlite"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/full")
    with pytest.raises(ValueError, match="is not a bothworlds store, or cannot be used: d"):
        Service(settings(tmp_path))
