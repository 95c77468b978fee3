"""A record replays through the path of its plan, and one that is not that path's does not."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from small import PLAN, make
from streamgauge import _native
from streamgauge.errors import RecordError
from streamgauge.record import Record, prune

RECORDS = Path(__file__).parent.parent / "report" / "records"
OLD = RECORDS / "1-model-4"
KEPT = [*(RECORDS / name for name in "23"), *(Path(__file__).parent / "data" / name for name in ("v2", "v3"))]


def test_a_record_replays(whole: Path) -> None:
    record = Record.open(whole)
    found = record.replay()
    assert (found["different"], found["first"]) == (0, None)
    assert found["rows"] == record.packets.height
    assert found["packets"] == record.packets["pkt"].n_unique()


@pytest.mark.parametrize("folder", KEPT, ids=lambda folder: folder.name)
def test_a_record_that_an_earlier_version_kept_replays(folder: Path) -> None:
    found = Record.open(folder).replay()
    assert (found["different"], found["first"]) == (0, None)
    assert found["rows"] > 500


def test_another_discipline_is_told_by_its_drops(tmp_path: Path) -> None:
    plan = copy.deepcopy(PLAN)
    codel = {"codel": {"limit": {"packets": 100}, "target": 1_000_000, "interval": 20_000_000}}
    plan["path"]["down"][0]["kind"]["bottleneck"]["queue"] = codel
    record = Record.open(make(tmp_path / "codel", plan))
    dropped = record.packets.filter(fate="dropped")
    assert set(dropped["cause"]) == {"aqm"}
    assert record.replay()["different"] == 0
    codel["codel"]["interval"] = 60_000_000
    found = json.loads(_native.replay(json.dumps(plan), record.directory))
    assert found["different"] > 0
    assert found["first"].startswith("packet ")


def test_what_cannot_be_replayed_says_why(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="packets/1"):
        Record.open(OLD).replay()
    pruned = make(tmp_path / "pruned")
    prune(pruned, "events")
    with pytest.raises(RecordError, match="--keep packets"):
        Record.open(pruned).replay()
