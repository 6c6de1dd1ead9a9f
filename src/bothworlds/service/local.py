"""Decide in the caller's process from a plan of the service; rows are spooled on disk and sent in batches.

A decision takes microseconds and needs no network. It is weaker than one of the service in two ways. It is known to the
store only when its batch has arrived, so that its reward window begins then, and the machine's disk holds the only copy
until then. And the plan has the key of the draws: whoever has it can choose an id that gets the wanted arm.
"""

import base64
import contextlib
import itertools
import json
import math
import secrets
import tempfile
import threading
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import msgspec

from bothworlds.loading import load_plan
from bothworlds.policy import Decision
from bothworlds.policy.plan import Plan
from bothworlds.problem.rows import Context
from bothworlds.service.client import Client, ServiceError
from bothworlds.service.spool import Spool

MOST_ROWS = 500  # in one request
encode = msgspec.json.Encoder().encode
PAUSE = 1.0  # seconds after a failure
REFUSED = "refused.jsonl"


class LocalDecider:
    """Decides from the newest plan that it has, and sends decisions and rewards to the service in the background.

    Thread-safe. ``spool`` is a folder for the rows that have not arrived; a later process that uses it sends what an
    earlier one left. Rows that the service refuses are moved to ``refused.jsonl`` there, with the reason.

    Parameters
    ----------
    client
        Client of the service; its token needs the scopes ``local`` and ``reward``.
    spool
        Folder on a local disk; a process of its own needs a folder of its own.
    refresh
        Seconds between two looks for a newer plan.
    send_every
        Seconds between two batches.
    most_bytes
        Room for rows that have not arrived; decisions are refused (SpoolFullError) when it is used up.

    Raises
    ------
    ServiceError
        If there is no plan yet and the service does not answer.
    """

    def __init__(
        self,
        client: Client,
        spool: str | Path,
        *,
        refresh: float = 0.5,
        send_every: float = 0.05,
        most_bytes: int = 1_000_000_000,
    ) -> None:
        self.client, self.refresh, self.send_every = client, refresh, send_every
        self.failure: str | None = None
        self.refused = 0
        self._spool = Spool(Path(spool), most_bytes=most_bytes)
        try:
            self.plan: Plan = self._newer(None)
        except BaseException:
            self._spool.close()
            raise
        self._names, self._prefix = itertools.count(1), secrets.token_hex(8)
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._follow, self._send)]
        for thread in self._threads:
            thread.start()

    def decide(self, context: Context, *, id: str | None = None, active: bool = True) -> Decision:
        """Choose an arm; the same id gets the same arm from the same plan, and must be used once."""
        plan = self.plan
        decision = plan.act(context, id=f"{self._prefix}-{next(self._names)}" if id is None else id)
        row = (decision.id, decision.context_name, decision.version, decision.arm_name, decision.propensity, active)
        self._spool.append(encode(row))
        return decision

    def reward(self, id: str, reward: float) -> None:
        """Report the reward of a decision; it is sent after the decision."""
        if not math.isfinite(reward):
            raise ValueError(f"the reward of {id!r} must be a finite number; got {reward!r}")
        self._spool.append(encode((id, float(reward))))

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the rows that have not arrived."""
        return self._spool.waiting_bytes

    def close(self, *, timeout: float = 10.0) -> bool:
        """Send what waits for at most ``timeout`` seconds, and stop; return whether everything has arrived.

        The client's connections of this thread and of the background threads are closed.
        """
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        with contextlib.suppress(ServiceError):
            self.client.retry_for = timeout
            while self._send_batch():
                pass
        self.client.close()
        self._spool.close()
        return self._spool.waiting_bytes == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _newer(self, plan: Plan | None) -> Plan:
        """Return the current plan of the service."""
        known = None if plan is None else (plan.spec.fingerprint, plan.version)
        content = self.client.plan_file(known)
        if content is None:
            assert plan is not None
            return plan
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "plan.npz"
            path.write_bytes(base64.b64decode(content))
            new = load_plan(path) if plan is None else plan.renewed(path)
        new.probability_bytes(0)
        return new

    def _follow(self) -> None:
        while not self._stopping.wait(self.refresh):
            with self._noting("plan"):
                self.plan = self._newer(self.plan)
        self.client.close()

    def _send(self) -> None:
        while not self._stopping.wait(self.send_every):
            with self._noting("rows"):
                while self._send_batch() and not self._stopping.is_set():
                    pass
        self.client.close()

    @contextlib.contextmanager
    def _noting(self, what: str) -> Any:
        """Note in ``failure`` what fails, until it works again."""
        try:
            yield
            if self.failure is not None and self.failure.startswith(what):
                self.failure = None
        except (ServiceError, ValueError) as error:
            self.failure = f"{what}: {error}"
            self._stopping.wait(PAUSE)

    def _send_batch(self) -> bool:
        """Send the first rows that have not arrived; return whether there were any."""
        lines, end = self._spool.peek(MOST_ROWS)
        rows = [json.loads(line) for line in lines]
        for length, part in groupby(rows, key=len):  # rewards follow their decisions
            self._deliver(list(part), is_reward=length == 2)
        if lines:
            self._spool.acknowledge(end)
        return bool(lines)

    def _deliver(self, rows: list[Any], *, is_reward: bool) -> None:
        answers = self.client.reward_all(dict(rows)) if is_reward else self.client.store_local(rows)
        for row, answer in zip(rows, answers, strict=True):
            if isinstance(answer, ServiceError):
                if answer.temporary:
                    raise answer
                self.refused += 1
                with (self._spool.folder / REFUSED).open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"row": row, "status": answer.status, "error": str(answer)}) + "\n")
