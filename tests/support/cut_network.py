"""A network that can be cut: forwards connections to a socket, and holds everything back while it is cut."""

import asyncio
import contextlib
import threading
from pathlib import Path


class Link:
    """Listens on ``port`` in a thread of its own; what is sent while it is cut arrives late."""

    def __init__(self, target: Path) -> None:
        self.port, self._target = 0, target
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))

    def __enter__(self) -> "Link":
        self._thread.start()
        self._started.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(60)
        self._loop.close()

    def cut(self) -> None:
        """Hold back whatever is sent, in both directions."""
        self._loop.call_soon_threadsafe(self._open.clear)

    def mend(self) -> None:
        """Deliver what was held back, and go on."""
        self._loop.call_soon_threadsafe(self._open.set)

    async def _run(self) -> None:
        self._ending, self._open = asyncio.Event(), asyncio.Event()
        self._open.set()
        server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._ending.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            other = await asyncio.open_unix_connection(str(self._target))
            await asyncio.gather(self._copy(reader, other[1]), self._copy(other[0], writer))
        writer.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while content := await reader.read(65536):
                await self._open.wait()
                writer.write(content)
                await writer.drain()
        writer.close()
