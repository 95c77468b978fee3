"""The whole of ``streamgauge link``: from the request to the command's own exit status."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamgauge.emu.certificate import for_trial
from streamgauge.emu.engine import engine, search_path
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.emu.lock import is_locked, link_lock
from streamgauge.errors import CannotRunError
from streamgauge.link_command.guard import Guard, removal
from streamgauge.link_command.internet import Internet, check_internet
from streamgauge.link_command.names import files_to_show, name_servers
from streamgauge.link_command.occupant import Occupant
from streamgauge.link_command.options import LinkRequest
from streamgauge.link_command.record import SHORTEST_NS, finish, longest_s, plan_of, scenario_of
from streamgauge.link_command.running import (
    CommandServer,
    Ended,
    drain,
    drain_bound_s,
    preflight,
    run_command,
)
from streamgauge.link_command.testbed import Far, Testbed, may_use_own_network
from streamgauge.live.beginning import session_for
from streamgauge.live.saving import as_yaml
from streamgauge.live.session import LiveSession
from streamgauge.live.showing import check, shown
from streamgauge.scenario.path.changes import changes_of
from streamgauge.terminal import tell

__all__ = ["run_link"]

TOOLS = {"ip": "iproute2", "ethtool": "ethtool"}
START_LEAD_NS = 5_000_000
NO_SERVER = "The link had no --server: name in flows.command.system.server what is to run there."
NO_WAY_OUT = (
    "the far side is empty, and only ping is answered there: an ordinary user's link leads neither to this "
    "machine nor to the internet; --server 'CMD' runs a server on it"
)


def run_link(
    request: LinkRequest, *, as_json: bool = False, quiet: bool = False, occupant: Occupant | None = None
) -> int:
    """Runs the command in the link, or lets `occupant` use the link, and returns its exit status.

    The summary is printed on stderr: stdout is the command's. Raises StreamGaugeError for impossible
    requests; in every case, nothing of the link outlives the call.
    """
    request.check()
    far = _far(request) if occupant is None else occupant.far
    if request.live is not None:
        check(request.live)
        request = replace(request, path=request.path.model_copy(update={"changes": ()}))
    executable = engine()
    for program, package in TOOLS.items():
        if shutil.which(program, path=search_path()) is None:
            raise CannotRunError(
                f"{program} is missing; install it (Debian, Ubuntu: `apt-get install {package}`)."
            )
    plan = plan_of(request, far)

    def remark(text: str) -> None:
        if not quiet:
            tell(f"streamgauge: {text}", sys.stderr)

    if far == "empty" and occupant is None:
        remark(NO_WAY_OUT)
    if is_locked():
        remark("an emu trial is running on this machine; the two disturb each other")
    with ExitStack() as stack:
        stack.enter_context(link_lock())
        folder, record = _folders(request, stack)
        session = None if request.live is None else _session(request, far, plan, remark)
        passed_on: tuple[int, ...] = ()
        if session is not None:
            stack.callback(session.close)
            passed_on = (session.theirs.fileno(),)
        testbed = stack.enter_context(
            Testbed(
                engine=executable,
                folder=folder,
                far=far,
                internet=request.internet,
                passed_on=passed_on,
                network=None if occupant is None else occupant.network,
            )
        )
        testbed.start(
            {
                "plan": plan,
                "out": str(record),
                "fifo_priority": 50,
                "capture": request.capture is not None,
                "interfaces": {"server": "server", "client": "client", "cross": None},
                "live_fd": passed_on[0] if passed_on else None,
            }
        )
        if session is not None and request.live is not None:
            session.theirs.close()
            session.start()
            stack.enter_context(shown(session, request.live, remark))
        ended, measured = _use(request, testbed, plan, record, stack, remark, occupant)
        if session is not None:
            duration_ns = round(measured["link"]["duration_s"] * 1e9)
            changes = changes_of(measured["link"]["steered"], duration_ns)
            request = replace(request, path=request.path.model_copy(update={"changes": changes}))
            plan = plan_of(request, far, measured["link"]["duration_s"])
        _report(request, testbed, plan, record, ended, measured, as_json=as_json, quiet=quiet)
    return ended.status


def _session(request: LinkRequest, far: str, plan: dict[str, Any], remark: Any) -> LiveSession:
    """Returns the session of the link for a page or a terminal."""

    def scenario(changed: list[dict[str, Any]], until_ns: int) -> str:
        path = request.path.model_copy(update={"changes": changes_of(changed, until_ns + 1)})
        said = scenario_of(replace(request, path=path), far, max(until_ns, 1) / 1e9)
        return as_yaml(said, head="" if far == "server" else NO_SERVER)

    return session_for(plan, title=request.title, mode="emu", scenario=scenario, say=remark)


def _far(request: LinkRequest) -> Far:
    if request.server is not None:
        return "server"
    if may_use_own_network():
        if request.internet:
            check_internet()
        return "caller"
    if request.internet:
        raise CannotRunError(
            "--internet: packets leave this machine only as root; run as root, or use --server."
        )
    return "empty"


def _folders(request: LinkRequest, stack: ExitStack) -> tuple[Path, Path]:
    """Returns a folder of our own and the record's in it; beside --log's, so that it can be renamed."""
    parent = None
    if request.log is not None:
        parent = request.log.absolute().parent
        parent.mkdir(parents=True, exist_ok=True)
    elif Path(tempfile.gettempdir()).resolve().is_relative_to("/run"):
        parent = Path("/tmp")  # the sandbox has a /run of its own
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".streamgauge-link-{os.getpid()}-", dir=parent))
    except OSError as error:
        remedy = "name another folder with --log" if request.log is not None else "set TMPDIR"
        raise CannotRunError(f"cannot make a folder for the link: {error}; {remedy}.") from error
    guard = Guard([removal(folder)])
    stack.callback(guard.close)
    record = folder / "record"
    (record / "logs").mkdir(parents=True)
    return folder, record


def _use(
    request: LinkRequest,
    testbed: Testbed,
    plan: dict[str, Any],
    record: Path,
    stack: ExitStack,
    remark: Any,
    occupant: Occupant | None,
) -> tuple[Ended, dict[str, Any]]:
    """Everything between the emulator's start and its end."""
    found = preflight(testbed, plan) if request.preflight else None
    if request.internet:
        assert testbed.interface is not None
        way_out = Internet(testbed.block, testbed.interface)
        stack.callback(way_out.close)
    servers = name_servers() if request.internet or testbed.nested else []
    environment = _environment(request, testbed)
    show = files_to_show(testbed.folder, servers=servers)
    if request.internet and not servers and occupant is None:
        remark("this machine's name server is local, and the path does not reach it: names stay unknown")
    before = testbed.received_packets()
    t0 = time.monotonic_ns() + START_LEAD_NS
    t0_realtime = time.time_ns() + START_LEAD_NS
    testbed.emulator.ask("started", cmd="start", t0_monotonic_ns=t0)
    server = None
    if request.server is not None:
        server = CommandServer(testbed, request.server, environment, record / "logs" / "server.log")
        if problem := server.wait_until_listening(testbed):
            remark(problem)
    _sleep_until(t0)

    def watch() -> None:
        while (answer := testbed.emulator.poll()) is not None:
            if answer.get("event") == "stopped":
                raise TrialBrokenError(
                    "the link ended before the command "
                    f"(it lasts {longest_s(request.path):.0f} s at most); run it again."
                )

    began = time.monotonic_ns()
    if occupant is None:
        ended = run_command(testbed, request.command, environment, show, watch)
    else:
        ended = occupant.use(testbed, stack, watch, remark)
    if request.drain:
        drain(testbed, drain_bound_s(plan))
    _sleep_until(t0 + SHORTEST_NS)
    stats = testbed.emulator.ask("stopped", cmd="stop")["stats"]
    after = testbed.received_packets_since(before)
    if server is not None:
        server.stop()
    changes = json.loads((record / "link-events.json").read_text(encoding="utf-8"))
    measured = {
        "link": stats,
        "preflight": found,
        "received_packets": after,
        "changes": changes,
        "t0_realtime_ns": t0_realtime,
        "command_start_s": (began - t0) / 1e9,
    }
    return ended, measured


