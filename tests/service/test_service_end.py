"""The end of a service: no request hangs, and later ones are refused."""

import threading
from pathlib import Path
from typing import Any

import pytest

from bothworlds.service.messages import Arm, Change, Decide, Refusal, Reward, Rollback
from bothworlds.service.service import Service
from bothworlds.service.sqlite import SQLiteStore
from bothworlds.service.store import StoreError
from support.services import settings, wait_until


@pytest.mark.parametrize("safe", [None, "blue"])
def test_requests_after_the_end_are_refused(tmp_path: Path, safe: str | None) -> None:
    service = Service(settings(tmp_path, overrides={"safe_arm": safe}))
    service.close()
    status, answer = service.ask(Decide("mobile", "late"))
    assert (status, getattr(answer, "stored", None)) == ((503, None) if safe is None else (200, False))
    status, said = service.ask(Reward("late", 1.0))
    assert (status, said) == (503, Refusal("nothing was stored, try again: the service has ended"))
    for asked in (Change(add=[Arm("violet")]), Rollback(version=0)):
        with pytest.raises(StoreError, match="the service has ended"):
            service.change(asked)


def test_no_request_hangs_while_the_service_ends(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    statuses: list[int] = []

    def ask(visitor: int) -> None:
        for number in range(10_000):
            statuses.append(service.ask(Decide("mobile", f"{visitor} {number}"))[0])
            if statuses[-1] == 503:
                return

    visitors = [threading.Thread(target=ask, args=(visitor,)) for visitor in range(8)]
    for visitor in visitors:
        visitor.start()
    wait_until(lambda: len(statuses) > 50)
    service.close()
    for visitor in visitors:
        visitor.join(timeout=20)
    assert not any(visitor.is_alive() for visitor in visitors)
    store = SQLiteStore(tmp_path / "bothworlds.sqlite", writes=False)
    assert len(list(store.read())) == statuses.count(200)
    store.close()


def test_closing_answers_waiting_requests(tmp_path: Path) -> None:
    service = Service(settings(tmp_path))
    answers: list[Any] = []
    asking = [
        threading.Thread(target=lambda place=place: answers.append(service.ask(Decide("mobile", f"{place}"))))
        for place in range(8)
    ]
    append, slow = service.store.append, threading.Event()

    def waits(*records: Any, **more: Any) -> int:
        slow.wait(5)
        return append(*records, **more)

    service.store.append = waits  # type: ignore[method-assign]
    for thread in asking:
        thread.start()
    wait_until(lambda: service.writer.waiting >= 1 or len(answers) == 8)
    closing = threading.Thread(target=service.close)
    closing.start()
    slow.set()
    closing.join(20)
    assert not closing.is_alive()
    for thread in asking:
        thread.join(5)
    assert [status for status, _ in answers] == [200] * 8
