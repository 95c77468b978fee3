"""A scenario that takes some milliseconds in sim."""

SHORT = """\
id: test/short
title: A download for three seconds
path:
  down: {rate: 1 Mbit/s, queue: droptail 20 packets, delay: 5 ms}
  up: {delay: 5 ms}
flows:
  ftp: {role: subject, traffic: bulk, congestion_control: reno, parameters: {receive_window: 16 KiB}}
  cross: {role: rival, traffic: cbr, from: router, parameters: {rate: 40 packets/s}, start: 1 s}
until: {time: 3 s}
repetitions: {sim: 4}
checks:
  fills:
    title: The link is full
    that: throughput.ftp >= 500 kbit/s
    origin: predicted
    breaks: {path.down.rate: 600 kbit/s}
"""
