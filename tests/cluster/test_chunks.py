"""How many pieces go to a worker at a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from spindle.cluster.chunks import LEAST_S, MOST_S, QUEUED, Waiting, pieces_of_chunk

SHORT_S = 0.001
"""A short simulation: a thousand requests, at a million a second."""


def test_a_chunk_has_at_least_a_thousand_short_simulations() -> None:
    for left in (100_000, 20_000, 5_000, 2_000):
        assert pieces_of_chunk(left, threads=2, sent=2, piece_s=SHORT_S) >= 1000


def test_or_all_there_are_spread_over_idle_threads() -> None:
    assert pieces_of_chunk(40, threads=4, sent=4, piece_s=SHORT_S) == 40
    assert pieces_of_chunk(40, threads=4, sent=0, piece_s=SHORT_S) == 10


def test_a_simulation_of_seconds_is_a_chunk_of_its_own() -> None:
    assert pieces_of_chunk(500, threads=2, sent=2, piece_s=4 * LEAST_S) <= MOST_S / (4 * LEAST_S)
    assert pieces_of_chunk(500, threads=2, sent=2, piece_s=2 * MOST_S) == 1


def test_chunks_become_smaller_towards_the_end() -> None:
    sizes, left = [], 20_000
    while left:
        sizes.append(min(left, pieces_of_chunk(left, threads=2, sent=4, piece_s=SHORT_S)))
        left -= sizes[-1]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 2 * sizes[-2]


def test_the_first_chunks_have_one_piece_as_their_time_is_not_known() -> None:
    assert pieces_of_chunk(1000, threads=8, sent=0, piece_s=None) == 1


@given(
    kinds=st.lists(st.sampled_from("abc"), max_size=60),
    threads=st.integers(1, 5),
    seconds=st.floats(1e-4, 20),
)
def test_each_piece_is_sent_once_with_those_of_its_kind(kinds: list[str], threads: int, seconds: float) -> None:
    waiting: Waiting[tuple[str, int]] = Waiting(lambda item: item[0])
    items = [(kind, number) for number, kind in enumerate(kinds)]
    waiting.add(items)
    sent, seen = 0, []
    while some := waiting.next(threads, sent):
        assert len({kind for kind, _ in some}) == 1
        seen += some
        waiting.took(some[0][0], seconds * len(some), len(some))
        sent = (sent + 1) % (QUEUED * threads)
    assert sorted(seen) == sorted(items)
    assert len(waiting) == 0
    for kind in "abc":
        assert [item for item in seen if item[0] == kind] == [item for item in items if item[0] == kind]


def test_no_more_is_sent_than_workers_need_to_go_on() -> None:
    waiting: Waiting[str] = Waiting(str)
    waiting.add(["a"] * 10)
    assert waiting.next(threads=2, sent=2 * QUEUED) == []
    assert waiting.next(threads=0, sent=QUEUED) == []
