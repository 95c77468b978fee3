"""One direction for every form that each element of the link has, and what is said of it in words."""

_TABLE = """\
{rate: 1 Mbit/s, queue: droptail 10 kB}
drop-tail queue of 10 kB
drop-tail, 10 kB

{rate: 1 Mbit/s, queue: droptail 300 ms}
drop-tail queue of 300 ms
drop-tail, 37.5 kB

{rate: 1 Mbit/s, queue: nistnet 80 packets, delay: 45 ms}
NIST Net drop-tail
NIST Net drop-tail, 80 packets

{rate: 1 Mbit/s, queue: {drd: {min: 10 packets, max: 40 packets}}}
DRD queue
drops from 10 to 40 packets

{rate: 1 Mbit/s, queue: red 100 packets}
RED queue of 100 packets
thresholds 8 and 25 packets

{rate: 1 Mbit/s, queue: {red: {limit: 60 kB, min: 5 kB, max: 15 kB, ecn: true}}}
ECN
5000 and 15000 bytes, ECN

{rate: 1 Mbit/s, queue: codel}
CoDel queue of 1000 packets (target 5 ms, interval 100 ms)
CoDel, 1000 packets

{rate: 1 Mbit/s, queue: {codel: {limit: 20 kB, target: 3 ms, ecn: true}}}
target 3 ms
target 3 ms, interval 100 ms, ECN

{rate: 1 Mbit/s, queue: fq_codel 200 packets}
behind an FQ-CoDel queue of 200 packets
FQ-CoDel, 200 packets

{rate: 1 Mbit/s, queue: pie 300 ms}
PIE queue of 300 ms (target 15 ms)
PIE, 37.5 kB, target 15 ms

{rate: 1 Mbit/s, queue: dualpi2}
DualPI2 queue of 250 ms
DualPI2, 31.25 kB

{rate: 1 Mbit/s, queue: {dualpi2: {l4s_step: 1 ms, time_shift: 50 ms}}}
L4S marked from 1 ms
target 15 ms

{rate: {steps: [{at: 0 s, rate: 1 Mbit/s}, {at: 1 s, rate: 0.5 Mbit/s}]}, queue: codel 20 kB}
500 kbit/s from 1 s
500 kbit/s from 1 s

{rate: {square: {first: 1 Mbit/s, second: 2 Mbit/s, period: 1 s}}, queue: droptail 9 kB}
by turns
in turn, every 500 ms

{rate: 1 Mbit/s, queue: droptail 20 packets, shaper: serial}
1 Mbit/s behind
1 Mbit/s; drop-tail

{rate: 1 Mbit/s, queue: droptail 20 packets, shaper: token_bucket 1600 B}
by a token bucket of 1600 B
by a token bucket of 1600 B

{rate: 1 Mbit/s, queue: droptail 20 packets, shaper: cbq}
by CBQ on a device of 100 Mbit/s
by CBQ on a device of 100 Mbit/s

{rate: 1 Mbit/s, queue: droptail 20 packets, shaper: sleeping 4 ms late 1}
by a program whose sleeps end each 4 ms
by a program whose sleeps end each 4 ms

{rate: 1 Mbit/s, queue: droptail 20 packets, layer: ip}
drop-tail
drop-tail

{loss: 2 %}
loses 2 % at random
2 %

{loss: {gilbert: {good: 10 packets, bad: 2 packets}}}
Gilbert, means
Gilbert, runs of 10 and 2 packets

{loss: {gilbert_elliott: {good: 10 packets, bad: 2 packets, loss_good: 1 %, loss_bad: 50 %}}}
loses 1 % for 10 packets and 50 % for 2 packets
1 % for 10 packets and 50 % for 2 packets

{loss: {list: [0, 3, 5]}}
loses packets 0, 3, 5
3 packets by number

{loss: {bernoulli: 2 %, switch: [{at: 1 s, to: off}]}}
off at 1 s
2 %, off at 1 s

{delay: {constant: 5 ms, jitter: 2 ms}}
jitter of up to 2 ms either way
uniform jitter of 2 ms

{delay: {constant: 5 ms, jitter: normal 2 ms keep_order off}}
may reorder
normal jitter of 2 ms, may reorder

{delay: {constant: 5 ms, jitter: {pareto: 2 ms}}}
Pareto jitter of 2 ms, shape 3
pareto jitter of 2 ms

{delay: {constant: 5 ms, jitter: {gamma: {scale: 2 ms, shape: 1.5}}}}
gamma jitter of 2 ms
gamma jitter of 2 ms

{delay: {constant: 5 ms, jitter: {table: [0 ms, 1 ms, 9 ms], switch: [{at: 1 s, to: off}]}}}
jitter of 0 s to 9 ms as measured, off at 1 s
table jitter

{delay: {constant: 5 ms, flows: {b: 20 ms}}}
20 ms more for b
longer for 1 flows

{delay: {steps: [{at: 0 s, delay: 1 ms}, {at: 1 s, delay: 9 ms}], jitter: 1 ms}}
9 ms from 1 s
9 ms from 1 s

{block: udp}
lets no UDP through
no UDP

{block: {protocol: tcp, switch: [{at: 1 s, to: off}]}}
off at 1 s
no TCP, off at 1 s

{block: {protocol: tcp, ports: [554, 1755, 80]}}
lets no TCP from or to ports 554, 1755 and 80 through
no TCP of ports 554, 1755 and 80

{block: udp ports 53}
lets no UDP from or to port 53 through
no UDP of port 53

{corrupt: 1 %}
corrupts 1 % at random
1 %

{duplicate: 1 %}
duplicates 1 % at random
1 %

{mtu: 600 B}
an MTU of 600 B
600 B

{reorder: 1 % 5 ms}
holds 1 % back by 5 ms
1 % by 5 ms

{reorder: {every: 10 packets, extra: 5 ms}}
holds every 10th packet back by 5 ms
every 10th packet by 5 ms
"""

#: (a direction as YAML, part of what `show` says of it, part of what the report says of it)
FORMS: list[tuple[str, ...]] = [tuple(block.splitlines()) for block in _TABLE.strip().split("\n\n")]

SCENARIO = """\
id: test/link
title: One element
path:
  down: DOWN
  up: {delay: 5 ms}
flows:
  a: {role: subject, traffic: cbr, parameters: {rate: 150 packets/s, size: 1000 B}}
  b: {role: rival, traffic: bulk, congestion_control: reno}
until: {time: 2 s}
"""
