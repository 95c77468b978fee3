"""ns-3 as a third column: the cases in ns-3.44 of PyPI's package ``ns3``, through its C++ (`ns3_link.cc`).

ns-3 has one simulator a process and ends the process on an error, so a child process holds it: it loads and
compiles once, which takes some seconds, and forks for each trial.

ns-3's input: the plan that sim runs, with ``reno`` as TcpLinuxReno, TcpCubic with its HyStart, TcpVegas,
TcpBbr (version 1); SACK, timestamps, a least RTO of 200 ms, and the plan's segment, windows, buffers and
delayed acknowledgement. It has no RACK, no tail loss probe, no quick acknowledgements at the start of a
stream, and no host jitter. Its TcpNewReno is another thing: at 1 % random loss on 100 Mbit/s and 5 ms it gets
14.8 Mbit/s where TcpLinuxReno gets 32.2.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any, Final

import numpy as np

from streamgauge.crosscheck.cases import Case
from streamgauge.crosscheck.compared import Found
from streamgauge.crosscheck.measure import keep_quantities, of_traces
from streamgauge.crosscheck.trace import FlowTrace
from streamgauge.errors import CannotRunError
from streamgauge.scenario import lower
from streamgauge.systems.registry import CONSTANT_RATE, GREEDY_TCP

__all__ = ["TCP", "column", "require", "run", "trial", "why_not"]

TCP: Final[Mapping[str, str]] = {
    "reno": "TcpLinuxReno",
    "cubic": "TcpCubic",
    "vegas": "TcpVegas",
    "bbr": "TcpBbr",
}
"""ns-3's name of each congestion control that it has."""
REMEDY: Final = f"{sys.executable} -m pip install ns3==3.44.post0"
"""It builds cppyy, which takes two minutes and a C++ compiler."""
_SOURCE: Final = Path(__file__).with_name("ns3_link.cc")
_MODULES: Final = ("core", "network", "internet", "point-to-point", "applications")
_SAMPLE_NS: Final = 100_000_000
_DATA, _ACKS, _CWND = 6, 2, 2
"""Numbers in a row of each file."""
Json = Mapping[str, Any]


def require() -> str:
    """ns-3's version.

    Raises:
        CannotRunError: if the package is not there, with the remedy.
    """
    try:
        if importlib.util.find_spec("cppyy") is not None:
            return version("ns3")
    except PackageNotFoundError:
        pass
    raise CannotRunError(f"--with ns3: ns-3 is not installed; get it by {REMEDY}")


def why_not(case: Case) -> str | None:
    """Returns why ns-3 cannot run the case; None if it can."""
    return _lacking(lower(case.scenario, "sim", 1))


def run(case: Case, seed: int) -> Found:
    """Returns every quantity of one run of the case, as `measure.of_traces` names them.

    Raises:
        CannotRunError: if ns-3 is not installed, cannot run the case, or fails.
    """
    return of_traces(case, trial(lower(case.scenario, "sim", seed)))


def column(wanted: Sequence[Case], folder: Path) -> dict[str, list[Found]]:
    """Returns every quantity of as many runs as emu has, of each case that ns-3 can run, by the case's id.

    They are kept in `folder`; a run that is there and was made from the same is not made again.

    Raises:
        CannotRunError: as `run`.
    """
    found: dict[str, list[Found]] = {}
    for case in wanted:
        if why_not(case) is not None:
            continue
        found[case.id] = []
        for seed in range(1, case.emu + 1):
            file, key = folder / case.scenario.id / f"{seed}.json", _key(case, seed)
            kept = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
            if kept.get("key") != key:
                kept = {"key": key, "quantities": run(case, seed)}
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(kept), encoding="utf-8")
            found[case.id].append(kept["quantities"])
    return found


def _key(case: Case, seed: int) -> str:
    """Returns the inputs of a run."""
    plan = json.dumps(lower(case.scenario, "sim", seed), sort_keys=True)
    parts = (require(), _SOURCE.read_text(encoding="utf-8"), plan, keep_quantities(case).key)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def trial(plan: Json) -> dict[str, FlowTrace]:
    """Runs a plan and returns the connection of each TCP flow, by the flow's name.

    Raises:
        CannotRunError: as `run`.
    """
    require()
    lacking = _lacking(plan)
    if lacking is not None:
        raise CannotRunError(f"--with ns3: {plan['scenario']}: {lacking}")
    bulk = [flow["name"] for flow in plan["flows"] if GREEDY_TCP in flow["app"]]
    with tempfile.TemporaryDirectory(prefix="streamgauge-ns3-") as folder:
        stem = Path(folder) / "flow"
        _child().ask({"plan": plan, "stem": str(stem)})
        flows = {name: _read(f"{stem}-{index}") for index, name in enumerate(bulk)}
    silent = [name for name, flow in flows.items() if len(flow.sent) == 0]
    if silent:
        raise CannotRunError(f"--with ns3: {plan['scenario']}: in ns-3 {silent[0]} never sent")
    return flows


