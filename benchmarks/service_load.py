"""A load generator for the service, in one process: raw sockets, precomputed ids, every response checked.

Closed loop: every connection sends a decision, then its reward, then the next. Open loop: requests are due at fixed
times regardless of the service; latency counts from the due time.
"""

import select
import socket
import time
from collections import deque
from dataclasses import dataclass, field

NEVER = 1e9


@dataclass
class Load:
    """Result of a load: latencies in seconds, and the number of failed requests."""

    seconds: float
    latencies: list[float] = field(default_factory=list)
    errors: int = 0

    @property
    def rate(self) -> float:
        """Requests per second."""
        return len(self.latencies) / self.seconds

    def quantile(self, share: float) -> float:
        """Return a quantile of the latencies in milliseconds."""
        latencies = sorted(self.latencies)
        return latencies[min(len(latencies) - 1, int(share * len(latencies)))] * 1e3

    @property
    def spread(self) -> str:
        """Median, 99th percentile and maximum, as text."""
        middle, late, longest = (self.quantile(share) for share in (0.5, 0.99, 1.0))
        return f"p50 {middle:.1f} ms, p99 {late:.1f} ms, longest {longest:.1f} ms of {len(self.latencies)}"

    def __str__(self) -> str:
        quantiles = f"p50 {self.quantile(0.5):.1f} ms, p99 {self.quantile(0.99):.1f} ms"
        return f"{self.rate:,.0f} requests/s, {quantiles}, {self.errors} errors"


def post(path: str, body: str) -> bytes:
    """Return a request as bytes."""
    content = body.encode()
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content


def pair(i: int, contexts: int, run: str) -> tuple[bytes, bytes]:
    """Return a decision and its reward."""
    name = f"{run}-{i}"
    decide = post("/v1/decide", f'{{"experiment":"ads","id":"{name}","context":"c{i * 7919 % contexts}"}}')
    return decide, post("/v1/reward", f'{{"experiment":"ads","id":"{name}","reward":{int(i % 9 == 0)}}}')


class Connections:
    """Persistent connections and their responses."""

    def __init__(self, port: int, count: int) -> None:
        self.sockets: dict[int, socket.socket] = {}
        self.poll = select.epoll()
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setblocking(False)
            self.sockets[connection.fileno()] = connection
            self.poll.register(connection.fileno(), select.EPOLLIN)

    def answers(self, timeout: float) -> list[tuple[int, bytes]]:
        """Return the connections with a response, and the responses."""
        return [(number, self.sockets[number].recv(1 << 16)) for number, _ in self.poll.poll(timeout)]

    def close(self) -> None:
        """Hang up."""
        for connection in self.sockets.values():
            connection.close()
        self.poll.close()


def closed(port: int, *, seconds: float, connections: int, contexts: int, run: str) -> Load:
    """Play pairs as fast as the service answers."""
    load, lines, number = Load(seconds), Connections(port, connections), 0
    sent: dict[int, tuple[float, bytes | None]] = {}
    for line, one in lines.sockets.items():
        decide, reward = pair(number, contexts, run)
        number += 1
        one.send(decide)
        sent[line] = time.perf_counter(), reward
    end = time.perf_counter() + seconds
    while (now := time.perf_counter()) < end:
        for line, answer in lines.answers(1.0):
            now = time.perf_counter()
            began, open_reward = sent[line]
            load.latencies.append(now - began)
            load.errors += answer[9:12] != b"200"
            if open_reward is not None:
                lines.sockets[line].send(open_reward)
                sent[line] = now, None
            else:
                decide, reward = pair(number, contexts, run)
                number += 1
                lines.sockets[line].send(decide)
                sent[line] = now, reward
    lines.close()
    return load


def opened(port: int, *, rate: float, seconds: float, connections: int, contexts: int, run: str) -> Load:
    """Send ``rate`` decisions per second, each with its reward half a second later, regardless of the service."""
    load, lines = Load(seconds), Connections(port, connections)
    free = deque(lines.sockets)
    sent: dict[int, float] = {}
    rewards: deque[tuple[float, bytes]] = deque()
    begin, number, count = time.perf_counter() + 0.1, 0, int(rate * seconds)
    while number < count or rewards or sent:
        now = time.perf_counter()
        while free:
            decision_due = begin + number / rate if number < count else NEVER
            reward_due = rewards[0][0] if rewards else NEVER
            due = min(decision_due, reward_due)
            if due > now:
                break
            line = free.popleft()
            if due == reward_due:
                content = rewards.popleft()[1]
            else:
                content, reward = pair(number, contexts, run)
                rewards.append((due + 0.5, reward))
                number += 1
            lines.sockets[line].send(content)
            sent[line] = due
        for line, answer in lines.answers(0.0005):
            now = time.perf_counter()
            load.latencies.append(now - sent.pop(line))
            load.errors += answer[9:12] != b"200"
            free.append(line)
        if now > begin + seconds + 60:
            load.errors += len(sent) + len(rewards) + count - number
            break
    lines.close()
    return load
