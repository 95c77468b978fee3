"""What a run read, and beside it what lies in its folder of the other mode."""

from __future__ import annotations

import json
from pathlib import Path

from streamgauge.campaign import CampaignResult, run
from streamgauge.campaign.layout import sweep
from streamgauge.paper.reading import read
from streamgauge.scenario import from_text

READS = """\
id: test/reads
title: A download beside one of the catalogue
path: {down: {rate: 1 Mbit/s, queue: droptail 20 packets}}
flows:
  ftp: {role: subject, traffic: bulk}
  solo: {role: rival, traffic: cbr, parameters: {rate: 1 packets/s}}
until: {time: 2 s}
checks:
  compares:
    title: It gets more than nothing
    that: throughput.ftp >= 0.001 * throughput.ftp of hessler/ftp-heavy
    origin: predicted
    breaks: {path.down.rate: 10 kbit/s}
"""


def test_what_was_set_in_some_of_the_scenarios_divides_no_entry_by_modes(tmp_path: Path) -> None:
    settings = ["flows.solo.start=1 s"]  # which the scenario that the check reads has not
    (own,) = from_text(READS, settings=settings)

    def simulate() -> CampaignResult:
        return run([own], {own.id: ["sim"]}, tmp_path, repeat=1, settings=settings, keep="metrics")

    simulate()
    # The record of another mode, as if this one's had been run there.
    for folder in list(sweep(tmp_path)):
        trial = json.loads((folder / "trial.json").read_text(encoding="utf-8"))
        (folder / "trial.json").write_text(json.dumps(trial | {"mode": "emu"}), encoding="utf-8")
        folder.parent.rename(folder.parent.with_name("mode=emu"))
    found = read([simulate()], "", "", wall_s=0.0)
    assert [entry.id for entry in found.entries] == ["test/reads", "hessler/ftp-heavy", "hessler/ftp-no"]
    assert found.modes == ["sim", "emu"]
    assert all(entry.group("sim") and entry.group("emu") for entry in found.entries)
