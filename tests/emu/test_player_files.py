"""Files that programs under test own: which are read, and that no content of theirs loses a record."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamgauge.emu import logs as logs_module
from streamgauge.emu.logs import LEFT_OUT_FILE, keep_logs
from streamgauge.systems import player_files
from streamgauge.systems.adapter import Adapter, Clock, Collected, FlowSetup
from streamgauge.systems.collecting import collect
from streamgauge.systems.command import CommandAdapter
from streamgauge.systems.node import NodeAdapter
from streamgauge.systems.player_files import (
    FileRefusedError,
    exists_in,
    files_in,
    folder_of,
    new_in,
    printable,
    read_in,
    tail_of,
    write_in,
)
from streamgauge.systems.registry import SYSTEMS, TRAFFIC
from streamgauge.systems.relay import RelayAdapter, RelaySetup

S = 10**9
CLOCK = Clock(
    t0_monotonic_ns=5_000 * S,
    t0_realtime_ns=1_790_000_000 * S,
    started={"player": 5_000 * S, "server": 4_999 * S, "relay": 4_999 * S},
    ended_monotonic_ns=5_012 * S,
)


def _socket(file: Path) -> None:
    # Its address is shorter than the path of a test's folder may be.
    before = Path.cwd()
    os.chdir(file.parent)
    try:
        socket.socket(socket.AF_UNIX).bind(file.name)
    finally:
        os.chdir(before)


def _sparse(file: Path) -> None:
    with file.open("wb") as target:
        target.write(b"begin")
        target.truncate(1 << 40)


def _second_name(file: Path) -> None:
    other = file.with_name("other")
    other.write_text("secret")
    os.link(other, file)


def _below_link(file: Path) -> None:
    (file.parent / "real").mkdir()
    (file.parent / "real" / "x").write_text("secret")
    file.symlink_to("real")


REFUSED: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "a link to a file": (lambda file: file.symlink_to("/etc/hostname"), "f", "is a symbolic link"),
    "a link to nothing": (lambda file: file.symlink_to("nowhere"), "f", "is a symbolic link"),
    "a link to itself": (lambda file: file.symlink_to("f"), "f", "is a symbolic link"),
    "a link on the way": (_below_link, "f/x", "cannot be read"),
    "a link by magic": (lambda file: file.symlink_to("/proc/self/fd/0"), "f", "is a symbolic link"),
    "a pipe": (os.mkfifo, "f", "is a pipe, not a file"),
    "a socket": (_socket, "f", "is a socket, not a file"),
    "a folder": (Path.mkdir, "f", "is a folder, not a file"),
    "a second name": (_second_name, "f", "has a second name (a hard link)"),
    "holes": (_sparse, "f", "nearly all of them holes"),
    "a file on the way": (lambda file: file.write_text("x"), "f/x", "cannot be read: Not a directory"),
    "a way out": (lambda file: file.write_text("x"), "../f", "is not below its folder"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_file_of_its_own_is_refused(what: str, tmp_path: Path) -> None:
    make, name, why = REFUSED[what]
    make(tmp_path / "f")
    for read in (read_in, tail_of):
        with pytest.raises(FileRefusedError) as caught:
            read(tmp_path, name, 1000)
        assert why in str(caught.value)
    assert not exists_in(tmp_path, name)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_is_refused(tmp_path: Path) -> None:
    try:
        os.mknod(tmp_path / "f", 0o020666, os.makedev(1, 5))
        (tmp_path / "f").open("rb").close()
    except PermissionError:
        pytest.skip("devices are off here")
    with pytest.raises(FileRefusedError, match="is a device"):
        read_in(tmp_path, "f", 1000)


def test_a_file_is_read_to_its_bound(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "f").write_bytes(b"0123456789")
    found = read_in(tmp_path, "below/f", 4)
    assert found is not None and (found.data, found.size, found.is_cut) == (b"0123", 10, True)
    assert tail_of(tmp_path, "below/f", 4) == b"6789"
    assert exists_in(tmp_path, "below/f") and exists_in(tmp_path, "below/f", filled=True)
    (tmp_path / "empty").touch()
    assert exists_in(tmp_path, "empty") and not exists_in(tmp_path, "empty", filled=True)
    for missing in ("none", "none/f"):
        assert read_in(tmp_path, missing, 4) is None and tail_of(tmp_path, missing, 4) == b""
        assert not exists_in(tmp_path, missing)
    assert read_in(tmp_path / "none", "f", 4) is None


def test_what_is_written_goes_through_no_link(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("kept")
    folder = tmp_path / "out"
    folder.mkdir()
    for make in (lambda file: file.symlink_to(secret), lambda file: os.link(secret, file), lambda file: None):
        (folder / "f").unlink(missing_ok=True)
        make(folder / "f")
        write_in(folder, "f", b"new")
        assert (folder / "f").read_bytes() == b"new" and not (folder / "f").is_symlink()
    assert secret.read_text() == "kept"
    (folder / "d").mkdir()
    with pytest.raises(FileRefusedError, match="cannot be written"):
        write_in(folder, "d", b"new")
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(FileRefusedError, match="is a symbolic link"):
        write_in(tmp_path / "link", "f", b"new")


def test_a_folder_that_a_program_replaced_is_refused(tmp_path: Path) -> None:
    """A process's logs are made with the rights of whoever runs the trial."""
    out, victim = tmp_path / "main", tmp_path / "victim"
    victim.mkdir()
    (victim / "stdout.log").write_text("precious")
    for replace in (lambda: out.symlink_to(victim), lambda: out.write_text("x"), lambda: os.mkfifo(out)):
        replace()
        with pytest.raises(FileRefusedError):
            folder_of(out)
        out.unlink()
    out.mkdir()
    directory = folder_of(out)
    (out / "stdout.log").symlink_to(victim / "stdout.log")
    os.close(new_in(directory, "stdout.log"))
    (out / "stderr.log").mkdir()
    with pytest.raises(FileRefusedError, match="cannot be written"):
        new_in(directory, "stderr.log")
    # One that is replaced once it is open leads nowhere else.
    out.rename(tmp_path / "away")
    out.symlink_to(victim)
    os.close(new_in(directory, "stdout.log"))
    os.close(directory)
    assert (victim / "stdout.log").read_text() == "precious"


