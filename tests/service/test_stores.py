"""Tests that every kind of store must pass."""

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from bothworlds.service.records import Frame, Kind, Record
from bothworlds.service.store import Store, StoreError
from support.stores import MAKERS, POSTGRES, StoreFactory, about, decision, mark, snapshot

ODD_IDS = [
    "a",
    "A",
    "a ",
    " a",
    "%",
    "'; DROP TABLE log; --",
    "null\0inside",
    "ä",
    "a\u0308",
    "🙂" * 50,
    "x" * 200,
    '"',
]


@pytest.fixture(params=MAKERS)
def maker(request: pytest.FixtureRequest) -> StoreFactory:
    made: StoreFactory = request.param
    return made


@pytest.fixture
def store(maker: StoreFactory, tmp_path: Path) -> Iterator[Store]:
    opened = maker.write(tmp_path)
    yield opened
    opened.close()


def names(records: list[Record]) -> list[tuple[int, str | None]]:
    return [(record.kind, record.id) for record in records]


def test_a_new_store_is_empty(store: Store) -> None:
    assert (store.last(), list(store.read()), store.experiments(), store.snapshots(1)) == (0, [], {}, [])
    assert (store.find(1, ["a"]), list(store.marks(1)), list(store.rewards(1, after=0))) == ([], [], [])
    assert store.overdue(1, after=0, before=1e12, most=10) == ([], 0)


def test_experiments_have_permanent_numbers(maker: StoreFactory, store: Store, tmp_path: Path) -> None:
    first, second = store.experiment("one"), store.experiment("two")
    assert first != second
    assert (store.experiment("one"), store.experiments()) == (first, {"one": first, "two": second})
    store.close()
    again = maker.write(tmp_path)
    assert (again.experiment("two"), again.experiment("three")) == (second, max(first, second) + 1)
    again.close()


def test_experiments_without_records_are_dropped_unless_they_are_used(store: Store) -> None:
    numbers = {name: store.experiment(name) for name in ("decided", "erased", "used", "mistyped", "shared")}
    frames = [Frame(name, name.encode()) for name in ("f", "own")]
    snapshots = [snapshot(0, experiment=number) for number in numbers.values()]
    snapshots += [snapshot(1, experiment=numbers["mistyped"], fingerprint="own")]
    snapshots += [snapshot(1, experiment=numbers["erased"], through=7)]
    store.append([decision("a", experiment=numbers["decided"])], snapshots=snapshots, frames=frames)
    assert store.drop_unused(["used", "new"]) == ["mistyped", "shared"]
    assert list(store.experiments()) == ["decided", "erased", "used"]
    assert store.snapshots(numbers["mistyped"]) == []
    assert len(store.snapshots(numbers["erased"])) == 2
    assert store.frame("f") == b"f", "others use it"
    with pytest.raises(ValueError, match="no frame of fingerprint own"):
        store.frame("own")
    assert store.drop_unused(["used", "new"]) == []
    store.append([], snapshots=[snapshot(0, experiment=store.experiment("mistyped"))])
    assert len(store.snapshots(store.experiments()["mistyped"])) == 1, "its name can be used again"


def test_records_are_read_back_unchanged_in_commit_order(store: Store) -> None:
    every = [decision(name, time=1.5 + place, active=bool(place % 2)) for place, name in enumerate(ODD_IDS)]
    every += [mark(body=bytes(range(256))), about(Kind.REWARD, "a", flag=False)]
    assert store.append(every[:5]) == 1
    assert store.append(every[5:]) == 6
    assert list(store.read()) == [replace(record, seq=place) for place, record in enumerate(every, 1)]
    assert [record.seq for record in store.read(after=2, through=5)] == [3, 4, 5]
    assert store.last() == len(every)
    assert store.append([]) == len(every) + 1
    assert store.last() == len(every)


@pytest.mark.parametrize("count", [1, 3, 4, 5, 255, 256, 257, 1000, 2500])
def test_a_commit_has_any_number_of_records(store: Store, count: int) -> None:
    store.append([decision(f"{place}") for place in range(count)])
    assert [(record.seq, record.id) for record in store.read()] == [(place + 1, f"{place}") for place in range(count)]


