"""Each slip about the link is answered with its line, its key and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest
from link_elements import SCENARIO
from streamgauge.errors import ScenarioError
from streamgauge.scenario import ScenarioErrors, from_text

_TABLE = """\
{rate: 1 Mbit/s, queue: codle}
queue
did you mean 'codel'?

{rate: 1 Mbit/s, queue: {codle: {}}}
queue.codle
did you mean 'codel'?

{rate: 1 Mbit/s, queue: {codel: 10 kB, pie: 10 kB}}
queue.pie
exclude each other

{rate: 1 Mbit/s, queue: droptail}
queue.droptail
such as 'droptail 100 packets'

{rate: 1 Mbit/s, queue: red}
queue.red
such as 'red 100 packets'

{rate: 1 Mbit/s, queue: {codel: {traget: 5 ms}}}
queue.codel.traget
did you mean 'target'?

{rate: 1 Mbit/s, queue: {codel: {target: 5}}}
queue.codel.target
has no unit

{rate: 1 Mbit/s, queue: {codel: {target: 100 ms}}}
queue.codel.target
below the interval

{rate: 1 Mbit/s, queue: {codel: {target: 0 ms}}}
queue.codel.target
makes no sense

{rate: 1 Mbit/s, queue: {codel: {ecn: maybe}}}
queue.codel.ecn
neither on nor off

{rate: 1 Mbit/s, queue: codel 1 kB}
queue
cannot hold one packet of 1514 B

{rate: 1 Mbit/s, queue: codel 0 packets}
queue.codel.limit
cannot hold one packet

{rate: 1 Mbit/s, queue: {fq_codel: {quantum: 300 B}}}
queue.fq_codel.quantum
1514 B

{rate: 1 Mbit/s, queue: {fq_codel: {flows: 0}}}
queue.fq_codel.flows
greater than or equal to 1

{rate: 1 Mbit/s, queue: {pie: {alpha: 0 Hz}}}
queue.pie.alpha
never changes

{rate: 1 Mbit/s, queue: {pie: {limit: 15 ms}}}
queue.pie.target
not below the limit

{rate: 1 Mbit/s, queue: {pie: {mark_below: 110 %}}}
queue.pie.mark_below
more than everything

{rate: 1 Mbit/s, queue: {pie: {delay: guess}}}
queue.pie.delay
departure_rate

{rate: 1 Mbit/s, queue: {dualpi2: {classic_share: 0 %}}}
queue.dualpi2.classic_share
starves

{rate: 1 Mbit/s, queue: {dualpi2: {l4s_step: 1 ms, l4s_min: 500 us}}}
queue.dualpi2.l4s_min
exclude each other

{rate: 1 Mbit/s, queue: {red: {limit: 99 packets, min: 9 packets, max: 9 packets}}}
queue.red.min
below

{rate: 1 Mbit/s, queue: {red: {limit: 20 packets, max: 30 packets}}}
queue.red.max
above the limit

{rate: 1 Mbit/s, queue: {red: {limit: 100 packets, min: 50 packets}}}
queue.red.min
not below the max

{rate: 1 Mbit/s, queue: {red: {limit: 60 kB, max: 10 packets}}}
queue.red.max
counted alike

{rate: 1 Mbit/s, queue: {red: {limit: 1 s, max: 10 packets}}}
queue.red.max
in bytes

{rate: 1 Mbit/s, queue: {red: {limit: 90 kB, weight: 0 %}}}
queue.red.weight
more than 0 %

{rate: 1 Mbit/s, queue: {drd: {min: 9 packets, max: 9 packets}}}
queue.drd.min
not below

{rate: 1 Mbit/s, queue: {drd: {min: 9 packets}}}
queue.drd.max
missing

{rate: 1 Mbit/s, queue: nistnet 10 kB}
queue.nistnet
not a unit of a number of packets

{rate: 1 Mbit/s, queue: nistnet 9 packets, delay: {constant: 1 ms, jitter: 1 ms}}
queue
must be constant

{rate: {step: []}, queue: codel}
rate.step
did you mean 'steps'?

