"""What is read off the requests of a session."""

from __future__ import annotations

from streamgauge.crosscheck.abr.quantities import QUANTITIES, SegmentRequest, of_requests, requests
from streamgauge.crosscheck.abr.shares import by_player, sentences
from streamgauge.crosscheck.equivalence import margin_of

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


def test_no_margin_grows_with_what_varies_from_trial_to_trial() -> None:
    spread = [500_000.0, 900_000.0, 1_300_000.0, 400_000.0]
    for one in QUANTITIES.values():
        assert one.fixed, one.name
        alike = [sum(spread) / len(spread)] * len(spread)
        margins = {
            margin_of(values, relative=one.relative, absolute=one.absolute, fixed=one.fixed)
            for values in (spread, alike)
        }
        assert len(margins) == 1, one.name
    assert {name: (one.relative, one.absolute) for name, one in QUANTITIES.items()} == {
        "level_bps": (0.1, 0),
        "shown_bps": (0.1, 0),
        "level_changes": (0.2, 2),
        "stall_time_s": (0.2, 1),
        "startup_s": (0.2, 0.2),
        "again": (0.2, 2),
        "buffer_s": (0.1, 1),
    }


def test_shares_count_an_undecided_row_as_not_equivalent() -> None:
    rows = [
        {"case": "dashjs/2s-square", "verdict": "equivalent"},
        {"case": "dashjs-bola/4s-steps", "verdict": "inconclusive"},
        {"case": "hlsjs/6s-trace", "verdict": "explained"},
        {"case": "shaka/6s-square", "verdict": "equivalent"},
    ]
    assert [(one.title, one.percent) for one in by_player(rows)] == [
        ("dash.js", 50.0),
        ("hls.js", 0.0),
        ("Shaka", 100.0),
    ]
    assert sentences({"rows": rows})[0] == (
        "dash.js: 1 of 2 rows are equivalent (50 %); by the segments' length: 2 s 1 of 1, 4 s 0 of 1."
    )