def test_text_of_a_program_is_one_printable_line() -> None:
    assert printable("plain words, überlastet") == "plain words, überlastet"
    assert printable("red \x1b[31m\r\n\x00\udcff") == r"red \x1b[31m\r\n\x00\udcff"
    assert len(printable("x" * 10_000)) == 300 and printable("x" * 301).endswith("...")


FOLLOWED = "only-root-may-read"


@pytest.fixture
def flow(tmp_path: Path) -> FlowSetup:
    made = FlowSetup(name="web", index=0, system="command", folder=tmp_path / "flow")
    for side in ("player", "server"):
        made.out(side).mkdir(parents=True)
    (tmp_path / "logs").mkdir()
    (tmp_path / "secret").write_text(FOLLOWED)
    return made


def test_logs_are_kept_whatever_their_names_are(flow: FlowSetup, tmp_path: Path) -> None:
    out, logs = flow.out("player"), tmp_path / "logs"
    long = "n" * 245
    (out / long).write_text("long")
    (out / "two\nlines").write_text("lines")
    with open(os.fsencode(out) + b"/\xff\xfe", "w") as odd:  # noqa: PTH123
        odd.write("bytes")
    (out / "a").mkdir()
    (out / "a" / "b").write_text("inner")
    (out / "a-b").write_text("outer")
    (out / "stdout.log").write_text("plain")
    (out / "stolen").symlink_to(tmp_path / "secret")
    (out / "folder").symlink_to(tmp_path)
    os.mkfifo(out / "pipe")
    told = keep_logs([flow], logs)
    kept = {file.name: file.read_text() for file in logs.iterdir()}
    listed = kept.pop(LEFT_OUT_FILE)
    assert listed.splitlines() == told
    assert sorted(kept.values()) == ["bytes", "inner", "lines", "long", "outer", "plain"]
    assert kept["web-player-stdout.log"] == "plain"
    assert all(name.isprintable() and len(os.fsencode(name)) <= 200 for name in kept)
    renamed = [line for line in told if " is kept as " in line]
    assert len(renamed) == 4
    refused = [line for line in told if line.endswith("; it is left out")]
    assert {line.split()[0] for line in refused} == {
        "web-player-stolen",
        "web-player-folder",
        "web-player-pipe",
    }