@pytest.mark.parametrize("kind", [Kind.DECISION, Kind.ACTIVATION, Kind.REWARD, Kind.LATE])
@pytest.mark.parametrize("together", [True, False])
def test_a_second_record_of_a_kind_fails_the_whole_commit(store: Store, kind: Kind, together: bool) -> None:
    store.append([decision("before")])
    said = about(kind, "twice")
    if not together:
        store.append([said])
    before = list(store.read())
    with pytest.raises(StoreError):
        store.append(
            [decision("lost"), said, *([said] if together else [])],
            snapshots=[snapshot(7)],
            frames=[Frame("f", b"lost")],
        )
    assert (list(store.read()), store.snapshots(1), store.find(1, ["lost"])) == (before, [], [])
    with pytest.raises(ValueError, match="no frame"):
        store.frame("f")
    assert store.append([decision("after")]) == len(before) + 1, "a failure leaves no gap"


def test_an_id_may_occur_in_two_experiments_and_with_every_kind(store: Store) -> None:
    kinds = [Kind.DECISION, Kind.ACTIVATION, Kind.REWARD, Kind.LATE]
    store.append([about(kind, "a", experiment=number) for number in (1, 2) for kind in kinds])
    assert names(store.find(1, ["a"])) == [(kind, "a") for kind in kinds]
    assert {record.experiment for record in store.find(2, ["a"])} == {2}
    store.append([mark(), mark(), mark(experiment=2)])  # what is no decision's may stand there again and again
    assert len(list(store.marks(1))) == 2


@pytest.mark.parametrize("value", [Record(0, 1, 1, "\ud800", 0.0, True, b""), Record(0, 2**70, 1, "a", 0.0, True, b"")])
def test_records_that_cannot_be_stored_are_a_store_error(store: Store, value: Record) -> None:
    with pytest.raises(StoreError):
        store.append([decision("lost"), value])
    assert store.append([decision("stored")]) == 1
    assert [record.id for record in store.read()] == ["stored"]


def test_decisions_are_found_by_their_ids(store: Store) -> None:
    store.append([decision(name) for name in ODD_IDS] + [decision("elsewhere", experiment=2)])
    store.append([about(Kind.REWARD, ODD_IDS[0])])
    for name in ODD_IDS[1:]:
        assert names(store.find(1, [name])) == [(Kind.DECISION, name)]
    assert sorted(names(store.find(1, [ODD_IDS[0], "unknown", "elsewhere"]))) == [
        (Kind.DECISION, ODD_IDS[0]),
        (Kind.REWARD, ODD_IDS[0]),
    ]
    assert len(store.find(1, ODD_IDS)) == len(ODD_IDS) + 1
    assert store.find(1, []) == []


def test_rewards_are_read_in_log_order_with_their_decisions(store: Store) -> None:
    store.append([decision(name, body=name.encode()) for name in "abcd"])
    store.append([decision("b", experiment=2)])
    store.append([about(Kind.REWARD, "c"), mark(), about(Kind.REWARD, "a", flag=False)])
    store.append([about(Kind.REWARD, "b", experiment=2), about(Kind.LATE, "a"), about(Kind.ACTIVATION, "d")])
    store.append([about(Kind.REWARD, "b")])
    pairs = list(store.rewards(1, after=0))
    assert [(paid.seq, paid.id, paid.flag, made.body) for paid, made in pairs] == [
        (6, "c", True, b"c"),
        (8, "a", False, b"a"),
        (12, "b", True, b"b"),
    ]
    assert [paid.seq for paid, _ in store.rewards(1, after=6)] == [8, 12]
    assert [paid.seq for paid, _ in store.rewards(1, after=6, through=11)] == [8]
    assert [paid.seq for paid, _ in store.rewards(2, after=0)] == [9]
    assert [paid.id for paid, _ in store.rewards(1, after=0, active_after=1)] == ["c", "b"]
    assert [paid.id for paid, _ in store.rewards(1, after=6, active_after=2)] == []
    store.append([decision("late", active=False), decision("next"), about(Kind.ACTIVATION, "late")])
    store.append([about(Kind.REWARD, "late"), about(Kind.REWARD, "next")])
    active = store.last() - 3  # where "next" became active, after "late" was decided and before it became active
    assert [paid.id for paid, _ in store.rewards(1, after=12, active_after=active)] == ["late"]


