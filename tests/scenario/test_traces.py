"""The traces that ship: made by their script, read by the reader, and of the size that their models say."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from pydantic import ValidationError
from streamgauge import _native
from streamgauge.cli import main
from streamgauge.errors import DoubtWarning, ScenarioError
from streamgauge.scenario import Path as ScenarioPath
from streamgauge.scenario import Scenario, load, lower
from streamgauge.scenario.path import direction_in_words
from streamgauge.scenario.path.trace import TraceFile

ROOT = Path(__file__).parent.parent.parent
TRACES = ROOT / "python" / "streamgauge" / "traces"


def test_the_script_makes_what_ships(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "scripts" / "make-traces.py", tmp_path], check=True)
    made = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert made == {file.name: file.read_bytes() for file in TRACES.iterdir()}


@pytest.mark.parametrize(
    ("name", "duration_s", "least_bps", "most_bps"),
    [
        ("lte-driving.csv", 600, 5e6, 25e6),
        ("wifi-lossy.csv", 600, 4e6, 24e6),
        ("hsdpa-bus.csv", 600, 0.7e6, 3e6),
        ("lte-walking.pps", 60, 1.5e6, 8e6),
    ],
)
def test_each_reads_as_a_link(name: str, duration_s: float, least_bps: float, most_bps: float) -> None:
    trace = json.loads(_native.parse_trace((TRACES / name).read_text()))
    assert trace["format"] == ("mahimahi" if name.endswith(".pps") else "csv")
    assert trace["duration_ns"] == pytest.approx(duration_s * 1e9, rel=0.01)
    assert least_bps < trace["mean_bps"] < most_bps
    assert trace["samples"] > 500


def test_steps_are_repeated_for_as_long_as_asked() -> None:
    trace = json.loads(_native.parse_trace("time_s,rate_kbps\n0,1\n1,2\n", lasts_ns=3 * 10**9))
    assert trace["rate"] == {"steps": [[0, 1000], [10**9, 2000], [2 * 10**9, 1000], [3 * 10**9, 2000]]}
    forced = json.loads(_native.parse_trace("0 9\n1 2\n", "pensieve"))
    assert (forced["rate"], forced["mean_bps"]) == ({"steps": [[0, 2_000_000]]}, 2_000_000)


def test_a_refusal_is_a_scenario_error_of_one_line() -> None:
    with pytest.raises(ScenarioError, match=r"^line 2: its time is not later") as caught:
        _native.parse_trace("5\n4\n")
    assert "\n" not in str(caught.value)
    with pytest.raises(ScenarioError, match="no trace format is called"):
        _native.parse_trace("5\n", "nonsense")


CSV = """\
id: test/doubt
title: A trace without a header
path: {down: {rate: {csv: line.csv}, queue: droptail 20 kB}}
flows: {bulk: {role: subject, traffic: bulk}}
until: {time: 2 s}
"""


def test_a_trace_without_units_that_looks_of_others_is_doubted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "line.csv").write_text("0,2500\n1,3100\n")
    (tmp_path / "my.yaml").write_text(CSV)
    with pytest.warns(DoubtWarning, match="If they are kbit/s, begin the file"):
        (one,) = load(str(tmp_path / "my.yaml"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Scenario.model_validate(one.normalised())  # as records and a campaign's processes have it
    assert main(["show", str(tmp_path / "my.yaml")]) == 0
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("streamgauge: warning: the trace ") and "`time_s,rate_kbps`" in said
    (tmp_path / "line.csv").write_text("time_s,rate_kbps\n0,2500\n1,3100\n")
    assert main(["show", str(tmp_path / "my.yaml")]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rtt_ms,kbps\n0,1\n", 'no column is called a time; rename the intended one ("rtt_ms")'),
        (
            "time_s,video_kbps\n0,1\n",
            'no column is called a rate; rename the intended one ("video_kbps")',
        ),
        ("TIME_S,RATE_KBPS\n0,1\n", "its unit may be bits or bytes; write kbit/s or kbyte/s"),
    ],
)
def test_a_column_that_is_not_named_is_not_guessed(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "line.csv").write_text(text)
    (tmp_path / "my.yaml").write_text(CSV)
    with pytest.raises(ScenarioError) as caught:
        load(str(tmp_path / "my.yaml"))
    assert says in str(caught.value) and "path.down.rate" in str(caught.value.key)


SABRE = json.dumps([
    {"duration_ms": 2000, "bandwidth_kbps": 1000, "latency_ms": 20},
    {"duration_ms": 500, "bandwidth_kbps": 250.5, "latency_ms": 20},
])  # fmt: skip
STEPS = [{"duration": 2000, "capacity": 1000}, {"duration": 500, "capacity": 250.5, "loss": 0.1}]
OPEN_NET_LAB = json.dumps({"type": "video", "downlink": {}, "uplink": {"trace_pattern": STEPS}})


@pytest.mark.parametrize("text", [SABRE, OPEN_NET_LAB])
@pytest.mark.parametrize("is_packed", [False, True])
def test_traces_in_json_and_gzip(text: str, is_packed: bool, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_bytes(gzip.compress(text.encode()) if is_packed else text.encode())
    trace = TraceFile.model_validate(str(file))
    assert trace.duration_ns() == 2_500_000_000
    assert trace.rates_bps()[0] == 1_000_000 and set(trace.rates_bps()[1:]) == {250_500}
    assert trace.mean_bps() == 850_100


PUFFER = (
    "time (ns GMT),session_id,index,expt_id,channel,size,rtt,delivery_rate\n"
    "1700000000000000000,abc=,1,7,nbc,9,60000,125000\n"
    "1700000000000000000,abc=,1,7,nbc,9,60000,7\n"
    "1700000002000000000,abc=,1,7,nbc,9,60000,31312.5\n"
)
"""The second sample of a time is passed over."""
FCC = (
    "unit_id,dtime,target,address,fetch_time,bytes_total,bytes_sec\n"
    '386,"2016-08-01 00:00:01",site,1.2.3.4,9,9,125000\n386,"2016-08-01 00:00:03",site,1.2.3.4,9,9,31312.5\n'
)
DATED = "Time;Rate (kbit/s)\n2024-05-01T12:00:00.5Z;1000\n2024-05-01T14:00:02.5+02:00;250.5\n"


@pytest.mark.parametrize("text", [PUFFER, FCC, DATED])
def test_tables_of_others_and_dates(text: str, tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text(text)
    trace = TraceFile.model_validate(str(file))
    # The last rate lasts as long as the one before it.
    assert trace.duration_ns() == 4_000_000_000
    assert trace.rates_bps() == [1_000_000, 250_500]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            PUFFER.replace("abc=,1,7,nbc,9,60000,31312.5", "d=,1,7,nbc,9,1,1").encode(),
            "2 of session_id and ind",
        ),
        (PUFFER.replace("nbc,9,60000,7\n", "nbc\n").encode(), "has 5 columns in row 3; expected 8"),
        (FCC.replace("31312.5", "NA").encode(), "no dtime with a bytes_sec in row 3"),
        (DATED.replace("2024-05-01T14", "14").encode(), "has no date in row 3"),
        (b"[{", "begins as JSON and is none"),
        (b"[]", "has no step"),
        (b'[{"duration_ms": 0, "bandwidth_kbps": 5}]', "no duration_ms above 0"),
        (b'[{"duration_ms": 5, "bandwidth_kbps": NaN}]', "in step 1"),
        (b'{"uplink": {}}', "0 lists of 'trace_pattern'"),
        (gzip.compress(b"0 1\n1 2\n", mtime=0)[:-6], "cut off"),
        (b"\x1f\x8bnothing", "damaged gzip"),
    ],
)
def test_a_trace_that_is_none_is_one_line(content: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / "trace"
    file.write_bytes(content)
    with pytest.raises(ValidationError, match=says):
        TraceFile.model_validate(str(file))


COLUMNS = """\
id: test/columns
title: One table of rate, delay and loss
path:
  down:
    rate: {trace: line.csv}
    delay: {trace: line.csv}
    loss: {trace: line.csv}
    queue: droptail 50 kB
