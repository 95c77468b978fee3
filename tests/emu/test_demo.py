"""`make demo` where every emulated trial is invalid: it ends well, with an answer and the reason."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from driving import CHECKOUT, a_thief_on_every_processor

pytestmark = pytest.mark.emu

SHORT = ("until.time=4s", "flows.cross.start=1s", "measure.window=[0 s, 4 s]", "checks=null")


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="a real-time priority needs root")
def test_the_demo_ends_with_an_answer_on_a_machine_that_others_keep_busy(tmp_path: Path) -> None:
    settings = [word for one in SHORT for word in ("--set", one)]
    command = [str(CHECKOUT / "scripts/demo.sh"), str(tmp_path), *settings, "--replace", "1"]
    doctor = [str(CHECKOUT / ".venv/bin/streamgauge"), "doctor"]
    examined = subprocess.run(doctor, capture_output=True, text=True, check=False).stdout
    has_machine = "image built" in examined
    printed = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        with a_thief_on_every_processor():
            for line in demo.stdout:
                printed += line
                if line.startswith("demo: the FTP rows"):  # what comes now is simulated
                    break
        printed += demo.stdout.read()
    assert demo.returncode == 0, printed
    said, _, answer = printed.partition("demo: the answer")
    assert "hessler/ftp-no" in said and "hessler/ftp-no" not in answer, "the answer is last"
    for scenario in ("today/demo-rtsp-udp-medium", "today/demo-rtsp-tcp-medium"):
        assert f"2 of 2 emu trials of {scenario} are invalid" in said, "once, and once more with another seed"
        again = f"no trial of {scenario} is valid on this machine: it runs in a virtual machine now"
        assert (again in said) == has_machine
        why = [line for line in answer.splitlines() if "no emulated trial" in line and scenario in line]
        assert len(why) == 1 and "valid" in why[0], "why, in one line"
        assert f"({scenario}" in answer
    assert "simulated, n = 10" in answer
    page = Path(answer.splitlines()[-1])
    assert page == tmp_path / "report.html" and page.is_file()