def test_logs_have_a_bound_in_bytes_files_and_depth(
    flow: FlowSetup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs_module, "KEPT_LOG_BYTES", 10)
    monkeypatch.setattr(logs_module, "KEPT_BYTES", 25)
    monkeypatch.setattr(logs_module, "MOST_TOLD", 8)
    monkeypatch.setattr(player_files, "MOST_FILES", 20)
    deep = flow.out("server").joinpath(*["d"] * (player_files.MOST_DEPTH + 3))
    deep.mkdir(parents=True)
    (deep / "x").write_text("deep")
    for number in range(30):
        (flow.out("player") / f"f{number:02}").write_bytes(b"0123456789abc")
    told = keep_logs([flow], tmp_path / "logs")
    kept = [file for file in (tmp_path / "logs").iterdir() if file.name != LEFT_OUT_FILE]
    assert sum(file.stat().st_size for file in kept) == 20
    assert sum("has 13 bytes; the first 10 are kept" in line for line in told) == 2
    assert told[-1].endswith(" more such files") and len(told) == 9
    (whole,) = [why for path, why in files_in(flow.out("player"), 10) if not path.parts]
    assert "more than 20 files" in str(whole)
    refused = [why for _, why in files_in(flow.out("server"), 10)]
    assert ["folders deep" in str(why) for why in refused] == [True]


def test_no_name_that_a_program_chooses_takes_the_place_of_another_log(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    flow = FlowSetup(name="web", index=0, system="command", folder=tmp_path / "flow", plan={})
    folder = flow.out("player")
    folder.mkdir(parents=True)

    def marked(name: str) -> str:
        return f"z_~{hashlib.sha256(name.encode()).hexdigest()[:12]}"

    names = [marked("z\x7f"), marked("z\x7f1"), "z\x7f"]
    for name in names:
        (folder / name).write_text(name)
    told = keep_logs([flow], tmp_path / "logs")
    kept = [file for file in (tmp_path / "logs").iterdir() if file.name != LEFT_OUT_FILE]
    assert sorted(file.read_text() for file in kept) == sorted(names)
    assert len(told) == 1 and "is kept as" in told[0]


_APPS: dict[str, Any] = {
    "bulk": {"tcp": {"receive_window": 65536}},
    "cbr": {"payload_bytes": 500, "burst": 1, "packets_per_s": 10, "windows": None},
}
LOGS = ("events.jsonl", "stdout.log", "access.log", "mgen.log", "progress.txt")


def _adapters() -> dict[str, Adapter]:
    found: dict[str, Adapter] = {"command": CommandAdapter(), "node": NodeAdapter(), "relay": RelayAdapter()}
    for entry in (*SYSTEMS.values(), *TRAFFIC.values()):
        if entry.adapter is not None and not isinstance(entry.adapter, NodeAdapter):
            found[entry.name] = entry.adapter
    return found


ADAPTERS = _adapters()


def _setup(name: str, folder: Path) -> FlowSetup:
    plan: dict[str, Any] = {"start": 0, "app": {name: _APPS.get(name, {})}}
    if name == "relay":
        plan = {"start": 0, "at": "client", "app": {}}
    kind = RelaySetup if name == "relay" else FlowSetup
    from streamgauge.systems.adapter import CommandLine

    line = [CommandLine(command="x")]
    made = kind(
        name="web", index=0, system=name, folder=folder, plan=plan, trial={"duration": 10 * S},
        commands={"server": line, "player": line},
    )  # fmt: skip
    for side in ("player", "server", "relay"):
        made.out(side).mkdir(parents=True, exist_ok=True)
    return made


ODD_NUMBERS = st.sampled_from(
    [0, 1, -1, 3, 10**400, -(10**308), 2**63, 2**64, 1e308, -1e300, 5e-324, float("nan"), float("inf"), True]
)
ODD_VALUES = st.recursive(
    st.none() | ODD_NUMBERS | st.sampled_from(["", "\ud800", "GET /segment-1-2.m4s?CMCD=bl%3D9", "9" * 5000]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["t_s", "t_monotonic_ns", "name", "value", "unit", "reason", "event", "stats", "left", "end",
             "intervals", "sum", "streams", "bytes", "bits_per_second", "sum_received", "t", "status",
             "request", "took", "sender_tcp_congestion", "unread_bytes", "received_bytes",
             "received_packets", "congestion_control", "received_from_servers_bytes"]
        ),
        inner,
        max_size=6,
    ),
    max_leaves=12,
)  # fmt: skip
ODD_LINES = st.one_of(
    st.binary(max_size=80).map(lambda line: line.replace(b"\n", b"")),
    ODD_VALUES.map(lambda value: json.dumps(value).encode()),
    st.sampled_from(
        [b'{"t_s":-1e300,"name":"stall"}', b"[" * 3000, b"x" * 100_000,
         b" RECV  seq>1 x size>99999999999999999999", b"frame=1e308",
         b" RECV " * 3000 + b" seq>1", b"out_time_us=1e999", b"frame=nan", b"progress=continue",
         b'{"event":"stopped","stats":{"received_bytes":-1}}', b'{"event":"stopped","left":{}}',
         b'{"event":"stopped","stats":{"received_packets":1e400}}', b"\xff\xfe", b"\x00",
         b'{"t_s":1,"name":"total_bytes_received","value":1e300}',
         b'{"t_s":1,"name":"total_packets_received","value":-5}']
    ),
)  # fmt: skip
NGINX = {
    "t": 1_790_000_001.5, "status": 200, "bytes": 5, "request": "GET /segment-v-1.m4s HTTP/1.1", "range": "",
    "whole": "OK", "connection": 1, "on_connection": 1, "rtt_us": "1", "cwnd": "1", "took": "0.1",
    "cmcd_object": "", "cmcd_request": "", "cmcd_session": "", "cmcd_status": "",
}  # fmt: skip


