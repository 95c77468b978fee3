"""A scenario that takes some milliseconds in sim."""

SWEPT = """\
id: test/swept
title: A download beside constant-rate traffic
path:
  down: {rate: 1 Mbit/s, queue: droptail 20 packets, delay: 5 ms}
  up: {delay: 5 ms}
flows:
  ftp: {role: subject, traffic: bulk, congestion_control: reno, parameters: {receive_window: 16 KiB}}
  cross: {role: rival, traffic: cbr, from: router, parameters: {rate: 40 packets/s}}
until: {time: 2 s}
repetitions: {sim: 2}
checks:
  fills:
    that: throughput.ftp >= 300 kbit/s
    origin: predicted
    breaks: {path.down.rate: 400 kbit/s}
"""