flows: {bulk: {role: subject, traffic: bulk}}
until: {time: 5 s}
"""


def test_a_table_has_rate_delay_and_loss_on_one_clock(tmp_path: Path) -> None:
    (tmp_path / "line.csv").write_text(
        "time (s);rate (Mbit/s);delay [ms];loss (%)\n10;4;20;0\n11;2;;\n12;1;80;1.5\n13;2;80;0\n"
    )
    (tmp_path / "my.yaml").write_text(COLUMNS)
    (scenario,) = load(str(tmp_path / "my.yaml"))
    plan = lower(scenario, "sim", 1)["path"]["down"]
    by_kind = {next(iter(stage["kind"])): stage for stage in plan}
    second, mbit = 10**9, 10**6
    # Times count from the first row, a blank field keeps its value, and all begin again after 4 s.
    assert by_kind["bottleneck"]["kind"]["bottleneck"]["rate"]["steps"][-1] == [7 * second, 2 * mbit]
    delay = by_kind["delay"]["kind"]["delay"]
    assert (delay["delay"], delay["steps"]) == (
        20 * mbit,
        [[2 * second, 80 * mbit], [4 * second, 20 * mbit], [6 * second, 80 * mbit]],
    )
    loss = by_kind["loss"]
    assert loss["kind"]["loss"]["model"] == {"bernoulli": {"probability": 0.0}}
    assert loss["changes"] == [
        [at * second, {"loss": share}] for at, share in ((2, 0.015), (3, 0.0), (6, 0.015), (7, 0.0))
    ]
    # The record has the scenario with digests, and reads it back.
    again = Scenario.model_validate(scenario.normalised())
    assert lower(again, "sim", 1)["path"]["down"] == plan
    said = direction_in_words(scenario.path.down)
    assert "loses 0 to 1.5 % at random by the trace line.csv" in said
    assert "20 to 80 ms of delay by the trace line.csv" in said


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("time_s,rate_kbps\n0,1\n", "no column of a delay"),
        ("time_s,rate_kbps,delay_ms,loss_percent\n0,1,x,0\n", "line 2: the delay is"),
        ("time_s,rate_kbps,delay_ms,loss_percent\n0,1,1,120\n", "more than every packet"),
        ("time_s,rate_kbps,delay_ms,latency_ms,loss_ratio\n0,1,1,1,0\n", "are alike"),
        ("time_s,rate_kbps,delay_ms,loss_ratio\n0,1,,0\n", "first row has no value"),
    ],
)
def test_a_column_that_is_used_is_sound(tmp_path: Path, table: str, says: str) -> None:
    (tmp_path / "line.csv").write_text(table)
    (tmp_path / "my.yaml").write_text(COLUMNS)
    with pytest.raises(ScenarioError, match=says) as caught:
        load(str(tmp_path / "my.yaml"))
    assert "line.csv" in str(caught.value)
    # Where only its rate is used, the other columns are passed over.
    rate = {"down": {"rate": {"trace": str(tmp_path / "line.csv")}, "queue": "droptail 50 kB"}}
    assert ScenarioPath.model_validate(rate).down.rate is not None