{rate: {steps: [{at: 1 s, rate: 1 Mbit/s}]}, queue: codel}
rate.steps.0.at
must be at 0 s

{rate: {trace: no-such}, queue: codel}
rate.trace.file
cannot be read

{rate: {trace: lte-drivng}, queue: codel}
rate.trace.file
did you mean 'lte-driving'?

{rate: {trace: lte-walking}, queue: codel, shaper: cbq}
shaper
takes no shaper

{rate: {trace: lte-driving}, queue: droptail 1 BDP, delay: 1 ms}
queue
not one size

{rate: 1 Mbit/s, queue: droptail 20 packets, shaper: tokenbucket 3 kB}
shaper
did you mean 'token_bucket 3 kB'?

{rate: 1 Mbit/s, queue: droptail 20 packets, shaper: token_bucket 1000 B}
shaper.token_bucket.burst
1514 B

{rate: 1 Mbit/s, queue: droptail 20 packets, shaper: {cbq: {device_rate: 1 Mbit/s}}}
shaper.cbq.device_rate
not above

{shaper: cbq}
shaper
needs the rate

{rate: 1 Mbit/s, queue: droptail 20 packets, shaper: sleeping 2 s}
shaper.sleeping.tick
at most 1 s

{rate: {square: {first: 1 Mbit/s, second: 0 bit/s, period: 1 s}}, queue: droptail 9 kB, shaper: sleeping}
shaper
sleep for ever

{loss: {gilbert: {good: 10 packets}}}
loss.gilbert.bad
missing

{loss: {gilbert: {good: 0.5 packets, bad: 2 packets}}}
loss.gilbert.good
shorter than one packet

{loss: {gilbert_elliott: {good: 9 packets, bad: 2 packets, loss_good: 9 %, loss_bad: 1 %}}}
loss.gilbert_elliott.loss_good
more than the bad one's

{loss: {list: [3, 3]}}
loss.list.1
must ascend

{loss: {list: []}}
loss.list
at least 1

{loss: {bernoulli: 1 %, switch: [{at: 2 s, to: off}]}}
loss.switch.0.at
trial ends at 2 s

{delay: {jitter: 5 ms}}
delay
says no delay

{delay: {constant: 5 ms, steps: [{at: 0 s, delay: 1 ms}]}}
delay.steps
exclude each other

{delay: {constant: 5 ms, jitter: {nrmal: 5 ms}}}
delay.jitter.nrmal
did you mean 'normal'?

{delay: {constant: 5 ms, jitter: 0 ms}}
delay.jitter.uniform
makes no sense

{delay: {constant: 5 ms, jitter: {table: [2 ms, 1 ms]}}}
delay.jitter.table.1
never descend

{delay: {constant: 5 ms, jitter: {pareto: {scale: 1 ms, shape: 1}}}}
delay.jitter.pareto.shape
than 1

{delay: {constant: 5 ms, flows: {bb: 1 ms}}}
delay.flows.bb
there is no flow 'bb'

{delay: {steps: [{at: 0 s, delay: 1 ms}, {at: 9 s, delay: 2 ms}]}}
delay.steps.1.at
never comes

{block: upd}
block.protocol
did you mean 'udp'?

{block: {protocol: tcp, ports: [554, 65536]}}
block.ports
'65536' is no port; expected a whole number from 1 to 65535

{block: {protocol: tcp, ports: rtsp}}
block.ports
'rtsp' is no port

{block: {protocol: udp, ports: 0}}
block.ports
'0' is no port

{block: {protocol: tcp, ports: [80, 80]}}
block.ports
port 80 is named twice

{block: {protocol: tcp, ports: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]}}
block.ports
17 ports; one firewall names at most 16

{block: {protocol: icmp, ports: [7]}}
block.ports
ICMP has no ports

{corrupt: 1}
corrupt.probability
has no unit

{duplicate: 200 %}
duplicate.probability
more than everything

{mtu: 60 B}
mtu.size
the least that IPv4 allows

{mtu: 70 kB}
mtu.size
the longest IPv4 packet

{reorder: 1 %}
reorder.extra
missing

{reorder: {extra: 5 ms}}
reorder.probability
either

