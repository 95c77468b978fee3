"""A small scenario that the tests bend."""

# Line numbers below matter: tests assert them.
BASE = """\
id: test/base
title: A download beside a probe
path:
  down: {rate: 1 Mbit/s, queue: droptail 100 packets, delay: 10 ms}
  up: {delay: 10 ms}
flows:
  ftp:
    role: subject
    traffic: bulk
    congestion_control: reno
    parameters: {receive_window: 16 KiB}
  probe:
    role: rival
    traffic: ping
    start: ftp.start + 1 s
    stop: 8 s
until: {time: 10 s}
"""
