"""A host in a network of its own (Linux namespaces), with one cable to the database and one to its clients."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest


def _ip(*words: str) -> bool:
    """Run `ip`; return whether that is allowed here and worked."""
    return subprocess.run(["ip", *words], capture_output=True, check=False).returncode == 0


@dataclass(frozen=True)
class Network:
    """Name of a namespace; addresses of the database and of the host; the end of the cable to the database."""

    name: str
    database: str
    host: str
    cable: str

    @property
    def command(self) -> list[str]:
        """What to put before a command that runs there."""
        return ["ip", "netns", "exec", self.name]

    def cut(self) -> None:
        """Pull the cable to the database: what is sent is lost."""
        assert _ip("link", "set", self.cable, "down")

    def mend(self) -> None:
        """Plug it in again."""
        assert _ip("link", "set", self.cable, "up")


@contextlib.contextmanager
def network() -> Iterator[Network]:
    """Make a namespace and two cables to it, or skip the test where that is not allowed."""
    number = os.getpid() % 250 + 1
    name, here = f"bothworlds{os.getpid()}", f"bw{os.getpid() % 100_000}"
    if sys.platform != "linux" or shutil.which("ip") is None or not _ip("netns", "add", name):
        pytest.skip("networks cannot be made here")
    try:
        for part, kind in ((f"10.213.{number}", "d"), (f"10.214.{number}", "c")):
            cable, end = f"{here}{kind}", f"{here}{kind}e"
            if not _ip("link", "add", cable, "type", "veth", "peer", "name", end, "netns", name):
                pytest.skip("cables cannot be made here")
            assert _ip("addr", "add", f"{part}.1/24", "dev", cable)
            assert _ip("link", "set", cable, "up")
            for words in (["addr", "add", f"{part}.2/24", "dev", end], ["link", "set", end, "up"]):
                assert _ip("-n", name, *words)
        assert _ip("-n", name, "link", "set", "lo", "up")
        yield Network(name, f"10.213.{number}.1", f"10.214.{number}.2", f"{here}d")
    finally:
        for kind in ("d", "c"):
            _ip("link", "del", f"{here}{kind}")
        _ip("netns", "del", name)
