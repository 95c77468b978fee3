"""What is read off the requests of a session."""

from __future__ import annotations

from streamgauge.crosscheck.abr.quantities import QUANTITIES, SegmentRequest, of_requests, requests

LEVELS = (100_000, 250_000, 500_000)


def asked(*told: tuple[int, int]) -> list[SegmentRequest]:
    return [SegmentRequest(place, level, segment) for place, (level, segment) in enumerate(told)]


def test_requests_of_our_player_and_of_others_read_alike() -> None:
    ours = [
        (1, "up GET /manifest.mpd"),
        (2, "up GET /v2/init.mp4"),
        (3, "up GET /v2/7.m4s"),
        (4, "down 200 OK"),
        (5, "up GET /a0/7.m4s"),
    ]
    others = [
        (1, "up GET /manifest.mpd?CMCD=ot%3Dm"),
        (2, "up GET /init-2.m4s?CMCD=ot%3Di"),
        (3, "up GET /segment-2-7.m4s?CMCD=nor%3D%22segment-2-8.m4s%22"),
        (4, "down 200 OK"),
    ]
    assert requests(ours) == requests(others) == [SegmentRequest(3, 2, 7)]


def test_a_segment_counts_once_at_its_last_level() -> None:
    found = of_requests(asked((1, 1), (2, 2), (0, 2), (0, 3), (1, 3), (1, 4)), LEVELS)
    assert found == {"level_bps": (250 + 100 + 250 + 250) * 1000 / 4, "level_changes": 2.0, "again": 2.0}


def test_what_is_replaced_while_it_is_held_counts_in_its_place() -> None:
    # Asked for out of order, as a player does that goes back to what it holds.
    assert of_requests(asked((0, 1), (0, 2), (0, 3), (2, 2), (2, 3)), LEVELS)["level_changes"] == 1.0


def test_a_session_that_asked_for_nothing_has_nothing_to_measure() -> None:
    assert set(of_requests([], LEVELS).values()) == {None}
    assert set(of_requests([], LEVELS)) < set(QUANTITIES)
