"""Inside the sandbox: builds the network, runs the flows, and reports the measurements to the launcher.

``python -m streamgauge.emu.worker`` reads a job on stdin, one line, and writes JSON lines to stdout:
``{"say": ...}`` while it works, at the end ``{"done": measured}`` or ``{"failed": {"kind", "message"}}``.
Only `streamgauge.emu.trial` starts it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from streamgauge import _native
from streamgauge.emu import controls
from streamgauge.emu import network as net
from streamgauge.emu.compartments import Compartments
from streamgauge.emu.conduct import Conductor
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.emu.helper import Helper
from streamgauge.emu.inside import WORK, answer, tell
from streamgauge.emu.logs import keep_logs
from streamgauge.emu.path_pairs import PathPair, path_pairs
from streamgauge.emu.trial_request import FIRST_PORT, PORTS_PER_FLOW, TrialRequest, command_lines
from streamgauge.systems.adapter import FlowSetup
from streamgauge.systems.relay import RelaySetup


def main() -> int:
    """Runs the job on stdin."""
    request = TrialRequest.from_json(sys.stdin.readline())
    return answer(lambda: run(request), request.directory)


def run(request: TrialRequest) -> dict[str, Any]:
    """Runs the whole trial and returns the measurements."""
    directory = Path(request.directory)
    logs = directory / "logs"
    logs.mkdir(exist_ok=True)
    relays = relays_laid_out(request)
    flows = lay_out(request, relays)
    pairs = path_pairs(request.plan)
    engine = str(WORK / "bin" / "streamgauge-engine")
    tell(say="setting up namespaces")
    loaders = controls.register(request.own_controls, engine=engine, logs=logs)
    compartments = Compartments.plan(flows, relays, way=request.way, player_uid=request.player_uid)
    compartments.make(engine=engine, log=logs / "sides.log", sysctls=net.sysctl_files())
    network = net.build(
        flows, relays, engine=engine, own_controls=request.own_controls, compartments=compartments
    )
    link = start_link(request, pairs, engine, logs, cross=any(flow.at_router for flow in flows))
    try:
        class_ = link.expect("ready")
        tell(say="pre-flight test of the path: measuring it empty")
        preflight = measure_path(request, link, engine)
        conductor = Conductor(
            request=request,
            flows=flows,
            relays=relays,
            pairs=pairs,
            link=link,
            network=network,
            compartments=compartments,
            engine=engine,
            tell=tell,
        )
        try:
            measured = conductor.run()
            for loader in loaders:
                loader.poll()  # raises if it died, and with it the control for new connections
        finally:
            conductor.kill_all()
            compartments.end()
            log_remarks = keep_logs([*flows, *relays], logs)
    finally:
        if link.popen.poll() is None:
            link.popen.kill()
        link.popen.wait()
        for loader in loaders:
            loader.end()
    measured |= {
        "preflight": preflight,
        "log_remarks": log_remarks,
        "link_class": {key: class_.get(key) for key in ("class", "mlock")},
        "network": {
            "namespaces": network.namespaces,
            "sysctls": network.sysctls,
            "qdiscs": network.qdiscs,
            "addresses": {
                **{flow.name: [flow.server_ip, flow.player_ip] for flow in flows},
                **{relay.name: [relay.player_ip] for relay in relays},
            },
        },
    }
    return measured


def relays_laid_out(request: TrialRequest) -> list[RelaySetup]:
    """The relays with their addresses and folders."""
    found = []
    for planned, setup in zip(request.plan.get("relays") or (), request.relays, strict=True):
        server_ip, player_ip = _native.addresses(setup["index"], False)
        own = player_ip if planned["at"] == "client" else server_ip
        found.append(
            RelaySetup(
                **setup,
                plan=planned,
                trial=request.plan,
                server_ip=own,
                player_ip=own,
                folder=WORK / "flows" / str(setup["index"]),
                engine=WORK / "bin" / "streamgauge-engine",
            )
        )
    return found


def lay_out(request: TrialRequest, relays: list[RelaySetup]) -> list[FlowSetup]:
    """Makes the work folders, brings media where an unprivileged user can read it."""
    (WORK / "bin").mkdir(parents=True)
    (WORK / "media").mkdir()
    # Copied, not linked: the package may lie where players may not look.
    shutil.copy2(request.engine, WORK / "bin" / "streamgauge-engine")
    at = {relay.name: relay.player_ip for relay in relays}
    flows = []
    for planned, setup in zip(request.plan["flows"], request.flows, strict=True):
        index = setup["index"]
        goes_up = planned.get("direction") == "up"
        server_ip, player_ip = _native.addresses(index, planned.get("entry") == "router", goes_up)
        folder = WORK / "flows" / str(index)
        media = None
        if setup["media"] is not None:
            media = WORK / "media" / f"{index}{Path(setup['media']).suffix}"
            if Path(setup["media"]).is_dir():
                media.mkdir()  # a ladder's
            else:
                media.touch()
            net.run(["mount", "--bind", setup["media"], str(media)])
        flows.append(
            FlowSetup(
                **{**setup, "media": media, "commands": command_lines(setup)},
                plan=planned,
                contents=request.contents,
                trial=request.plan,
                server_ip=server_ip,
                player_ip=player_ip,
                relay_ip=at.get(planned.get("via"), ""),
                port=FIRST_PORT + PORTS_PER_FLOW * index,
                folder=folder,
                engine=WORK / "bin" / "streamgauge-engine",
            )
        )
    return flows


def start_link(
    request: TrialRequest, pairs: list[PathPair], engine: str, logs: Path, *, cross: bool
) -> Helper:
    """Starts the emulator in the router's namespace; `cross` if there are sources at the router."""
    config = {
        "plan": request.plan,
        "out": request.directory,
        "fifo_priority": request.fifo_priority,
        "spin": request.spin,
        "capture": request.capture,
        "interfaces": {
            "server": "server",
            "client": "client",
            "cross": "cross" if cross else None,
        },
        "flows": [one.as_data() for one in pairs],
        "sabotage": request.sabotage,
        "live_fd": request.live_fd,
    }
    file = WORK / "link.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    command = [*net.inside(net.ROUTER, engine), engine, "link", "--config", str(file)]
    passed_on = () if request.live_fd is None else (request.live_fd,)
    helper = Helper("the emulator", command, logs / "link.log", pass_fds=passed_on)
    for descriptor in passed_on:
        os.close(descriptor)  # the emulator's alone
    return helper


def measure_path(request: TrialRequest, link: Helper, engine: str) -> dict[str, Any]:
    """The pre-flight: the path as the kernels at its two ends see it, before anything else crosses it."""
    link.ask("preflight", cmd="preflight")
    config = {
        "server_netns": "server",
        "client_netns": "client",
        "server_ip": net.PREFLIGHT_SERVER,
        "player_ip": net.PREFLIGHT_PLAYER,
        "server_if": net.END_INTERFACE,
        "client_if": net.END_INTERFACE,
        "expect": request.plan["path"],
    }
    file = WORK / "preflight.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    done = subprocess.run(
        [engine, "preflight", "--config", str(file)],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise TrialBrokenError(
            f"the pre-flight test of the path failed: {done.stderr.strip() or done.returncode}."
        )
    found: dict[str, Any] = json.loads(done.stdout)
    link.ask("reset", cmd="reset")
    return found


if __name__ == "__main__":
    sys.exit(main())
