"""A player of one's own that says what its viewer sees: see docs/player-events.md.

It fetches one second of media after another, holds up to eight, and plays them at their pace. Nothing but the
standard library is needed.
"""

import hashlib
import json
import os
import threading
import time
import urllib.request

URL = "http://{STREAMGAUGE_SERVER}:{STREAMGAUGE_PORT}/second".format_map(os.environ)
PREBUFFER_S, MOST_S = 2, 8
events = open(os.environ["STREAMGAUGE_EVENTS"], "a", buffering=1)
held_s = 0
changed = threading.Condition()


def say(name, value=None, unit="", reason=""):
    event = {"t_monotonic_ns": time.monotonic_ns(), "name": name, "value": value, "unit": unit, "reason": reason}
    events.write(json.dumps(event) + "\n")


def fetch():
    global held_s
    while True:
        with changed:
            changed.wait_for(lambda: held_s < MOST_S)
        begun = time.monotonic()
        with urllib.request.urlopen(URL) as answer:
            media = answer.read()
        say("transfer_complete", time.monotonic() - begun, "s")
        begun = time.monotonic()
        hashlib.sha256(media).digest()  # stands for a decoder
        say("my_decode_time", 1e3 * (time.monotonic() - begun), "ms")
        with changed:
            held_s += 1
            changed.notify()


def wait_for_media():
    """Seconds until enough is held to play."""
    begun = time.monotonic()
    with changed:
        changed.wait_for(lambda: held_s >= PREBUFFER_S)
    return time.monotonic() - begun


say("stall_count", 0, "1", "every stall will be reported")
threading.Thread(target=fetch, daemon=True).start()
say("playout_start", wait_for_media(), "s")
due = time.monotonic()
try:
    while True:
        with changed:
            say("buffer", held_s, "s")
            if held_s:
                held_s -= 1
                changed.notify()
        due += 1
        time.sleep(max(0, due - time.monotonic()))
        if not held_s:
            say("stall", reason="nothing is held")
            say("my_rebuffer", reason="begins again when 2 s are held")
            say("resume", wait_for_media(), "s")
            due = time.monotonic()
except KeyboardInterrupt:  # the trial has ended
    pass