def _lacking(plan: Json) -> str | None:
    down = [next(iter(stage["kind"].items())) for stage in plan["path"]["down"]]
    up = [next(iter(stage["kind"].items())) for stage in plan["path"]["up"]]
    kinds = [kind for kind, _ in down]
    known = (["bottleneck", "delay"], ["loss", "bottleneck", "delay"])
    if kinds not in known or [kind for kind, _ in up] != ["delay"]:
        return "ns-3's link is random loss, a bottleneck and a delay down, and a delay up"
    for kind, spec in (*down, *up):
        if kind == "loss" and ("bernoulli" not in spec["model"] or spec.get("switches")):
            return "ns-3's loss here is independent, always on"
        if kind == "bottleneck" and not _is_plain(spec):
            return "ns-3's bottleneck here has a constant rate and a drop-tail queue in bytes of Ethernet"
        if kind == "delay" and (spec.get("steps") or spec.get("jitter")):
            return "ns-3's delay here is constant"
    for flow in plan["flows"]:
        if set(flow["app"]) - {GREEDY_TCP, CONSTANT_RATE} or flow["actions"] or flow["entry"] != "server":
            return f"ns-3 has no flow like {flow['name']}"
        if flow["app"].get(GREEDY_TCP, {}).get("control_connection"):
            return "ns-3's downloads have no control connection"
    transports = [flow["app"][GREEDY_TCP]["tcp"] for flow in plan["flows"] if GREEDY_TCP in flow["app"]]
    for tcp in transports:
        if tcp["congestion_control"] not in TCP:
            return f"ns-3 has no {tcp['congestion_control']}, only {', '.join(TCP)}"
        if tcp.get("ecn") or tcp.get("without") or tcp.get("hystart", "linux") == "plus_plus":
            return "ns-3's TCP here is without ECN and HyStart++, with all its mechanisms"
    if len({json.dumps({**tcp, "congestion_control": ""}, sort_keys=True) for tcp in transports}) > 1:
        return "ns-3's flows here share all settings but the congestion control"
    return None


def _is_plain(spec: Json) -> bool:
    shaped = spec.get("shaper", "serial") != "serial"
    plain = "constant" in spec["rate"] and "bytes" in spec["queue"].get("droptail", {})
    return plain and spec["layer"] == "ethernet" and not shaped


def _read(stem: str) -> FlowTrace:
    def rows(ending: str, width: int) -> Any:
        return np.fromfile(f"{stem}.{ending}", dtype=np.int64).reshape(-1, width).T

    sent, arrived, dropped, payload, seq, repeat = rows("data", _DATA)
    ack_sent, ack_back = rows("acks", _ACKS)
    times, window = rows("cwnd", _CWND)
    return FlowTrace(
        sent=sent,
        arrived=arrived,
        dropped=dropped,
        payload=payload,
        seq=seq,
        repeat=repeat.astype(np.bool_),
        ack_sent=ack_sent,
        ack_back=ack_back,
        cwnd=(times, window.astype(np.float64)),
    )


class _Child:
    """The process that holds ns-3."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "streamgauge.crosscheck.ns3"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8", errors="replace"
        )

    def ask(self, what: Json) -> None:
        """Runs one trial."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        try:
            process.stdin.write(json.dumps(what) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if answer == "done\n":
            return
        _child.cache_clear()
        process.stdin.close()
        said = (process.stderr.read().strip() or "nothing").splitlines()[-1]
        process.wait()
        raise CannotRunError(
            f"--with ns3: ns-3 failed on {what['plan']['scenario']}; the last that it said: {said}"
        )

    def close(self) -> None:
        """Ends it: it reads to the end of its input."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


@cache
def _child() -> _Child:
    child = _Child()
    atexit.register(child.close)
    return child


def _load() -> Any:
    """Compiles `ns3_link.cc`; its namespace."""
    import cppyy

    root = Path(str(distribution("ns3").locate_file("ns3")))
    libraries = [sorted(root.glob(f"lib*/libns3*-{module}.so")) for module in _MODULES]
    if not all(libraries):
        raise CannotRunError(f"the package ns3 in {root} lacks a library of {', '.join(_MODULES)}")
    cppyy.add_include_path(str(root / "include"))
    for library, *_ in libraries:
        cppyy.load_library(str(library))
    cppyy.cppdef(_SOURCE.read_text(encoding="utf-8"))
    return cppyy.gbl.streamgauge


def _simulate(space: Any, plan: Json, stem: str) -> None:
    stages = {kind: spec for stage in plan["path"]["down"] for kind, spec in stage["kind"].items()}
    (up,) = (stage["kind"]["delay"]["delay"] for stage in plan["path"]["up"])
    loss = stages["loss"]["model"]["bernoulli"]["probability"] if "loss" in stages else 0.0
    bottleneck = stages["bottleneck"]
    for flow in plan["flows"]:
        if GREEDY_TCP in flow["app"]:
            tcp = flow["app"][GREEDY_TCP]["tcp"]
            space.Settings(
                tcp["mss"],
                tcp.get("initial_window", 10),
                tcp["send_buffer"],
                tcp["receive_window"],
                tcp.get("delayed_ack", 40_000_000),
                tcp.get("hystart", "linux") == "linux",
            )
    trial = space.Trial(
        plan["seed"],
        float(bottleneck["rate"]["constant"]),
        float(bottleneck["queue"]["droptail"]["bytes"]),
        stages["delay"]["delay"],
        up,
        float(loss),
    )
    for flow in plan["flows"]:
        app = flow["app"]
        if (greedy := app.get(GREEDY_TCP)) is not None:
            name = TCP[greedy["tcp"]["congestion_control"]]
            trial.Bulk(name, flow["start"], greedy["bytes"] or 0)
        else:
            paced = app[CONSTANT_RATE]
            trial.Cbr(paced["packets_per_s"], paced["payload_bytes"], flow["start"])
    trial.Run(plan["duration"], _SAMPLE_NS)
    if not trial.Write(stem):
        raise OSError(f"cannot write {stem}")


def main() -> None:
    """The child: a line of JSON in, a line out, until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    # C++'s prints are redirected to stderr.
    os.dup2(2, 1)
    space = _load()
    for line in sys.stdin:
        what = json.loads(line)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                _simulate(space, what["plan"], what["stem"])
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        _, status = os.waitpid(pid, 0)
        answers.write("done\n" if status == 0 else f"failed with status {status}\n")
        answers.flush()
        if status != 0:
            return


if __name__ == "__main__":
    main()
