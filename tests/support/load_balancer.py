"""A load balancer for tests: connections go in turn to the hosts that say they are ready."""

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Sequence

CHECK_EVERY = 0.05  # seconds
REQUEST = b"GET /v1/ready HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"


class LoadBalancer:
    """Forwards connections, in a thread of its own, to hosts that are ready."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.port, self.ready = 0, set[int]()
        self._ports, self._turn = list(ports), itertools.count()
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))

    def __enter__(self) -> "LoadBalancer":
        self._thread.start()
        self._started.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(60)
        self._loop.close()

    async def _run(self) -> None:
        self._ending = asyncio.Event()
        server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        checks = [asyncio.create_task(self._check(port)) for port in self._ports]
        self._started.set()
        await self._ending.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, *checks, return_exceptions=True)

    async def _check(self, port: int) -> None:
        """Keep up to date whether a host is ready."""
        while True:
            ready = False
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(REQUEST)
                ready = b" 200 " in await reader.readline()
                writer.close()
            (self.ready.add if ready else self.ready.discard)(port)
            await asyncio.sleep(CHECK_EVERY)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ready = sorted(self.ready)
        try:
            if ready:
                host = await asyncio.open_connection("127.0.0.1", ready[next(self._turn) % len(ready)])
                both = [asyncio.create_task(_copy(reader, host[1])), asyncio.create_task(_copy(host[0], writer))]
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                host[1].close()
                await asyncio.gather(*both, return_exceptions=True)
        except OSError:
            pass
        finally:
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while content := await reader.read(65536):
            writer.write(content)
            await writer.drain()
    writer.close()
