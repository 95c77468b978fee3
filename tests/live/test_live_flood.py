"""Ten thousand changes at once: a bounded number is taken, each is answered, and the trial goes on."""

from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from streamgauge import _native
from streamgauge.live.beginning import session_for
from streamgauge.live.saving import steerable
from streamgauge.live.session import MOST_A_SECOND, Refused
from streamgauge.scenario import find, lower

SCENARIO = "today/demo-rtsp-udp-medium"
ASKED = 10_000


def test_ten_thousand_changes_at_once_are_bounded(tmp_path: Path) -> None:
    (scenario,) = find([SCENARIO])
    plan = lower(steerable(scenario), "sim", 1)
    said: list[str] = []
    session = session_for(plan, title="", mode="sim", scenario=lambda _c, _u: "", say=said.append)
    handed_over = os.dup(session.theirs.fileno())
    found: list[tuple[str, str]] = []
    trial = threading.Thread(
        target=lambda: found.append(
            _native.simulate_live(json.dumps(plan), str(tmp_path), handed_over, 1.0, None)
        )
    )
    trial.start()
    session.start()
    try:

        def change(number: int) -> int:
            try:
                session.change({"down.jitter": f"{number % 5} ms"})
            except Refused as error:
                return error.status
            return 200

        began = time.monotonic()
        with ThreadPoolExecutor(max_workers=8) as threads:
            answers = list(threads.map(change, range(ASKED)))
        windows = int(time.monotonic() - began) + 1
        taken = answers.count(200)
        assert len(answers) == ASKED and set(answers) <= {200, 429}
        assert 0 < taken <= MOST_A_SECOND * windows
        assert len(said) == 1, "told once"
        # What was answered is all that is kept.
        assert len(session.steered) == taken and not session._asked
        assert len(session._recent) <= MOST_A_SECOND
        assert trial.is_alive() and not session.ended.is_set()
        session.stop()
        trial.join()
        assert len(json.loads(found[0][1])) == taken
    finally:
        session.stop()
        trial.join()
        session.close()