def test_decisions_take_turns_in_the_order_in_which_they_became_active(store: Store) -> None:
    store.append([decision("a", active=False), decision("b", body=b"of b"), decision("c"), decision("b", experiment=2)])
    store.append([decision("d"), about(Kind.REWARD, "c"), about(Kind.ACTIVATION, "a"), decision("e", active=False)])
    store.append([about(Kind.UNANSWERED, "d", flag=False), about(Kind.LATE, "d"), about(Kind.REWARD, "a"), mark()])
    assert list(store.turns(1, after=0, through=store.last())) == [
        (2, "b", b"of b", None, None, False),
        (3, "c", b"d", 6, b"REWARD c", False),
        (5, "d", b"d", None, None, True),
        (7, "a", b"d", 11, b"REWARD a", False),
    ]
    assert [row[1] for row in store.turns(1, after=2, through=5)] == ["c", "d"]
    assert [row[1] for row in store.turns(2, after=0, through=99)] == ["b"]
    assert list(store.turns(1, after=7, through=store.last())) == []


def test_many_turns_are_read_one_at_a_time(store: Store) -> None:
    store.append([decision(f"{number}", experiment=1 + number % 2) for number in range(5000)])
    turns = store.turns(1, after=100, through=4900)
    assert next(turns)[:2] == (101, "100")
    store.append([about(Kind.REWARD, "102")])
    turns.close()
    assert [row[0] for row in store.turns(1, after=100, through=4900)] == list(range(101, 4900, 2))
    assert next(store.turns(1, after=101, through=4900))[3] == 5001


def test_marks_of_one_experiment_in_log_order(store: Store) -> None:
    kinds = [Kind.VERSION, Kind.CHANGE, Kind.ROLLBACK, Kind.VERSION]
    store.append([decision("a"), *(mark(kind) for kind in kinds), mark(experiment=2), about(Kind.REWARD, "a")])
    assert [(record.seq, record.kind) for record in store.marks(1)] == list(enumerate(kinds, 2))
    assert [record.seq for record in store.marks(1, after=3)] == [4, 5]


def test_blocks_of_one_experiment_in_log_order(store: Store) -> None:
    store.append([decision(f"{i}", experiment=1 + i % 2) for i in range(3000)])
    store.append([mark(), mark(experiment=2)])
    every = [(one.seq, one.kind, one.id, one.body) for one in store.read() if one.experiment == 1]
    blocks = list(store.blocks(1, after=0, through=store.last()))
    assert [tuple(row) for block in blocks for row in block] == every
    assert len(blocks) > 1
    assert [row[0] for block in store.blocks(1, after=3, through=9) for row in block] == [5, 7, 9]


def test_notes_are_part_of_the_commit(maker: StoreFactory, store: Store, tmp_path: Path) -> None:
    store.append([decision("a")], notes={"expired 1": 7, "expired 2": 9})
    store.append([], notes={"expired 1": 8})
    with pytest.raises(StoreError):
        store.append([decision("a")], notes={"expired 1": 99})
    assert [store.note(f"expired {number}") for number in (1, 2, 3)] == [8, 9, 0]
    store.close()
    again = maker.read(tmp_path)
    assert again.note("expired 1") == 8
    again.close()


def test_overdue_decisions_are_active_old_and_unrewarded(store: Store) -> None:
    store.append([decision(name, time=10.0, active=name != "inactive") for name in ("rewarded", "inactive", "open")])
    store.append([decision("other", experiment=2, time=10.0), decision("activated", time=10.0, active=False)])
    store.append([about(Kind.REWARD, "rewarded", time=11.0), about(Kind.ACTIVATION, "activated", time=20.0)])
    store.append([decision("young", time=30.0)])
    assert store.overdue(1, after=0, before=9.0, most=100) == ([], 0)
    assert store.overdue(1, after=0, before=10.0, most=100) == (["open"], 5)
    assert store.overdue(1, after=0, before=25.0, most=100) == (["open", "activated"], 7)
    assert store.overdue(1, after=5, before=25.0, most=100) == (["activated"], 7)
    assert store.overdue(2, after=0, before=25.0, most=100) == (["other"], 7)
    assert store.overdue(1, after=0, before=25.0, most=2) == ([], 2), "how far was looked, though none was found"
    store.append([about(Kind.REWARD, name, time=26.0, flag=False) for name in ("open", "activated")])
    assert store.overdue(1, after=0, before=25.0, most=100) == ([], 7), "a default reward is a reward"
    assert store.overdue(1, after=7, before=99.0, most=100) == (["young"], 10)


