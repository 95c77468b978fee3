"""A congestion control of the user's own as a BPF object runs for one trial; its faults are reported."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from driving import Person, the_valid_one
from streamgauge.emu.controls import kernel_name, names, why_not
from streamgauge.errors import ScenarioError
from streamgauge.scenario import from_text

# Controls are registered with this machine's kernel.
pytestmark = [pytest.mark.emu, pytest.mark.xdist_group("machine")]

WINDOW = 12
SOURCE = """
typedef unsigned int __u32;
typedef unsigned long long __u64;
#define SECTION(name) __attribute__((section(name), used))
struct sock { int sk_rcvbuf; } __attribute__((preserve_access_index));
struct tcp_sock { __u32 snd_cwnd; __u32 snd_ssthresh; } __attribute__((preserve_access_index));
struct tcp_congestion_ops {
    char name[16];
    __u32 flags;
    __u32 (*ssthresh)(struct sock *sk);
    void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
    __u32 (*undo_cwnd)(struct sock *sk);
};
SECTION("struct_ops/steady_ssthresh") __u32 steady_ssthresh(__u64 *arguments) { return WINDOW; }
SECTION("struct_ops/steady_undo") __u32 steady_undo(__u64 *arguments) { return WINDOW; }
SECTION("struct_ops/steady_avoid") int steady_avoid(__u64 *arguments)
{
    struct tcp_sock *tp = (void *)arguments[0];
    BODY
    return 0;
}
SECTION(".struct_ops.link") struct tcp_congestion_ops steady = {
    .name = "steady",
    .flags = 1,
    .ssthresh = (void *)steady_ssthresh,
    .cong_avoid = (void *)steady_avoid,
    .undo_cwnd = (void *)steady_undo,
};
char LICENSE[] SECTION("license") = "GPL";
"""
KEEPS_ITS_WINDOW = "tp->snd_cwnd = WINDOW;"
READS_ANYTHING = "tp->snd_cwnd = *(__u32 *)(arguments[1] * 4096);"
PATH = """
id: test/bpf
title: A window of twelve segments over 100 ms
path:
  down: {rate: 10 Mbit/s, queue: droptail 100 packets, delay: 50 ms}
  up: {delay: 50 ms}
flows:
  tcp: {role: subject, traffic: bulk, congestion_control: {bpf: OBJECT}}
until: {time: 8 s}
measure: {window: [2 s, 8 s]}
modes: [emu, sim]
"""


def _object(folder: Path, body: str, name: str = "steady") -> Path:
    if shutil.which("clang") is None:
        pytest.skip("no clang")
    made = folder / f"{name}.bpf.o"
    command = [
        "clang",
        "-O2",
        "-g",
        "-target",
        "bpf",
        f"-DWINDOW={WINDOW}",
        "-x",
        "c",
        "-c",
        "-",
        "-o",
        str(made),
    ]
    subprocess.run(command, input=SOURCE.replace("BODY", body), text=True, check=True)
    made.chmod(0o644)
    return made


def _registered() -> set[str]:
    file = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    return {name for name in file.read_text().split() if name.startswith("sg_stea")}


def _needs_root(person: Person) -> None:
    if person.way != "root":
        pytest.skip("root alone may")
    if (why := why_not("vegas", "root")) is not None:
        pytest.skip(why)


def test_it_controls_the_flow_for_one_trial(person: Person) -> None:
    _needs_root(person)
    made = _object(person.home, KEEPS_ITS_WINDOW)
    trial = the_valid_one(person.trials(PATH.replace("OBJECT", str(made))))
    provenance = json.loads((Path(trial["directory"]) / "provenance.json").read_text())["systems"]["tcp"]
    assert provenance["congestion_control_used"] == [str(made)]
    assert provenance["congestion_control_origin"] == "bpf"
    # A window a round trip: the kernel, and not our reading of its state, is the witness.
    expected = WINDOW * 1448 * 8 / trial["flows"]["tcp"]["rtt_mean_s"]
    assert trial["flows"]["tcp"]["goodput_bps"] == pytest.approx(expected, rel=0.05)
    assert not _registered()


def test_a_program_that_the_kernel_refuses_is_reported_before_the_trial(person: Person) -> None:
    _needs_root(person)
    made = _object(person.home, READS_ANYTHING, "wild")
    file = person.scenario(PATH.replace("OBJECT", str(made)))
    done = person.run("run", file, "--mode", "emu", "--seed", "1", "--out", str(person.out), "--json")
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert f"flow tcp: the kernel refused the BPF object {made}" in done.stderr
    assert "invalid mem access" in done.stderr, done.stderr


def test_an_ordinary_user_may_not_bring_one(person: Person) -> None:
    made = _object(person.home, KEEPS_ITS_WINDOW)
    why = why_not(str(made), "user")
    assert why is not None and "only root's way" in why and str(made) in why


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "not a file"),
        (b"", "no BPF object"),
        (b"\x7fELF" + b"\x02\x01" + bytes(12) + b"\x3e\x00", "no BPF object"),
    ],
)
def test_what_is_no_object_is_refused_by_file_and_key(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    file = tmp_path / "mine.o"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ScenarioError) as raised:
        from_text(PATH.replace("OBJECT", str(file)))
    assert said in str(raised.value) and "flows.tcp.congestion_control" in str(raised.value)
    assert str(file) in str(raised.value)


def test_sim_and_other_files_are_refused_by_name(tmp_path: Path) -> None:
    (made,) = from_text(PATH.replace("OBJECT", str(_object(tmp_path, KEEPS_ITS_WINDOW))))
    assert "sim runs no BPF object" in (made.unsupported("sim") or "")
    assert made.unsupported("emu") is None
    with pytest.raises(ScenarioError, match=r"is no object file.*ends with \.o"):
        from_text(PATH.replace("OBJECT", "mine.c"))


def test_a_name_of_the_trials_own_fits_the_kernel() -> None:
    for object_file in ("/a/b/My Control.bpf.o", "/x/é.o", "/y/steady.o"):
        (name,) = names([object_file]).values()
        assert name.startswith("sg_") and len(name) <= 15 and name.isascii() and name == name.lower()
    assert kernel_name("vegas") != kernel_name("vegas")
    assert os.sep not in kernel_name("/a/b.o")
