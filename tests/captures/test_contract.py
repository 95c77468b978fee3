"""The document of `analyze --json` is a contract: its keys are always there, null where nothing shows."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from made import bottleneck, write
from streamgauge.captures.analysis import AnalysisRequest, analyse

CAPTURE: Final = {"file", "packets", "bytes", "first_s", "last_s", "gaps"}
FLOW: Final = {
    "flow", "protocol", "from", "to", "packets", "bytes", "lost", "retransmitted", "duplicated", "reordered",
    "jitter_s", "rtt_p50_s", "delay_p50_s", "delay_p95_s", "coverage",
}  # fmt: skip
PATH: Final = {"offset_s", "skew_ppm", "rate_bps", "queue_bytes", "lost", "lost_by_capture"}
OF_TWO: Final = {"offset_s", "skew_ppm", "rate_bps", "queue_bytes"}


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("contract")
    server, client, _ = bottleneck()
    files = write(folder / "server.pcap", server), write(folder / "client.pcap", client)
    none = write(folder / "none.pcap", [])
    return {
        "one": analyse(AnalysisRequest(files[:1])),
        "two": analyse(AnalysisRequest(files)),
        "none": analyse(AnalysisRequest((none,))),
    }


@pytest.mark.parametrize("which", ["one", "two", "none"])
def test_every_key_is_there(documents: dict[str, dict[str, Any]], which: str) -> None:
    document = json.loads(json.dumps(documents[which]))
    assert document["schema"] == "streamgauge.analysis/1"
    assert len(document["captures"]) == (2 if which == "two" else 1)
    for capture in document["captures"]:
        assert capture.keys() >= CAPTURE
    assert (which == "none") == (document["flows"] == [])
    for flow in document["flows"]:
        assert flow.keys() >= FLOW
    assert document["path"].keys() >= PATH
    assert document["answer"] and all(isinstance(sentence, str) for sentence in document["answer"])


def test_null_stands_where_nothing_shows(documents: dict[str, dict[str, Any]]) -> None:
    assert all(documents["one"]["path"][key] is None for key in OF_TWO)
    assert all(documents["two"]["path"][key] is not None for key in OF_TWO)
    (flow,) = documents["one"]["flows"]
    assert flow["delay_p50_s"] is None and flow["delay_p95_s"] is None and flow["jitter_s"] is None
    assert flow["rtt_receiver_p50_s"] > 0 and flow["lost"] > 0
    (capture,) = documents["none"]["captures"]
    assert capture["packets"] == 0 and capture["first_s"] is None and capture["last_s"] is None


def test_figures_that_belong_together_agree(documents: dict[str, dict[str, Any]]) -> None:
    found = documents["two"]
    (flow,) = found["flows"]
    path, main = found["path"], found["path"]["main"]
    assert path["lost"] == main["lost"] + found["path"]["back"]["lost"] == flow["lost"]
    assert path["rate_bps"] == main["rate_bps"] and path["queue_bytes"] == main["queue_bytes"]
    assert flow["packets"] == main["delivered"] + main["lost"] + main["open"]
    assert 0 <= flow["delay_p50_s"] <= flow["delay_p95_s"] and flow["coverage"] == 1
