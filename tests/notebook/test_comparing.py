"""`Runs.compare` is `streamgauge.compare` of the trials that are there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import streamgauge as sg
from streamgauge.compare import COMPARED, compare
from streamgauge.compare.trials import cases_of
from test_charts import rows_of
from test_showing import sound
from two_scenarios import short


def test_what_is_under_test_tells_subjects_apart(kept: sg.Runs) -> None:
    """The two scenarios differ in the congestion control of the flow under test alone."""
    found = kept.compare()
    assert found.subjects == ("short", "two") and found.baseline == "short"
    by_hand = compare([*cases_of("short", kept.only("*/short")), *cases_of("two", kept.only("*/two"))])
    assert found.rows == by_hand.rows and len(found.rows) > 4
    assert found.answer and not by_hand.answer
    other = kept.compare(baseline="two", metrics=["goodput", "loss"])
    assert {row.metric for row in other.rows} == {"goodput", "loss"}
    assert other.row("two", other.scenarios[0], "sim", "goodput").verdict is None  # type: ignore[union-attr]


def test_a_row_of_the_frame_is_one_of_the_comparison(kept: sg.Runs) -> None:
    found = kept.compare()
    frame = found.frame()
    assert len(frame) == len(found.rows)
    for row, mine in zip(found.rows, frame.iter_rows(named=True), strict=True):
        assert (mine["subject"], mine["metric"], mine["value"], mine["verdict"]) == (
            row.subject, row.metric, row.value, row.verdict,
        )  # fmt: skip
        assert (mine["low"], mine["high"]) == (row.interval or (None, None))
        assert (mine["difference_low"], mine["difference_high"]) == (row.difference_interval or (None, None))
    goodput = (
        kept.metrics("goodput", flow="ftp").group_by("scenario", maintain_order=True).agg(pl.mean("value"))
    )
    values = frame.filter(metric="goodput")["value"].to_list()
    assert values == pytest.approx(goodput["value"].to_list())
    assert dict(frame.select("metric", "unit").iter_rows())["goodput"] == "bit/s"


def test_the_answer_is_on_top_of_a_table_of_all_metrics(kept: sg.Runs) -> None:
    found = kept.compare()
    page = sound(found._repr_html_())
    assert page.text.startswith(found.answer[0])
    assert repr(found).startswith(found.answer[0])
    metrics = [row[0] for row in page.rows if row[0] and row[0] != "metric"]
    assert metrics == [COMPARED[name].short for name in dict.fromkeys(row.metric for row in found.rows)]
    verdicts = [row for row in page.rows if row[1] == "two"]
    assert all(row[5] for row in verdicts) and len(verdicts) == len(metrics)


def test_its_figure_is_a_panel_a_metric(kept: sg.Runs) -> None:
    found = kept.compare()
    rows = rows_of(found.plot())
    assert set(rows["subject"]) == {"short", "two"}
    assert rows["metric"].n_unique() == len({row.metric for row in found.rows if row.value is not None})
    assert set(rows.filter(subject="short")["verdict"]) == {"baseline"}
    assert set(rows.filter(subject="two")["verdict"]) <= {"better", "worse", "equal", "undecided"}
    drawn = rows_of(kept.plot.compare("goodput", baseline="two"))
    assert set(drawn["metric"]) == {"goodput, kbit/s"}
    row = found.row("two", found.scenarios[0], "sim", "goodput")
    assert row is not None and row.value is not None
    assert drawn.filter(subject="two")["mean"].to_list() == pytest.approx([row.value / 1e3])
    shown = found.plot("goodput")._repr_mimebundle_()
    assert shown["image/svg+xml"].startswith("<svg")


def test_values_that_were_set_are_subjects(tmp_path: Path) -> None:
    for rate in ("1500 kbit/s", "3 Mbit/s"):
        for cross in ("20 packets/s", "40 packets/s"):
            changes = {"path.down.rate": rate, "flows.cross.parameters.rate": cross}
            sg.run(short(), mode="sim", repeat=3, set=changes, out=tmp_path, keep="metrics", progress=False)
    runs = sg.load(tmp_path)
    found = runs.compare(by="path.down.rate", metrics=["goodput"])
    assert found.subjects == ("1500 kbit/s", "3 Mbit/s")
    assert len(found.scenarios) == 2, "under each of the neighbours' rates"
    assert {row.verdict for row in found.rows if row.subject == "3 Mbit/s"} == {"better"}
    with pytest.raises(sg.StreamGaugeError, match=r"by 'path\.down\.rat' .* did you mean 'path\.down\.rate'"):
        runs.compare(by="path.down.rat")
    one = runs.only(set={"flows.cross.parameters.rate": "20 packets/s"})
    with pytest.raises(
        sg.StreamGaugeError, match=r"nothing to compare: by system or mode .*path\.down\.rate"
    ):
        one.compare()
    assert len(one.compare(by="scenario").subjects) == 2


def test_a_single_address_that_was_set_needs_no_naming(tmp_path: Path) -> None:
    for rate in ("1500 kbit/s", "3 Mbit/s"):
        sg.run(short(), mode="sim", repeat=3, set={"path.down.rate": rate}, out=tmp_path, progress=False)
    assert sg.load(tmp_path).compare().subjects == ("1500 kbit/s", "3 Mbit/s")


def test_modes_are_subjects(kept: sg.Runs) -> None:
    as_if = [replace(trial, header={**trial.header, "mode": "emu"}) for trial in kept]
    found = sg.Runs([*kept, *as_if], where=kept.where).compare(by="mode")
    assert found.subjects == ("sim", "emu") and len(found.scenarios) == 2
    assert all(row.difference == 0 and row.paired for row in found.rows if row.subject == "emu")


def test_folders_are_subjects(kept: sg.Runs, tmp_path: Path) -> None:
    changed = short("flows.ftp.congestion_control=vegas")
    after = sg.run(changed, mode="sim", out=tmp_path, progress=False)
    found = kept.only("test/short").compare(after, metrics=["goodput"])
    assert found.subjects == (str(kept.where), str(tmp_path))
    with pytest.raises(sg.StreamGaugeError, match="is given twice"):
        kept.compare(kept)
    with pytest.raises(sg.StreamGaugeError, match="leave it out"):
        kept.compare(after, by="mode")


def test_slips_are_told(kept: sg.Runs) -> None:
    with pytest.raises(sg.StreamGaugeError, match="no subject 'tow'; did you mean 'two'"):
        kept.compare(baseline="tow")
    with pytest.raises(sg.StreamGaugeError, match="nothing is compared by 'godput'; did you mean 'goodput'"):
        kept.compare(metrics=["godput"])
    with pytest.raises(sg.StreamGaugeError, match="nothing is compared by 'godput'"):
        kept.compare().plot("godput")
    with pytest.raises(sg.StreamGaugeError, match="nothing to draw: live_latency is known of no subject"):
        kept.compare().plot("live_latency")
    with pytest.raises(sg.StreamGaugeError, match="one of system, scenario, mode"):
        kept.only("test/two").compare()