def test_a_clock_that_goes_back_skips_no_decision(store: Store) -> None:
    store.append([decision("early", time=100.0), decision("after the clock went back", time=50.0)])
    assert store.overdue(1, after=0, before=60.0, most=100) == ([], 0)
    assert store.overdue(1, after=0, before=100.0, most=100) == (["early", "after the clock went back"], 2)


def test_a_record_from_the_future_delays_no_other(store: Store) -> None:
    store.append([decision("early", time=10.0), decision("wrong clock", time=9e9), decision("next", time=20.0)])
    store.append([decision("young", time=90.0), decision("wrong clock at the end", time=9e9)])
    assert store.overdue(1, after=0, before=15.0, now=100.0, most=100) == (["early"], 1), (
        "it may be as young as the next"
    )
    assert store.overdue(1, after=1, before=30.0, now=100.0, most=100) == (["wrong clock", "next"], 3)
    assert store.overdue(1, after=3, before=95.0, now=100.0, most=100) == (["young"], 4), "it is skipped"
    assert store.overdue(1, after=4, before=95.0, now=100.0, most=100) == ([], 4)


@pytest.mark.parametrize(("through", "expired"), [(2, 4), (4, 0)])
def test_sequence_numbers_are_not_reused_after_an_erasure(
    maker: StoreFactory, store: Store, tmp_path: Path, through: int, expired: int
) -> None:
    store.append([decision("a"), about(Kind.REWARD, "a"), mark(), about(Kind.LATE, "a")])
    sealing = snapshot(1, through=through)
    store.append([], snapshots=[sealing], notes={"expired 1": expired})
    assert store.erase(sealing) == 3
    assert store.last() == 3
    store.close()
    again = maker.write(tmp_path)
    assert again.append([decision("b")]) == 5
    again.close()


def test_unanswered_decisions_are_closed_and_erased_like_rewarded_ones(store: Store) -> None:
    store.append([decision("a"), decision("b"), about(Kind.UNANSWERED, "a", flag=False), mark(), decision("c")])
    assert store.overdue(1, after=0, before=1.0, most=10) == (["b", "c"], 5)
    assert store.counts(1, through=5)[Kind.UNANSWERED, False] == 1
    assert list(store.rewards(1, after=0)) == [], "nothing is learned from it"
    assert [reward for _, reward, _ in store.history(1)] == [None, None, None]
    sealing = snapshot(1, through=3)
    store.append([], snapshots=[sealing])
    assert store.erase(sealing) == 2
    assert [record.id for record in store.read()] == ["b", None, "c"]


def test_decisions_that_were_learned_in_order_are_erased_in_parts(store: Store) -> None:
    names = "abcdef"
    store.append([decision(name, active=name != "f") for name in names])
    store.append([about(Kind.REWARD, name) for name in "abe"])
    store.append([about(Kind.UNANSWERED, "c", flag=False), about(Kind.LATE, "c"), mark(), decision("a", experiment=2)])
    learned = snapshot(1, through=0, ordered_through=3)
    store.append([], snapshots=[snapshot(0), learned, snapshot(2, ordered_through=9)])
    assert learned.end == 3
    assert store.erase_part(learned, after=0, through=1) == 2
    assert (store.note("sealed 1"), store.note("erased 1")) == (1, 1)
    assert [record.id for record in store.read()] == ["b", "c", "d", "e", "f", "b", "e", "c", "c", None, "a"]
    assert store.erase_part(learned, after=1, through=3) == 5
    assert [record.id for record in store.read()] == ["d", "e", "f", "e", None, "a"], "e is after d, which is open"
    assert store.note("erased 1") == 3
    assert [one.version for one in store.snapshots(1)] == [2, 1, 0]
    assert store.erase_part(snapshot(2, ordered_through=9), after=3, through=6) == 3
    assert [record.id for record in store.read()] == ["f", None, "a"], "a decision that never became active stays"
    assert [one.version for one in store.snapshots(1)] == [2, 0]
    store.append([], snapshots=[snapshot(version, through=20) for version in range(3, 9)])
    assert 2 in [one.version for one in store.snapshots(1)], "the log begins with it"


