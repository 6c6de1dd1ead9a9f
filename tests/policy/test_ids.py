"""Ids: made ones are never issued twice, draws follow from them, and forks issue their own."""

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothworlds.policy.ids import (
    IdIssuer,
    KeyedRandom,
    given_id,
    id_of,
    new_source,
    parts_of,
    secret_of,
    session_of,
    source_of,
    stream_of,
)


@given(st.text(min_size=1, max_size=200).filter(lambda text: text[0] != "@"), st.integers(1, 2**62))
def test_ids_and_sources_belong_together(name: str, number: int) -> None:
    assert source_of(id_of(name, 0), 0) == name
    source = new_source()
    assert source_of(id_of(source, number), number) == source
    with pytest.raises(ValueError, match="damaged"):
        source_of(id_of(source, number), number + 1)


@pytest.mark.parametrize("name", ["", "@mine.1", "x" * 201, 7, None])
def test_ids_that_cannot_be_given(name: object) -> None:
    with pytest.raises(ValueError, match="an id is a string of 1 to 200 characters"):
        given_id(name)


def test_draws_follow_from_id_and_secret_alone() -> None:
    random = KeyedRandom(secret_of(7))
    drawn = {random.key_and_time(f"visit {i}") for i in range(10_000)}
    assert len(drawn) == 10_000
    assert all(0 <= part < 2**63 for pair in drawn for part in pair)
    assert (
        KeyedRandom(secret_of(7)).key_and_time("visit 3")
        == random.key_and_time("visit 3")
        != KeyedRandom(secret_of(8)).key_and_time("visit 3")
    )


def test_streams_of_others_are_their_own() -> None:
    keys = {stream_of(key, source) for key in (7, 8) for source in ("@a", "@b")}
    assert len(keys | {7, 8}) == 6


def test_a_desk_gives_each_number_once_to_any_thread() -> None:
    id_issuer, found = IdIssuer(), [list[tuple[str, int]]() for _ in range(8)]

    def take(into: list[tuple[str, int]]) -> None:
        into.extend(id_issuer.issue() for _ in range(5000))

    threads = [threading.Thread(target=take, args=(into,)) for into in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({pair for into in found for pair in into}) == 40_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_desk_is_another() -> None:
    id_issuer = IdIssuer()
    mine, (reading, writing) = id_issuer.issue()[0], os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, id_issuer.issue()[0].encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100).decode() != mine == id_issuer.issue()[0]
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("name", ["@5e", "@5e.", "@5e.x", "@5e.-3", "@5e.1_0", "@5e.0017", f"@5e.{2**64}"])
def test_made_ids_that_nobody_made_are_refused_in_a_sentence(name: str) -> None:
    with pytest.raises(ValueError, match="is damaged"):
        parts_of(name)


def test_what_looks_like_a_life_and_is_none_belongs_to_a_plan() -> None:
    assert session_of("@84332610-x-y-9f3c") is None
    assert session_of("@84332610-2-51-9f3c") == ("84332610", 2, 51)


def test_half_a_character_is_no_id() -> None:
    with pytest.raises(ValueError, match="half of a surrogate pair"):
        given_id("visit \ud800")
    assert given_id("Besuch ü 😀") == "Besuch ü 😀"
