"""The crosscheck of systems on real sockets: one quick condition, as root."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from driving import Person


@pytest.mark.long
def test_rtp_on_real_sockets_is_as_it_is_in_sim(tmp_path: Path) -> None:
    person = Person(way="root", home=tmp_path, uid=0)
    arguments = ("crosscheck", "systems", "--quick", "--case", "rtp/02", "--json", "--out", "here")
    done = person.run(*arguments)
    data = json.loads(done.stdout)
    (case,) = data["cases"]
    assert data["skipped"] == [] and data["reference"] == "emu"
    assert case["valid"]["sim"] == 6
    # A busy machine's trials are invalid, and then there is less to compare.
    assert case["valid"]["emu"] + len(case["invalid"]) >= 2
    if case["valid"]["emu"] < 2:
        return
    rows = {row["metric"]: row for row in data["rows"]}
    assert rows["packet_bytes"]["verdict"] == "equivalent" and rows["startup_s"]["verdict"] == "equivalent", (
        rows
    )
    assert rows["sent_bps"]["emu"] > 200_000
    rejected = {one["name"]: one["rejected"] for one in data["mutants"]}
    assert rejected["rtp: small-packets"] and rejected["rtp: late-start"], rejected