def test_a_whole_erasure_is_of_what_was_learned_in_either_order(store: Store) -> None:
    store.append(
        [decision("a"), decision("b"), about(Kind.REWARD, "b"), decision("c"), about(Kind.REWARD, "a"), mark()]
    )
    both = snapshot(3, through=3, ordered_through=1)
    store.append([], snapshots=[both])
    assert store.erase(both) == 4
    assert [record.id for record in store.read()] == ["c", None]
    assert store.note("erased 1") == 3


def test_counts_of_a_range_of_the_log(store: Store) -> None:
    store.append([decision("a"), decision("b", active=False), about(Kind.REWARD, "a"), decision("c", experiment=2)])
    store.append([about(Kind.ACTIVATION, "b"), mark(), about(Kind.REWARD, "b", flag=False)])
    found = [store.counts(1, after=after, through=through) for after, through in ((0, 3), (3, 7))]
    assert found[0][Kind.DECISION, True] == found[0][Kind.DECISION, False] == found[0][Kind.REWARD, True] == 1
    assert found[1][Kind.ACTIVATION, True] == found[1][Kind.REWARD, False] == 1
    assert {key: sum(part[key] for part in found) for key in found[0]} == store.counts(1, through=7)


def test_frames_are_stored_once_per_fingerprint(store: Store) -> None:
    store.append([], snapshots=[snapshot(0)], frames=[Frame("f", b"first"), Frame("g", b"other")])
    store.append([], snapshots=[snapshot(1)], frames=[Frame("f", b"again")])
    assert (store.frame("f"), store.frame("g")) == (b"first", b"other")
    with pytest.raises(ValueError, match="no frame of fingerprint h"):
        store.frame("h")


def test_snapshots_are_listed_newest_first_without_content(store: Store) -> None:
    store.append([], snapshots=[snapshot(2, through=9), snapshot(5, through=20, fingerprint="g")])
    store.append([], snapshots=[snapshot(3, experiment=2)])
    listed = store.snapshots(1)
    assert [(one.version, one.through, one.digest, one.fingerprint, one.content) for one in listed] == [
        (5, 20, "digest 5", "g", b""),
        (2, 9, "digest 2", "f", b""),
    ]
    assert [store.content(one) for one in listed] == [b"content 5", b"content 2"]
    with pytest.raises(ValueError, match="no snapshot of version 7"):
        store.content(snapshot(7))
    store.append([], snapshots=[snapshot(5, through=21, fingerprint="g")])
    assert [(one.version, one.through) for one in store.snapshots(1)] == [(5, 21), (2, 9)], "the same version again"
    store.append([], snapshots=[snapshot(5, ordered_through=30, time=8.5, fingerprint="g")])
    newest = store.snapshots(1)[0]
    assert (newest.through, newest.ordered_through, newest.time, newest.end) == (0, 30, 8.5, 30)


def test_old_snapshots_are_dropped(store: Store) -> None:
    for version in range(100):
        fingerprint = "f" if version < 30 else "g"
        store.append([], snapshots=[snapshot(version, through=version * 25_000, fingerprint=fingerprint)])
        store.append([], snapshots=[snapshot(version, experiment=2)])
    versions = [one.version for one in reversed(store.snapshots(1))]
    assert {0, 30, 97, 98, 99} <= set(versions), "the first of all, the first after a change, the newest"
    gaps = [after - before for before, after in itertools.pairwise(versions)]
    assert max(gaps) <= 8, "never more than 200,000 records to learn again"
    assert len(versions) <= 18
    assert [one.version for one in store.snapshots(2)] == [99, 98, 97, 0], "one experiment's do not touch another's"


