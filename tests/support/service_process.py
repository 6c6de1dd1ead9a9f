"""A decision service in a subprocess, for tests over HTTP."""

import contextlib
import http.client
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

UNIFORM = """
[experiments.banners]
arms = ["red", "blue"]
contexts = ["mobile", "desktop"]
algorithm = { kind = "uniform" }
"""


@contextlib.contextmanager
def served(folder: Path, *arguments: str) -> Iterator[str]:
    """Run `bothworlds serve` in a folder on a free port; yield its address, and see that it ends well when asked to."""
    command = [sys.executable, "-m", "bothworlds", "serve", *arguments, "--port", "0"]
    service = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert service.stderr is not None
    said = []
    try:
        for line in service.stderr:
            said.append(line)
            if " listening on " in line:
                break
        else:
            raise RuntimeError("".join(said))
        yield said[-1].split("listening on ")[1].split()[0]
        service.send_signal(signal.SIGINT)
        rest = service.communicate(timeout=60)[1]
        if service.returncode or not rest.endswith(" stopped\n") or rest.count("\n") > 1:
            raise RuntimeError(f"it ended with {service.returncode}: {rest}")
    finally:
        if service.poll() is None:
            service.kill()
            service.wait()
        service.stderr.close()


def got(address: str, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
    """Get a path; return status, headers and body."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
    finally:
        connection.close()


def posted(address: str, path: str, body: str, **headers: str) -> tuple[int, str]:
    """Post a body; return status and answer."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
    try:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
