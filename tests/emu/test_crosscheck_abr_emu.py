"""The crosscheck of adaptive bit rate with a real player: one quick case, as root."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from driving import Person


@pytest.mark.long
def test_hlsjs_on_a_constant_rate_is_as_it_is_in_sim(tmp_path: Path) -> None:
    person = Person(way="root", home=tmp_path, uid=0)
    arguments = ("crosscheck", "abr", "--quick", "--case", "hlsjs/constant", "--json", "--out", "here")
    done = person.run(*arguments)
    data = json.loads(done.stdout)
    (case,) = data["cases"]
    if data["skipped"]:
        pytest.skip(data["skipped"][0]["why"])
    assert case["valid"]["sim"] == 6
    # A busy machine's trials are invalid, and then there is less to compare.
    assert case["valid"]["emu"] + len(case["invalid"]) >= 2
    if case["valid"]["emu"] < 2:
        return
    rows = {row["metric"]: row for row in data["rows"]}
    # One level up after the first segment, and then that of the link's rate.
    assert rows["level_changes"]["emu"] == 1 and rows["level_bps"]["verdict"] == "equivalent", rows
    assert rows["stall_time_s"]["emu"] == 0 and rows["buffer_s"]["verdict"] == "equivalent", rows
    rejected = {one["name"]: one["rejected"] for one in data["mutants"]}
    assert rejected["no-safety-factor"] or rejected["hlsjs-is-vlc"], rejected
