"""Inside the sandbox: builds the network, runs the flows, and tells the launcher what was measured.

``python -m streamgauge.emu.worker`` reads a job on stdin, one line, and writes JSON lines to stdout:
``{"say": ...}`` while it works, at the end ``{"done": measured}`` or ``{"failed": {"kind", "message"}}``.
It is started by `streamgauge.emu.trial` and by nobody else.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from streamgauge.emu import controls
from streamgauge.emu import network as net
from streamgauge.emu.conduct import Conductor
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.emu.inside import WORK, answer, tell
from streamgauge.emu.job import FIRST_PORT, PORTS_PER_FLOW, Job
from streamgauge.emu.link import Helper
from streamgauge.systems.adapter import FlowSetup, Side

KEPT_LOG_BYTES = 20_000_000
"""A larger file that a process leaves is cut in the trial's logs."""


def main() -> int:
    """Runs the job on stdin."""
    job = Job.from_json(sys.stdin.readline())
    return answer(lambda: run(job), job.directory)


def run(job: Job) -> dict[str, Any]:
    """The whole trial; what was measured."""
    directory = Path(job.directory)
    logs = directory / "logs"
    logs.mkdir(exist_ok=True)
    flows = lay_out(job)
    engine = str(WORK / "bin" / "streamgauge-engine")
    tell(say="setting up namespaces")
    loaders = controls.register(job.own_controls, engine=engine, logs=logs)
    network = net.build(flows, engine=engine, own_controls=job.own_controls)
    link = start_link(job, flows, engine, logs)
    try:
        class_ = link.expect("ready")
        tell(say="pre-flight: measuring the empty path")
        preflight = measure_path(job, link, engine)
        conductor = Conductor(job=job, flows=flows, link=link, network=network, engine=engine, tell=tell)
        try:
            measured = conductor.run()
            for loader in loaders:
                loader.poll()  # raises if it died, and with it the control for new connections
        finally:
            conductor.kill_all()
            keep_logs(flows, logs)
    finally:
        if link.popen.poll() is None:
            link.popen.kill()
        link.popen.wait()
        for loader in loaders:
            loader.end()
    measured |= {
        "preflight": preflight,
        "link_class": {key: class_.get(key) for key in ("class", "mlock")},
        "network": {
            "namespaces": network.namespaces,
            "sysctls": network.sysctls,
            "qdiscs": network.qdiscs,
            "addresses": {flow.name: [flow.server_ip, flow.player_ip] for flow in flows},
        },
    }
    return measured


def lay_out(job: Job) -> list[FlowSetup]:
    """Makes the work folders, brings what players need where an unprivileged user can read it."""
    (WORK / "bin").mkdir(parents=True)
    (WORK / "media").mkdir()
    (WORK / "cache").mkdir()
    (WORK / "cache").chmod(0o777)
    # Copied, not linked: the package may lie where players may not look.
    shutil.copy2(job.engine, WORK / "bin" / "streamgauge-engine")
    programs = Path(__file__).parent.parent / "systems" / "programs"
    for program in programs.glob("*.py"):
        shutil.copy2(program, WORK / "bin" / program.name)
        (WORK / "bin" / program.name).chmod(0o644)
    flows = []
    for planned, setup in zip(job.plan["flows"], job.flows, strict=True):
        index = setup["index"]
        pair = net.addresses(index, at_router=planned.get("entry") == "router")
        folder = WORK / "flows" / str(index)
        sides: tuple[Side, Side] = ("server", "player")
        for side in sides:
            (folder / side).mkdir(parents=True)
            if job.way == "root":
                os.chown(folder / side, job.player_uid, job.player_uid)
        media = None
        if setup["media"] is not None:
            media = WORK / "media" / f"{index}{Path(setup['media']).suffix}"
            media.touch()
            net.run(["mount", "--bind", setup["media"], str(media)])
        flows.append(
            FlowSetup(
                **{**setup, "media": media},
                plan=planned,
                trial=job.plan,
                server_ip=pair.server,
                player_ip=pair.player,
                port=FIRST_PORT + PORTS_PER_FLOW * index,
                folder=folder,
                engine=WORK / "bin" / "streamgauge-engine",
                programs=WORK / "bin",
            )
        )
    return flows


def start_link(job: Job, flows: list[FlowSetup], engine: str, logs: Path) -> Helper:
    """Starts the emulator in the router's namespace."""
    config = {
        "plan": job.plan,
        "out": job.directory,
        "fifo_priority": job.fifo_priority,
        "spin": job.spin,
        "capture": job.capture,
        "interfaces": {
            "server": "server",
            "client": "client",
            "cross": "cross" if any(flow.at_router for flow in flows) else None,
        },
        "flows": [
            {"name": flow.name, "server_ip": flow.server_ip, "player_ip": flow.player_ip} for flow in flows
        ],
        "sabotage": job.sabotage,
    }
    file = WORK / "link.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    command = [*net.inside(net.ROUTER, engine), engine, "link", "--config", str(file)]
    return Helper("the emulator", command, logs / "link.log")


def measure_path(job: Job, link: Helper, engine: str) -> dict[str, Any]:
    """The pre-flight: the path as the kernels at its two ends see it, before anything else crosses it."""
    link.ask("preflight", cmd="preflight")
    config = {
        "server_netns": "server",
        "client_netns": "client",
        "server_ip": net.PREFLIGHT_SERVER,
        "player_ip": net.PREFLIGHT_PLAYER,
        "server_if": net.END_INTERFACE,
        "client_if": net.END_INTERFACE,
        "expect": job.plan["path"],
    }
    file = WORK / "preflight.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    done = subprocess.run(
        [engine, "preflight", "--config", str(file)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise TrialBrokenError(f"the pre-flight failed: {done.stderr.strip() or done.returncode}.")
    found: dict[str, Any] = json.loads(done.stdout)
    link.ask("reset", cmd="reset")
    return found


def keep_logs(flows: list[FlowSetup], logs: Path) -> None:
    """Copies what the flows' processes left into the trial's logs."""
    began = time.monotonic()
    for flow in flows:
        for side in ("server", "player"):
            for file in sorted((flow.folder / side).rglob("*")):
                if not file.is_file() or file.is_symlink() or file.stat().st_size == 0:
                    continue
                name = "-".join([flow.name, side, *file.relative_to(flow.folder / side).parts])
                with file.open("rb") as source, (logs / name).open("wb") as target:
                    target.write(source.read(KEPT_LOG_BYTES))
        if time.monotonic() - began > 10:
            return


if __name__ == "__main__":
    sys.exit(main())
