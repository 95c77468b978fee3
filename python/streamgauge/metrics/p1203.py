"""Sessions as input of ITU-T P.1203, and the score of a program of the user's own.

The model that is public (itu-p1203) may be used for non-commercial research only. It is therefore no part of
this project and no dependency of it: it is asked if it is there, as a program by itself.
"""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from streamgauge.errors import CannotRunError, MediaError
from streamgauge.metrics.frame import RecordLike, prepare
from streamgauge.metrics.grid import SECOND_NS
from streamgauge.metrics.ladder import ladder_of
from streamgauge.metrics.levels import course_of
from streamgauge.metrics.session import watched

__all__ = ["mean_opinion", "require", "session_of"]

PACKAGE = "itu_p1203"
DISPLAY = "1920x1080"
_LONGEST_S = 600


def session_of(record: RecordLike, flow: str) -> dict[str, Any]:
    """Returns the session of a flow's viewer in a trial, as P.1203's input of mode 0: for each level shown in
    turn, by media time, codec, bit rate, frame rate and picture size (I13), its sound (I11), and start-up and
    stalls as [media time, duration] (I23); s and kbit/s. The screen is `DISPLAY`, the device a PC.

    Raises:
        MediaError: if its player does not report its levels, its start or its stalls, or its ladder is not
            known or is not H.264.
        RecordError: if the record lacks data for the metrics.
    """
    trial = prepare(record)
    row = next((place for place, info in enumerate(trial.flows) if info.name == flow), None)
    if row is None:
        raise MediaError(f"flow {flow}: there is none of that name in the trial.")
    seen, (course, are_rates) = watched(trial, row), course_of(trial, row)
    lacks = {
        "the rate of what it shows (`segment_shown`, `level_shown` or `level_changed`)": course is not None
        and are_rates,
        "when play began (`playout_start`)": bool(len(seen.began)) and seen.startup_s is not None,
        "its stalls (`stall`, or `stall_count` with 0)": seen.tells_stalls,
    }
    if missing := [what for what, told in lacks.items() if not told]:
        raise MediaError(
            f"flow {flow}: P.1203 needs data that its player does not report: {', '.join(missing)}."
        )
    assert course is not None and seen.startup_s is not None
    ladder = ladder_of(trial, row)
    if not ladder.levels or any(level.size is None or not level.frame_rate for level in ladder.levels):
        raise MediaError(f"flow {flow}: P.1203 needs the ladder's picture sizes and frame rates.")
    if others := {level.codec for level in ladder.levels} - {"h264"}:
        raise MediaError(f"flow {flow}: P.1203 judges H.264 alone, and its clip is {', '.join(others)}.")
    played = seen.played
    course = course.between(int(seen.began[0]), seen.over)
    segments, at_s = [], 0.0
    for rate, lasts_s in zip(course.rates.tolist(), course.lasts_s(played, seen.over).tolist(), strict=True):
        if lasts_s <= 0 or not math.isfinite(rate):
            continue
        level = ladder.nearest(rate)
        assert level.size is not None
        segments.append(
            {
                "bitrate": rate / 1e3,
                "codec": "h264",
                "duration": lasts_s,
                "fps": level.frame_rate,
                "resolution": "{}x{}".format(*level.size),
                "start": at_s,
            }
        )
        at_s += lasts_s
    if not segments:
        raise MediaError(f"flow {flow}: nothing was played, so there is nothing to judge.")
    sound = {"bitrate": ladder.audio_bps / 1e3, "codec": "aaclc", "duration": at_s, "start": 0.0}
    waited = seen.stalls.without(seen.pauses).clipped(int(seen.began[0]), seen.over)
    waits = [[0.0, seen.startup_s]]
    places = played.within(waited.begin) / SECOND_NS
    for place, lasts_ns in zip(places.tolist(), np.subtract(waited.end, waited.begin).tolist(), strict=True):
        waits.append([place, lasts_ns / SECOND_NS])
    return {
        "IGen": {"device": "pc", "displaySize": DISPLAY},
        "I11": {"segments": [sound] if ladder.audio_bps else [], "streamId": 1},
        "I13": {"segments": segments, "streamId": 1},
        "I23": {"stalling": waits, "streamId": 1},
    }


def require() -> None:
    """Raises CannotRunError, with the licence and how to install it, unless the model is there."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise CannotRunError(
            "ITU-T P.1203 is judged by itu-p1203, which is not installed. Its licence allows non-commercial "
            "research only, so it is no part of StreamGauge. If that is yours, install it with "
            "`python -m pip install git+https://github.com/itu-p1203/itu-p1203` and accept its notice once "
            f"with `python -m {PACKAGE} session.json`, of any report."
        )


def mean_opinion(session: dict[str, Any]) -> float:
    """Returns the mean opinion score (O46, 1 to 5) of a session, by the model that the user installed.

    Raises CannotRunError if it is not there or its notice was not accepted, MediaError if it fails.
    """
    require()
    with tempfile.TemporaryDirectory(prefix="streamgauge-p1203-") as scratch:
        file = Path(scratch) / "session.json"
        file.write_text(json.dumps(session), encoding="utf-8")
        command = [sys.executable, "-m", PACKAGE, "--cpu-count", "1", str(file)]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=_LONGEST_S,
        )
    # A user that has not accepted the notice sees it, and a question.
    if "accept" in done.stdout:
        raise CannotRunError(
            "itu-p1203 asks for its notice to be accepted; its licence allows non-commercial research only. "
            f"If that is yours, run `{Path(sys.executable).name} -m {PACKAGE} session.json` once, with any "
            "report, and accept it."
        )
    try:
        (found,) = json.loads(done.stdout).values()
        return float(found["O46"])
    except (ValueError, KeyError, AttributeError, TypeError):
        why = (done.stderr.strip().splitlines() or ["it printed no score"])[-1]
        raise MediaError(f"itu-p1203 cannot judge the session ({why}).") from None
