"""The log lines of a service for its operators, as text or JSON, on stderr.

A thread of its own formats and writes them, so that a reader that is slow or stuck cannot hold up requests: lines that
do not fit in the queue are dropped and counted.
"""

import datetime
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec

Level = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]
LEVELS: tuple[Level, ...] = ("debug", "info", "warning", "error")
MOST_WAITING = 10_000  # lines
TICK = 0.005  # seconds that a line may wait for others
FLUSH_SECONDS = 2.0  # to write the last lines when the service ends


class LogLine(NamedTuple):
    """A log line: time in seconds since 1970, level, a short name of what happened, a sentence, and more fields."""

    time: float
    level: Level
    event: str
    message: str
    fields: Mapping[str, Any]


def text_line(line: LogLine) -> str:
    """Return a line for people; line breaks and control characters are spelt out.

    >>> text_line(LogLine(0.25, "info", "change", "version 9", {"experiment": "ads", "request_id": "a b"}))
    '1970-01-01T00:00:00.250Z INFO    version 9 experiment=ads request_id="a b"'
    """
    fields = "".join(f" {name}={_value_text(value)}" for name, value in line.fields.items() if value is not None)
    return f"{timestamp(line.time)} {line.level.upper():7} {_one_line(line.message)}{fields}"


def json_line(line: LogLine) -> str:
    """Return a line as a JSON object.

    >>> json_line(LogLine(0.25, "info", "change", "version 9", {"experiment": "ads"}))
    '{"time":"1970-01-01T00:00:00.250Z","level":"info","event":"change","message":"version 9","experiment":"ads"}'
    """
    content = {"time": timestamp(line.time), "level": line.level, "event": line.event, "message": line.message}
    content |= {name: value for name, value in line.fields.items() if value is not None}
    return encode(content).decode()


def timestamp(seconds: float) -> str:
    """Return a time as text, in UTC with milliseconds."""
    whole, milliseconds = divmod(int(1e3 * seconds), 1000)
    return f"{_second(whole)}.{milliseconds:03d}Z"


@lru_cache(maxsize=4)
def _second(whole: int) -> str:
    return f"{datetime.datetime.fromtimestamp(whole, datetime.UTC):%Y-%m-%dT%H:%M:%S}"


def _one_line(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _value_text(value: Any) -> str:
    """Return the value of a field as text; one with spaces or quotes is quoted as in JSON."""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    plain = text.isprintable() and not any(c in text for c in ' "=') and text
    return plain or _one_line(encode(text).decode())


encode = msgspec.json.Encoder().encode
FORMATS: Mapping[str, Callable[[LogLine], str]] = {"text": text_line, "json": json_line}


class ServiceLog:
    r"""Queues log lines from any thread; its own daemon thread writes them.

    Lines below ``level`` are left out. ``write`` takes the lines as bytes; by default they go to stderr. ``dropped`` is
    the number of lines lost because the queue was full.

    >>> written = []
    >>> log = ServiceLog(level="info", write=written.append)
    >>> log.add("debug", "retry", "not written")
    >>> log.add("info", "change", "version 9", experiment="ads")
    >>> log.close()
    >>> written[0].partition(b" ")[2]
    b'INFO    version 9 experiment=ads\n'
    """

    def __init__(
        self, *, log_format: LogFormat = "text", level: Level = "info", write: Callable[[bytes], Any] | None = None
    ) -> None:
        self._format, self._least = FORMATS[log_format], LEVELS.index(level)
        self._write = write or _write_to_stderr
        self._lines: deque[LogLine] = deque()
        self._wake, self._starting = threading.Event(), threading.Lock()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self.dropped = 0

    def add(self, level: Level, event: str, message: str, **fields: Any) -> None:
        """Add a line; fields that are None are left out."""
        if LEVELS.index(level) < self._least:
            return
        if len(self._lines) >= MOST_WAITING:
            self.dropped += 1
            return
        self._lines.append(LogLine(time.time(), level, event, message, fields))
        if not self._wake.is_set():
            self._wake.set()
        if self._thread is None:
            self._start()

    def _start(self) -> None:
        """Start the thread with the first line."""
        with self._starting:
            if self._thread is None:
                self._stopping = False
                self._thread = threading.Thread(target=self._work, name="service log", daemon=True)
                self._thread.start()

    def say(self, message: str) -> None:
        """Add a line about the start of the service."""
        self.add("info", "start", message)

    def add_error(self, event: str, message: str, error: BaseException, **fields: Any) -> None:
        """Add a line about an exception, with its traceback."""
        self.add("error", event, message, **fields, traceback="".join(traceback.format_exception(error)))

    def close(self) -> None:
        """Write the waiting lines, and stop; a reader that is stuck is given up after two seconds."""
        if self._thread is not None:
            self._stopping = True
            self._wake.set()
            self._thread.join(FLUSH_SECONDS)
            self._thread = None

    def _work(self) -> None:
        while not self._stopping or self._lines:
            self._wake.wait()
            if not self._stopping:
                time.sleep(TICK)  # for more lines: each time that a thread is woken costs more than a line
            self._wake.clear()
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            content = b"".join(map(self._as_bytes, lines))
            try:
                self._write(content)
            except Exception:  # stderr is closed; later lines are tried again
                self.dropped += len(lines)

    def _as_bytes(self, line: LogLine) -> bytes:
        """Return a line as bytes; nothing if a field cannot be encoded."""
        try:
            return f"{self._format(line)}\n".encode("utf-8", "backslashreplace")
        except Exception:
            self.dropped += 1
            return b""


def _write_to_stderr(content: bytes) -> None:
    stream = sys.stderr
    if stream is not None:
        stream.write(content.decode())
        stream.flush()
