"""A load balancer for tests: connections go in turn to the hosts that say they are ready."""

import asyncio
import contextlib
import itertools
from collections.abc import Sequence
from functools import partial

from support.forwarding import Forwarding, Streams

CHECK_EVERY = 0.05  # seconds
REQUEST = b"GET /v1/ready HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"


class LoadBalancer(Forwarding):
    """Forwards connections to hosts that are ready."""

    def __init__(self, ports: Sequence[int]) -> None:
        super().__init__(self._to_a_ready_host, [partial(self._check, port) for port in ports])
        self.ready, self._turn = set[int](), itertools.count()

    async def _to_a_ready_host(self) -> Streams | None:
        ready = sorted(self.ready)
        return await asyncio.open_connection("127.0.0.1", ready[next(self._turn) % len(ready)]) if ready else None

    async def _check(self, port: int) -> None:
        """Keep up to date whether a host is ready."""
        while True:
            ready = False
            with contextlib.suppress(OSError):
                reader, writer = self.closed_at_the_end(await asyncio.open_connection("127.0.0.1", port))
                writer.write(REQUEST)
                ready = b" 200 " in await reader.readline()
                writer.close()
            (self.ready.add if ready else self.ready.discard)(port)
            await asyncio.sleep(CHECK_EVERY)
