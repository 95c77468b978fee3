#!/usr/bin/env python3
"""Draws the playlists of catalogue/realvideo: 79 clips each, as Chung, Claypool and Zhu describe theirs.

Lengths, numbers of levels, lowest levels and the clips with one rate above 150 kbit/s are the paper's figures
(sections IV and V-F); rates are those of RealNetworks' encoders of the time; the path beyond the bottleneck
is ours. The draw is by name, which makes it the same everywhere, and was frozen before the first run: a test
compares the files with it.

    scripts/playlists.py                writes catalogue/realvideo/playlists/01.json to 20.json; of the first
                                        also each clip's highest level alone, for players of one rate, and
                                        eight of its clips at 120 s at most, for emu, with those
                                        at their highest level alone; and 01-exact.json with
                                        quantiles in place of drawn lengths and fewer clips of many levels,
                                        so that it has exactly the paper's printed figures of clips
    scripts/playlists.py --check        compares them with the draw
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

from streamgauge.scenario.draws import draw

FOLDER = Path(__file__).parent.parent / "catalogue" / "realvideo" / "playlists"
PLAYLISTS = 20
CLIPS = 79
LENGTH_S = {"median": 180.0, "sigma": 1.0, "least": 20.0, "most": 1800.0}
"""Log-normal. The median and the ends are the paper's, sigma is ours."""
AUDIENCES_KBPS = (20, 34, 50, 80, 150, 225, 350, 450)
"""Rates of RealNetworks' encoders for 28.8 and 56 kbit/s modems, ISDN, DSL and LANs, sound counted in."""
SHARES = (0.5, 0.75, 1.0)
"""Parts of an audience's picture rate that have encodings."""
LEAST_KBPS = 10
"""Less than this our encoder makes no pictures of."""
SINGLE, FEW, MANY = 28, 12, 39
"""Clips of one level (35 %), of two to four, of more (49 %)."""
SINGLE_ABOVE_150 = 11
"""Number among those of one level (40 %)."""
EXACT_FEW, EXACT_MANY, EXACT_FEW_NOT_BELOW_50 = 17, 34, 12
"""The same of the exact playlist: 43 % have more than four levels."""
ALWAYS_BELOW_35 = 12
"""Clips with every level below 35 kbit/s (15 %)."""
FEW_NOT_BELOW_50 = 8
"""Number among those of few levels (more than half)."""
SHORT_S = 120
"""The most that a clip lasts of those that are played in real time."""
LOSS_FREE = 0.5
"""The part of clips without loss on the far path; the others lose 0.05 to 1.5 %, as likely by ratio."""
FAR_RTT_MS = ((76, 40, 110), (9, 60, 130), (15, 110, 210))
"""Numbers, of 100 servers, in the United States, in Canada, in Europe; DSL's own delay counted in."""


class Draws:
    """Numbers of one playlist, by name."""

    def __init__(self, playlist: int) -> None:
        self.playlist = playlist

    def part(self, clip: int, what: str) -> float:
        """From 0 to 1."""
        return draw(self.playlist, f"clip {clip}", what, 0, 10**6 - 1) / 10**6

    def among(self, clip: int, what: str, count: int) -> int:
        """From 0, as likely each."""
        return draw(self.playlist, f"clip {clip}", what, 0, count - 1)

    def order(self, what: str, count: int) -> list[int]:
        """Returns the numbers from 0 in a drawn order."""
        return sorted(
            range(count), key=lambda one: (draw(self.playlist, f"{what} {one}", "order", 0, 2**60), one)
        )


def normal(part: float) -> float:
    """Returns the standard normal quantile, by bisection: no library's version decides."""
    low, high = -8.0, 8.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 + math.erf(middle / math.sqrt(2))) / 2 < part else (low, middle)
    return low


def length_s(part: float) -> int:
    """Returns the length that exceeds those of such a part of all clips."""
    part = min(max(part, 1e-6), 1 - 1e-6)
    drawn = LENGTH_S["median"] * math.exp(LENGTH_S["sigma"] * normal(part))
    return round(min(max(drawn, LENGTH_S["least"]), LENGTH_S["most"]))


def audio_kbps(lowest: int) -> int:
    """Sound's share of the lowest level."""
    return 5 if lowest < 34 else 8 if lowest < 80 else 16 if lowest < 225 else 32


def levels_kbps(draws: Draws, clip: int, kind: str, place: int, few_not_below_50: int) -> list[int]:
    """Returns all that a clip's levels need, sound counted in."""
    low = [rate for rate in AUDIENCES_KBPS if rate < 35]
    if kind == "single":
        if place < SINGLE_ABOVE_150:
            rates = [rate for rate in AUDIENCES_KBPS if rate > 150]
        elif place < SINGLE_ABOVE_150 + ALWAYS_BELOW_35:
            rates = low
        else:
            rates = [rate for rate in AUDIENCES_KBPS if 35 < rate <= 150]
        return [rates[draws.among(clip, "rate", len(rates))]]
    if kind == "few":
        least = 2 if place < few_not_below_50 else 0
        count = 2 + draws.among(clip, "levels", 3)
        first = least + draws.among(clip, "lowest", len(AUDIENCES_KBPS) - least - count + 1) if least else 0
        return list(AUDIENCES_KBPS[first : first + count])
    # Two or three audiences, with the parts of each.
    audiences = 2 + draws.among(clip, "audiences", 2)
    first = draws.among(clip, "lowest", 3)
    chosen = [AUDIENCES_KBPS[min(first + 2 * step, len(AUDIENCES_KBPS) - 1)] for step in range(audiences)]
    sound = audio_kbps(chosen[0])
    parts = {sound + max(round(share * (rate - sound)), LEAST_KBPS) for rate in chosen for share in SHARES}
    return sorted(parts)


