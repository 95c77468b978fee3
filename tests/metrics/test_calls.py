"""Loss after repair and discards of a call, held against its own events."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from streamgauge.campaign.plan import jobs_for
from streamgauge.campaign.work import perform, tasks_of
from streamgauge.report import load as load_trials
from streamgauge.scenario import load


@pytest.mark.parametrize(("rate", "lossy"), [("300 kbit/s", True), ("10 Mbit/s", False)])
def test_what_repair_and_the_jitter_buffer_leave(tmp_path: Path, rate: str, lossy: bool) -> None:
    settings = [
        "until.time=20 s", "measure.window=[0 s, 20 s]", f"path.down.rate={rate}",
        "path.down.queue=droptail 10 kB", "flows.video.parameters.controller=fixed",
        "flows.video.parameters.start_rate=600 kbit/s",
    ]  # fmt: skip
    (scenario,) = load("today/call-no", settings=settings, mutants=False)
    (job,) = jobs_for(scenario, "sim", tmp_path, first_seed=1, repeat=1)
    perform(tasks_of("packets", {})(job))
    (trial,) = load_trials(tmp_path)
    assert trial.metrics is not None
    flow, whole = trial.metrics.flows["video"], trial.metrics.grid.slice()
    (file,) = tmp_path.rglob("events.parquet")
    said = pl.read_parquet(file)
    for metric, event, of in (
        ("loss_after_repair", "unrepaired", "sent_packets"),
        ("discarded", "discarded", "received_packets"),
    ):
        packets = float(said.filter(pl.col("name").cast(pl.String) == event)["value"].sum() or 0)
        share = packets / float(flow.series[of].value(whole))
        assert float(flow.series[metric].value(whole)) == pytest.approx(share)
    assert (float(flow.series["loss_after_repair"].value(whole)) > 0.01) == lossy