def _is_sound(found: Collected) -> None:
    """Holds that a record can have all of it."""
    text = json.dumps(vars(found), allow_nan=False, ensure_ascii=False)
    text.encode()
    assert all(fault.isprintable() for fault in found.faults)


@pytest.mark.parametrize("name", ADAPTERS)
@given(data=st.data())
@settings(max_examples=25)
def test_no_content_raises_out_of_an_adapter(
    name: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    flow = _setup(name, tmp_path_factory.mktemp("flow"))
    for side in ("player", "server", "relay"):
        for log in LOGS:
            lines = data.draw(st.lists(ODD_LINES, max_size=3))
            if log == "access.log":
                changed = data.draw(st.dictionaries(st.sampled_from([*NGINX]), ODD_VALUES, max_size=3))
                lines.append(json.dumps(NGINX | changed).encode())
            (flow.out(side) / log).write_bytes(b"".join(line + b"\n" for line in lines))
    _is_sound(collect(ADAPTERS[name], flow, CLOCK))


@pytest.mark.parametrize("name", ADAPTERS)
@pytest.mark.parametrize("kind", ["link", "pipe", "second name", "folder"])
def test_no_adapter_follows_a_link_or_waits_for_a_pipe(name: str, kind: str, tmp_path: Path) -> None:
    flow = _setup(name, tmp_path / "flow")
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"t_s": 1, "name": FOLLOWED}) + "\n")
    for side in ("player", "server", "relay"):
        for log in LOGS:
            file = flow.out(side) / log
            if kind == "link":
                file.symlink_to(secret)
            elif kind == "pipe":
                os.mkfifo(file)
            elif kind == "folder":
                file.mkdir()
            else:
                os.link(secret, file)
    found = collect(ADAPTERS[name], flow, CLOCK)
    _is_sound(found)
    assert FOLLOWED not in json.dumps(vars(found))
    assert any(".log " in fault or ".jsonl " in fault for fault in found.faults), "the file is named"


class _Failing(CommandAdapter):
    def collect(self, flow: FlowSetup, clock: Clock) -> Collected:
        raise KeyError("\x1b[31m")


class _Odd(CommandAdapter):
    def collect(self, flow: FlowSetup, clock: Clock) -> Collected:
        good = {"t_monotonic_ns": 1, "name": "x", "value": 1.0, "unit": "", "reason": ""}
        bad = [{"value": float("nan")}, {"t_monotonic_ns": 10**30}, {"name": "\ud800"}, {"unit": None}]
        return Collected(
            events=[good, *(good | one for one in bad)],
            received_packets=-1,
            received_bytes=10**30,
            faults=["a fault\n"] * 100,
            congestion_control={},  # type: ignore[arg-type]
        )


def test_an_adapter_that_fails_is_a_fault_of_its_flow(tmp_path: Path) -> None:
    flow = _setup("command", tmp_path)
    failed = collect(_Failing(), flow, CLOCK)
    assert failed.faults == ["the files of its programs cannot be read (KeyError: '\\x1b[31m')"]
    odd = collect(_Odd(), flow, CLOCK)
    _is_sound(odd)
    assert len(odd.events) == 1 and odd.received_packets is None and odd.received_bytes is None
    assert len(odd.faults) == 51


def test_a_search_in_a_long_line_takes_no_square_of_its_length(tmp_path: Path) -> None:
    flow = _setup("cbr", tmp_path)
    (flow.out("player") / "mgen.log").write_bytes(
        b" RECV seq>1 " * 400_000 + b"\n 1 RECV x seq>1 y size>500 \n"
    )
    found = collect(ADAPTERS["cbr"], flow, CLOCK)
    assert (found.received_packets, found.received_bytes) == (1, 500)