def test_snapshots_are_kept_for_erasures_by_time_and_by_what_was_learned_in_order(store: Store) -> None:
    for number in (1, 2):
        store.append([decision("a", experiment=number)])
    store.keep_snapshots(1, 60.0)
    for version in range(40):
        learned, time = 25_000 * version, 1000.0 + 10.0 * version
        pair = [snapshot(version, experiment=number, ordered_through=learned, time=time) for number in (1, 2)]
        store.append([], snapshots=pair)
    timed, plain = ([one.version for one in reversed(store.snapshots(number))] for number in (1, 2))
    assert max(after - before for before, after in itertools.pairwise(plain)) == 8, "what was learned in order counts"
    assert set(plain) <= set(timed)
    minutes = [{(1000 + 10 * version) // 60 for version in versions} for versions in (timed, plain, range(40))]
    assert minutes[0] == minutes[2] > minutes[1], "one for every minute"


def test_the_space_that_a_store_takes(store: Store) -> None:
    before = store.space()
    assert all(size >= 0 for size in before.used.values())
    assert before.free is None or before.free > 0
    store.append([decision(f"{number}", body=bytes(1000)) for number in range(3000)])
    assert sum(store.space().used.values()) > sum(before.used.values()) + 2_000_000


def test_nothing_learns_beside_a_store_that_is_used_alone(store: Store) -> None:
    with store.alone():
        store.append([mark()])
    store.append([mark()])
    with store.alone():
        store.append([mark()])
    assert store.last() == 3


def test_one_writer_at_a_time(maker: StoreFactory, store: Store, tmp_path: Path) -> None:
    if maker is POSTGRES:
        pytest.skip("several hosts write")
    with pytest.raises(ValueError, match="is in use: another service writes to it"):
        maker.write(tmp_path)
    store.append([decision("a")])
    store.close()
    again = maker.write(tmp_path)
    assert again.append([decision("b")]) == 2
    again.close()


def test_readers_see_only_what_is_committed(maker: StoreFactory, store: Store, tmp_path: Path) -> None:
    reader = maker.read(tmp_path)
    assert list(reader.read()) == []
    store.append([decision("a")])
    assert [record.id for record in reader.read()] == ["a"]
    with pytest.raises(StoreError):
        store.append([decision("b"), decision("a")])
    assert [record.id for record in reader.read()] == ["a"]
    records = reader.read()
    next(records)
    store.append([decision(f"later {place}") for place in range(2000)])
    assert list(records) == [], "reading ends where the log ended at its start"
    store.close()
    assert reader.last() == 2001, "what was open for reading stays so"
    reader.close()


def test_threads_may_read_while_another_writes(store: Store) -> None:
    store.append([decision("0")])
    wrong: list[object] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            ids = [int(str(record.id)) for record in store.read()]
            if ids != list(range(len(ids))) or (len(ids) - 1) % 7:
                wrong.append(ids)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for group in range(40):
        store.append([decision(f"{1 + group * 7 + place}") for place in range(7)])
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert store.last() == 281


def test_a_store_for_reading_only(maker: StoreFactory, store: Store, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such store"):
        maker.read(tmp_path / "elsewhere")
    store.append([decision("a")])
    reader = maker.read(tmp_path)
    with pytest.raises(Exception, match=r"read|writ"):
        reader.append([decision("b")])
    reader.close()


def test_tidy_and_probe_change_no_record(maker: StoreFactory, store: Store, tmp_path: Path) -> None:
    for group in range(5):
        store.append([decision(f"{group} {place}") for place in range(1500)])
        store.tidy()
        store.probe()
    assert store.last() == len(list(store.read())) == 7500
    store.close()
    again = maker.write(tmp_path)
    assert again.last() == 7500
    again.close()


@pytest.mark.parametrize("found", ["bothworlds-store-2", "something else"])
def test_another_format_is_refused_with_advice(maker: StoreFactory, store: Store, tmp_path: Path, found: str) -> None:
    store.close()
    maker.set_format(tmp_path, found)
    for opening in (maker.write, maker.read):
        with pytest.raises(ValueError, match=rf"has format '{found}'.*export"):
            opening(tmp_path)
    maker.set_format(tmp_path, "bothworlds-store-1")
    maker.write(tmp_path).close()
