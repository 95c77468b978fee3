"""Inside the sandbox: runs passes, one after the other, and leaves their stamps.

``python -m streamgauge.calibrate.worker`` reads a request on stdin, one line, and answers as `run_worker`
expects.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

from streamgauge.calibrate.kernel import forwarding
from streamgauge.calibrate.passes import Pass
from streamgauge.emu import network as net
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.emu.helper import Helper
from streamgauge.emu.inside import WORK, answer, tell

BARE = "bare0"
LEAD_NS = 60_000_000
"""From the decision to start until t = 0."""
GIVE_UP_AFTER = 2
"""Passes of a group that lost packets, one after the other, until the rest is left out."""


class UnknownPathError(TrialBrokenError):
    """This engine does not support a pass."""


def main() -> int:
    """Runs the request on stdin: ``{"engine", "way", "fifo_priority", "out", "sabotage", "passes"}``."""
    request = json.loads(sys.stdin.readline())
    return answer(lambda: run(request), request["out"])


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Returns all passes; ``{"passes": {name: ...}}``."""
    (WORK / "bin").mkdir(parents=True)
    engine = str(WORK / "bin" / "streamgauge-engine")
    shutil.copy2(request["engine"], engine)
    tell(say="setting up namespaces")
    net.build([], engine=engine)
    lay_bare_wire(engine)
    found: dict[str, Any] = {}
    losing: dict[str, int] = {}
    for settings in request["passes"]:
        one = Pass(**settings)
        if one.group and losing.get(one.group, 0) >= GIVE_UP_AFTER:
            continue
        tell(at=one.name)
        try:
            found[one.name] = run_pass(one, request, engine)
        except UnknownPathError as error:
            found[one.name] = {"failed": str(error)}
            continue
        except TrialBrokenError as error:
            raise TrialBrokenError(f"pass {one.name}: {error}") from error
        complete = found[one.name]["gauge"]["received"] == found[one.name]["gauge"]["sent"]
        losing[one.group] = 0 if complete else losing.get(one.group, 0) + 1
    return {"passes": found}


def lay_bare_wire(engine: str) -> None:
    """Lays a veth from end to end past the emulator: it measures the cost of the ends' own stamps."""
    net.run(
        ["ip", "-n", "server", "link", "add", BARE, "type", "veth", "peer", "name", BARE, "netns", "client"]
    )
    for end in ("server", "client"):
        net.offloads_off(end, BARE, engine)
        net.run(["ip", "-n", end, "link", "set", "dev", BARE, "mtu", "1500", "up"])


def run_pass(one: Pass, request: dict[str, Any], engine: str) -> dict[str, Any]:
    """Runs one of them; its stamps are written to ``NAME.csv`` in the request's folder."""
    if one.bare or one.kernel:
        with forwarding(one.kernel, engine) if one.kernel else nullcontext():
            t0_ns = time.monotonic_ns() + LEAD_NS
            return {"t0_monotonic_ns": t0_ns, "gauge": run_gauge(one, request, engine, start_ns=t0_ns)}
    out = WORK / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    config = {
        "plan": one.plan(request["seed"]),
        "out": str(out),
        "fifo_priority": request["fifo_priority"],
        "capture": False,
        "interfaces": {"server": "server", "client": "client", "cross": None},
        "flows": [
            {"name": "gauge", "server_ip": net.PREFLIGHT_SERVER, "player_ip": net.PREFLIGHT_PLAYER},
        ],
        "sabotage": request["sabotage"],
    }
    file, log = WORK / "link.json", WORK / "link.log"
    command = [*net.inside(net.ROUTER, engine), engine, "link", "--config", str(file)]
    with _shown(config["plan"], request) as page:
        if page is not None:
            config["live_fd"] = page.descriptor
        file.write_text(json.dumps(config), encoding="utf-8")
        passed_on = () if page is None else (page.descriptor,)
        found = _measured(
            one, request, engine, Helper("the emulator", command, log, pass_fds=passed_on), page
        )
    if page is not None:
        found["live"] = {"samples": page.samples}
    return found


def _shown(plan: dict[str, Any], request: dict[str, Any]) -> AbstractContextManager[Any]:
    """An open page, if one is to be."""
    if not request.get("live"):
        return nullcontext(None)
    # Most workers need none of it.
    from streamgauge.calibrate.page import OpenPage

    return OpenPage(plan)


def _measured(one: Pass, request: dict[str, Any], engine: str, link: Helper, page: Any) -> dict[str, Any]:
    """Runs a pass through the emulator that was started."""
    if page is not None:
        page.listen()
    try:
        try:
            class_ = link.expect("ready")
        except TrialBrokenError as error:
            if "configuration" in str(error):
                raise UnknownPathError(str(error)) from error
            raise
        t0_ns = time.monotonic_ns() + LEAD_NS
        link.send(cmd="start", t0_monotonic_ns=t0_ns)
        link.expect("started")
        before_s = cpu_s(link.popen.pid)
        gauge = run_gauge(one, request, engine, start_ns=t0_ns + round(one.after_s * 1e9))
        used_s = cpu_s(link.popen.pid) - before_s
        stats = link.ask("stopped", cmd="stop")["stats"]
    finally:
        if link.popen.poll() is None:
            link.popen.kill()
        link.popen.wait()
    return {
        "t0_monotonic_ns": t0_ns,
        "class": {key: class_.get(key) for key in ("class", "mlock")},
        "gauge": gauge,
        "link": {
            key: stats.get(key)
            for key in ("ring_drops", "send_errors", "slab_drops", "lateness_ns", "cpu_s", "stolen_s")
        },
        "cpu_s": used_s,
    }


def run_gauge(one: Pass, request: dict[str, Any], engine: str, start_ns: int) -> dict[str, Any]:
    """Offers the load and gathers the stamps."""
    ends = {
        "sender": {"netns": "server", "ip": net.PREFLIGHT_SERVER},
        "receiver": {"netns": "client", "ip": net.PREFLIGHT_PLAYER},
    }
    config = {
        **{
            end: {**words, "interface": BARE if one.bare else net.END_INTERFACE}
            for end, words in ends.items()
        },
        "load": {
            "packets_per_s": one.packets_per_s,
            "frame_bytes": one.frame,
            "burst": one.burst,
            "packets": one.packets,
        },
        "start_monotonic_ns": start_ns,
        "linger_s": one.linger_s,
        "stamp_sent": one.stamp_sent,
        "out": str(Path(request["out"]) / f"{one.name}.csv"),
    }
    file = WORK / "gauge.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    done = subprocess.run(
        [engine, "gauge", "--config", str(file)],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise TrialBrokenError(f"the gauge failed: {done.stderr.strip() or done.returncode}.")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def cpu_s(pid: int) -> float:
    """CPU time of a process's threads by the scheduler's account, s."""
    total = 0
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


if __name__ == "__main__":
    sys.exit(main())
