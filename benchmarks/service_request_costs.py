"""What counting, tracing and logging cost a request, in processor time: one run, in which the variants take turns.

    python benchmarks/service_request_costs.py

The request is the cheapest one (GET /v1/live), answered by the application without a network. "bare" is the answer
alone; "counted" adds the request id, its header, the histogram and the status; "logged" adds a line per request, which
a thread writes to nowhere.
"""

import asyncio
import statistics
import tempfile
import time
from types import SimpleNamespace
from typing import Any

from bothworlds.service.app import App
from bothworlds.service.service import Service
from bothworlds.service.service_log import ServiceLog
from bothworlds.service.settings import ExperimentSettings, Settings

REQUESTS, ROUNDS = 2000, 30


class Protocol:
    """Takes a response and forgets it."""

    def response_bytes(self, status: int, headers: Any, body: bytes) -> None:
        """Take a response."""


async def bare(app: App, scope: Any, protocol: Any) -> None:
    """Answer requests without counting them."""
    for _ in range(REQUESTS):
        status, body, headers = await app._answer(scope, scope.headers, protocol, "")
        protocol.response_bytes(status, headers, body)


async def whole(app: App, scope: Any, protocol: Any) -> None:
    """Answer requests as the service does."""
    for _ in range(REQUESTS):
        await app.__rsgi__(scope, protocol)


def main() -> None:
    """Print the costs."""
    headers = {"host": "localhost", "content-length": "0"}
    scope = SimpleNamespace(method="GET", path="/v1/live", query_string="", headers=headers, client="127.0.0.1:5000")
    with tempfile.TemporaryDirectory() as folder:
        experiment = ExperimentSettings(arms=["a", "b"], contexts=["x"], algorithm={"kind": "uniform"})
        service = Service(Settings(experiments={"ads": experiment}, folder=folder))
        counted, logged = App(service), App(service, ServiceLog(log_format="json", write=lambda _: None))
        logged._logs_requests = True
        variants = {"bare": (bare, counted), "counted": (whole, counted), "logged": (whole, logged)}
        times: dict[str, list[float]] = {name: [] for name in variants}
        for _ in range(ROUNDS):
            for name, (work, app) in variants.items():
                began = time.process_time()
                asyncio.run(work(app, scope, Protocol()))
                app.log.close()  # its thread has written all lines
                times[name].append((time.process_time() - began) / REQUESTS * 1e6)
        service.close()
    base = statistics.median(times["bare"])
    for name, values in times.items():
        middle = statistics.median(values)
        print(
            f"{name:8} {middle:6.2f} us a request, {middle - base:+.2f} us, {middle / base:.2f} times the bare answer"
        )


if __name__ == "__main__":
    main()