def member(draws: Draws, clip: int, levels: list[int], length: float) -> dict[str, Any]:
    """Returns a clip of these levels, longer than such a part of all clips."""
    sound = audio_kbps(levels[0])
    said: dict[str, Any] = {"source": "carphone"}
    if len(levels) == 1:
        said |= {"rate": f"{levels[0]} kbit/s", "audio": f"{sound} kbit/s"}
    else:
        said |= {
            "ladder": [f"{rate - sound}k" for rate in levels],
            "audio": f"{sound} kbit/s",
            "segment": "4 s",
        }
    said["duration"] = f"{length_s(length)} s"
    where = draws.among(clip, "country", 100)
    for share, least, most in FAR_RTT_MS:
        if where < share:
            rtt = least + draws.part(clip, "rtt") * (most - least)
            break
        where -= share
    loss = 0.0
    if draws.part(clip, "loss-free") >= LOSS_FREE:
        loss = 0.05 * (1.5 / 0.05) ** draws.part(clip, "loss")
    return {"clip": said, "rtt": f"{rtt:.0f} ms", "loss": f"{loss:.2f} %"}


def playlist(number: int) -> list[dict[str, Any]]:
    """Returns its members."""
    draws = Draws(number)
    kinds = kinds_of(FEW, MANY)
    return [
        member(
            draws, clip, levels_kbps(draws, clip, *kinds[of], FEW_NOT_BELOW_50), draws.part(clip, "length")
        )
        for clip, of in enumerate(draws.order("kind", CLIPS))
    ]


def exact_playlist(number: int) -> list[dict[str, Any]]:
    """Returns the same with the paper's length and numbers of levels exactly."""
    draws = Draws(number)
    kinds = kinds_of(EXACT_FEW, EXACT_MANY)
    lengths = [(place + 0.5) / CLIPS for place in draws.order("length", CLIPS)]
    return [
        member(draws, clip, levels_kbps(draws, clip, *kinds[of], EXACT_FEW_NOT_BELOW_50), lengths[clip])
        for clip, of in enumerate(draws.order("kind", CLIPS))
    ]


def kinds_of(few: int, many: int) -> list[tuple[str, int]]:
    """Kinds of clips by their number of levels, and their places among those of one kind."""
    counts = {"single": SINGLE, "few": few, "many": many}
    return [(kind, place) for kind, count in counts.items() for place in range(count)]


def highest(member: dict[str, Any]) -> dict[str, Any]:
    """Returns the same with its highest level alone."""
    clip = dict(member["clip"])
    ladder, _ = clip.pop("ladder", None), clip.pop("segment", None)
    if ladder is not None:
        sound = int(clip["audio"].split()[0])
        clip = {"source": clip["source"], "rate": f"{int(ladder[-1][:-1]) + sound} kbit/s", **clip}
    return {**member, "clip": clip}


def eighth(members: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns from each quarter by highest level the clips at the quartiles of length, cut to 120 s."""

    def kbps(member: dict[str, Any]) -> int:
        said = highest(member)["clip"]["rate"]
        return int(said.split()[0])

    def seconds(member: dict[str, Any]) -> int:
        return int(member["clip"]["duration"].split()[0])

    found = []
    ordered = sorted(members, key=kbps)
    for quarter in range(4):
        mine = ordered[len(ordered) * quarter // 4 : len(ordered) * (quarter + 1) // 4]
        mine.sort(key=seconds)
        found += [mine[len(mine) // 4], mine[3 * len(mine) // 4]]
    return [{**one, "clip": {**one["clip"], "duration": f"{min(seconds(one), SHORT_S)} s"}} for one in found]


def text(members: list[dict[str, Any]]) -> str:
    """Returns a playlist's file: a member a line."""
    return "[\n" + ",\n".join(json.dumps(member) for member in members) + "\n]\n"


def files() -> dict[str, str]:
    """Returns all of them, by name."""
    drawn = {number: playlist(number) for number in range(1, PLAYLISTS + 1)}
    found = {f"{number:02d}.json": text(members) for number, members in drawn.items()}
    found["01-highest.json"] = text([highest(member) for member in drawn[1]])
    found["01-exact.json"] = text(exact_playlist(1))
    found["01-eight.json"] = text(eighth(drawn[1]))
    found["01-eight-highest.json"] = text([highest(member) for member in eighth(drawn[1])])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing; say which differ")
    wanted = parser.parse_args()
    different = []
    for name, told in files().items():
        file = FOLDER / name
        if wanted.check:
            if not file.is_file() or file.read_text(encoding="utf-8") != told:
                different.append(name)
        else:
            FOLDER.mkdir(parents=True, exist_ok=True)
            file.write_text(told, encoding="utf-8")
    if different:
        print(f"playlists: not what is drawn: {', '.join(different)}", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
