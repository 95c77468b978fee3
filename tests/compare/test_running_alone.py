"""Which neighbours run alone: each path and company once, and others where they come at other times."""

from __future__ import annotations

from pathlib import Path

from streamgauge.compare.running import Trials, plan_of
from streamgauge.compare.subjects import AskedScenario, ComparedSubject
from streamgauge.scenario import from_text

TEXT = """
id: test/company
title: A stream beside a download
path: {down: {rate: 1 Mbit/s, queue: droptail 20 packets}}
flows:
  video: {role: subject, system: rtp, clip: carphone-300k}
  tcp: {role: rival, traffic: bulk, congestion_control: reno, start: 1 s}
until: {time: 4 s}
variants:
  plain: {}
  web: {flows.video.system: http}
  later: {flows.tcp.start: 2 s}
  wider: {path.down.rate: 2 Mbit/s}
"""


def test_neighbours_run_once_for_all_that_have_them(tmp_path: Path) -> None:
    asked = [AskedScenario(scenario=one, base=one) for one in from_text(TEXT)]
    subject = ComparedSubject(label="all", operand="all", asked=tuple(asked))
    how = Trials(out=tmp_path, modes={one.scenario.id: ["sim"] for one in asked})
    planned = plan_of([subject], how, 2)
    alone = [one.asked.scenario for one in planned if not one.subject]
    assert [one.id for one in alone] == [
        "test/company-plain-alone", "test/company-later-alone", "test/company-wider-alone",
    ]  # fmt: skip
    assert [str(one.flows["tcp"].start) for one in alone] == ["1 s", "2 s", "1 s"]
