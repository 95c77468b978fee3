"""A matrix for tests: three kinds of scenario, the first undisturbed, three systems, one without viewer."""

from __future__ import annotations

from pathlib import Path

SMALL = """\
id: small/
title: A short film
question: Which is best?
path:
  down: {rate: 1 Mbit/s, queue: droptail 100 ms, delay: 10 ms}
  up: {delay: 10 ms}
flows:
  video: &video {role: subject, system: rtp, clip: {source: carphone, rate: 300 kbit/s}}
randomize: {video.start: uniform 0 s to 200 ms}
until: {time: 12 s}
measure: {window: [0 s, 12 s], sample: 1 s}
repetitions: {sim: 6}
variants:
  - quiet: {label: nobody beside it}
    tcp-one:
      label: beside a download
      question: Which is best beside a download?
      flows.tcp: {role: rival, traffic: bulk, congestion_control: reno, start: 1 s}
    tcp-self:
      label: beside itself
      flows.video2: {<<: *video, role: rival, start: 1 s}
  - plain: {label: Plain RTP}
    web: {label: A web server, flows.video*.system: http}
    file: {label: A download, flows.video*.traffic: bulk, flows.video*.congestion_control: reno}
"""
OWN = """\
id: my/mine
title: A system of my own
path: {down: {delay: 1 ms}}
flows:
  film: {role: subject, system: rtp, parameters: {transport: tcp}, clip: carphone-300k, start: 3 s}
  echo: {role: rival, traffic: ping}
until: {time: 5 s}
"""


def write(folder: Path, text: str = SMALL, name: str = "small.yaml") -> Path:
    """The file, written."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