{reorder: {every: 1.5 packets, extra: 5 ms}}
reorder.every
whole number

{stages: [{name: a, queue: codel}]}
stages.0.queue
needs the rate

{stages: [{name: a, mtuu: 900 B}]}
stages.0.mtuu
did you mean 'mtu'?

{stages: [{name: a, loss: 1 %}, {name: a, loss: 1 %}]}
stages.1.name
unique

{loss: 1 %, stages: [{name: a, loss: 1 %}]}
loss
exclude each other
"""

#: (direction, key below path.down, words of the message)
SLIPS: list[tuple[str, ...]] = [tuple(block.splitlines()) for block in _TABLE.strip().split("\n\n")]


@pytest.mark.parametrize(("down", "key", "words"), SLIPS, ids=[slip[0] for slip in SLIPS])
def test_a_slip_is_placed_and_answered(down: str, key: str, words: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        from_text(SCENARIO.replace("DOWN", down), file="bad.yaml")
    error = caught.value
    first = error.errors[0] if isinstance(error, ScenarioErrors) else error
    assert (first.file, first.line, first.key) == ("bad.yaml", 4, f"path.down.{key}")
    assert words in str(first)


def test_a_trace_beside_the_scenario(tmp_path: Path) -> None:
    from streamgauge.scenario import Scenario, load_file, lower

    text = SCENARIO.replace("DOWN", "{rate: {csv: line.csv}, queue: droptail 20 packets}")
    (tmp_path / "my.yaml").write_text(text)
    with pytest.raises(ScenarioError, match=r"path\.down\.rate\.trace\.file: .*cannot be read"):
        load_file(tmp_path / "my.yaml")
    (tmp_path / "line.csv").write_text("time_s,rate_kbps\n0,500\n1,fast\n")
    with pytest.raises(ScenarioError, match="line 3"):
        load_file(tmp_path / "my.yaml")
    (tmp_path / "line.csv").write_text("time_s,rate_kbps\n0,500\n0.5,800\n1,500\n")
    (scenario,) = load_file(tmp_path / "my.yaml")
    rate = lower(scenario, "sim", 1)["path"]["down"][0]["kind"]["bottleneck"]["rate"]
    assert rate["steps"][:2] == [[0, 500_000], [500_000_000, 800_000]]
    printed = scenario.normalised()
    assert printed["path"]["down"]["rate"]["trace"]["digest"].startswith("sha256:")
    assert Scenario.model_validate(printed) == scenario
    (tmp_path / "line.csv").write_text("time_s,rate_kbps\n0,600\n1,700\n")
    with pytest.raises(ScenarioError, match="changed since"):
        lower(scenario, "sim", 1)
    with pytest.raises(ValueError, match="not the one that was used"):
        Scenario.model_validate(printed)


FLOWS = [
    ("traffic: cbr, ecn: on, parameters: {rate: 1 packets/s}", "flows.a.ecn", "among its parameters"),
    ("traffic: ping, ecn: on", "flows.a.ecn", "negotiates no ECN"),
    ("traffic: cbr, parameters: {rate: 1 packets/s, ecn: ect2}", "flows.a.parameters.ecn", "ect1"),
    ("traffic: bulk, ecn: perhaps", "flows.a.ecn", "expected one of off, classic, l4s"),
]


@pytest.mark.parametrize(("flow", "key", "words"), FLOWS)
def test_ecn_where_there_is_none(flow: str, key: str, words: str) -> None:
    lines = SCENARIO.replace("DOWN", "{}").splitlines()
    lines = [f"  a: {{role: subject, {flow}}}" if line.startswith("  a:") else line for line in lines]
    with pytest.raises(ScenarioError) as caught:
        from_text("\n".join(lines), file="bad.yaml")
    assert (caught.value.line, caught.value.key) == (7, key)
    assert words in str(caught.value)


def test_a_tcp_flow_may_ask_for_ecn_in_both_modes() -> None:
    text = SCENARIO.replace("DOWN", "{}").replace("traffic: bulk", "traffic: bulk, ecn: on")
    (scenario,) = from_text(text)
    assert scenario.supported_modes() == ["sim", "emu"]
