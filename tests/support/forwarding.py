"""Connections that are forwarded, in a thread of their own, to a place that is chosen for each of them."""

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Self, TypeAlias

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Forwarding:
    """Listens on ``port`` while it is entered; ``connect`` opens the other side, or has none to offer.

    ``beside`` are loops of its owner that run in the same thread. Connections that they open are handed to
    ``closed_at_the_end``: what is still open when a loop ends would warn in whatever test comes later.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Streams | None]],
        beside: Sequence[Callable[[], Coroutine[Any, Any, None]]] = (),
    ) -> None:
        self.port = 0
        self._connect, self._beside = connect, beside
        self._loop = asyncio.new_event_loop()
        self._flowing, self._ending = asyncio.Event(), asyncio.Event()
        self._flowing.set()
        self._writers = weakref.WeakSet[asyncio.StreamWriter]()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(60)
        self._loop.close()

    def cut(self) -> None:
        """Hold back whatever is sent, in both directions."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def mend(self) -> None:
        """Deliver what was held back, and go on."""
        self._loop.call_soon_threadsafe(self._flowing.set)

    def closed_at_the_end(self, streams: Streams) -> Streams:
        """Remember a connection, so that it does not outlive the loop."""
        self._writers.add(streams[1])
        return streams

    async def _run(self) -> None:
        server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        beside = [asyncio.create_task(loop()) for loop in self._beside]
        self._started.set()
        await self._ending.wait()
        server.close()
        others = (asyncio.all_tasks() | set(beside)) - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0.01)  # transports close their sockets in the next turn of the loop

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.closed_at_the_end((reader, writer))
        with contextlib.suppress(OSError):
            if other := await self._connect():
                self.closed_at_the_end(other)
                await asyncio.gather(self._copy(reader, other[1]), self._copy(other[0], writer))
        writer.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while content := await reader.read(65536):
                await self._flowing.wait()
                writer.write(content)
                await writer.drain()
        writer.close()