def _sleep_until(at_ns: int) -> None:
    time.sleep(max(0, at_ns - time.monotonic_ns()) / 1e9)


def _environment(request: LinkRequest, testbed: Testbed) -> dict[str, str]:
    """Returns the caller's, with where the ends are."""
    environment = dict(os.environ)
    far_most = environment.get("STREAMGAUGE_SERVER") if testbed.nested else None
    environment |= {
        # With links inside each other, the far end of the outermost: the server is there.
        "STREAMGAUGE_SERVER": far_most or testbed.block.near,
        "STREAMGAUGE_GATEWAY": testbed.block.near,
        "STREAMGAUGE_CLIENT": testbed.block.client,
        "STREAMGAUGE_LINK": request.label,
    }
    if Path(request.command[0]).name == "bash" and os.isatty(0):
        hint = f"[{request.label}] "
        once = '[[ $PS1 == *"$STREAMGAUGE_HINT"* ]] || PS1="$STREAMGAUGE_HINT$PS1"'
        environment["STREAMGAUGE_HINT"] = hint
        before = environment.get("PROMPT_COMMAND")
        if once not in (before or ""):
            environment["PROMPT_COMMAND"] = f"{before}; {once}" if before else once
    return environment


def _report(
    request: LinkRequest,
    testbed: Testbed,
    plan: dict[str, Any],
    record: Path,
    ended: Ended,
    measured: dict[str, Any],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """The summary, the capture and the record."""
    from streamgauge.emu.conditions import judge_record
    from streamgauge.emu.validity import link_verdict
    from streamgauge.link_command.summary import SCHEMA, in_words, summarise

    figures = summarise(record, plan)
    duration_ns = round(measured["link"]["duration_s"] * 1e9)
    conditions = judge_record(record, plan, measured["changes"], duration_ns)
    validity = link_verdict(plan, {**measured, "conditions": conditions})
    if request.capture is not None:
        capture = record / "capture.pcapng"
        (shutil.copyfile if request.log is not None else shutil.move)(capture, request.capture)
    if request.log is not None:
        if (testbed.folder / "link.log").stat().st_size:
            shutil.copyfile(testbed.folder / "link.log", record / "logs" / "link.log")
        finish(
            record,
            request,
            testbed,
            measured,
            ended,
            figures,
            validity,
            _provenance(request, testbed, measured),
        )
        if request.log.is_dir():
            request.log.rmdir()  # empty, as was checked
        record.rename(request.log)
    if as_json:
        summary = {
            "schema": SCHEMA,
            "command": list(request.command),
            "status": ended.status,
            "duration_s": measured["link"]["duration_s"],
            **figures,
            "validity": {key: validity[key] for key in ("valid", "why")},
            "directory": None if request.log is None else str(request.log),
        }
        print(json.dumps(summary, allow_nan=False), file=sys.stderr)
    elif not quiet:
        for line in in_words(figures, validity):
            tell(f"streamgauge: {line}", sys.stderr)
    sys.stderr.flush()


def _provenance(request: LinkRequest, testbed: Testbed, measured: dict[str, Any]) -> dict[str, Any]:
    return {
        "seed": request.seed,
        "sandbox": "user" if testbed.rootless else "root",
        "certificate": for_trial(Path(testbed.engine), "user" if testbed.rootless else "root"),
        "far_end": testbed.far,
        "nested": testbed.nested,
        "network": {"addresses": {"command": [testbed.block.near, testbed.block.client]}},
        "emulator": {"class": measured["link"]["class"], "mlock": measured["link"]["mlock"]},
        "t0_realtime_ns": measured["t0_realtime_ns"],
        "command_start_s": measured["command_start_s"],
    }
