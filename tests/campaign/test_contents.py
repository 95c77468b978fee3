"""Contents of a campaign: stored once, named by plans, found by whoever reads a record."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from streamgauge import _native
from streamgauge.campaign import run
from streamgauge.campaign import trial as trial_module
from streamgauge.errors import MediaError, RecordError, ScenarioError
from streamgauge.media import Content, contents_of, store_at, with_frames
from streamgauge.metrics import TrialMetrics, compute
from streamgauge.record import Record
from streamgauge.scenario import Scenario, from_text, lower

TEXT = """\
id: test/contents
title: Three flows that play two clips
path: {down: {rate: 900 kbit/s, queue: droptail 100 ms}}
flows:
  one: {role: subject, system: rtp, clip: carphone-235k}
  two: {role: rival, system: rtp, clip: carphone-235k}
  three: {role: rival, system: darwin, clip: bikes-300k}
until: {time: 4 s}
repetitions: {sim: 2}
"""


def scenario() -> Scenario:
    (made,) = from_text(TEXT)
    return made


def played(out: Path) -> list[Path]:
    """The trials of a run into `out`."""
    done = run([scenario()], {"test/contents": ["sim"]}, out)
    return [outcome.job.directory for outcome in done.outcomes]


def clips(trial: dict[str, Any]) -> dict[str, Any]:
    return {flow["name"]: next(iter(flow["app"].values()))["clip"] for flow in trial["plan"]["flows"]}


def measured(directory: Path) -> Any:
    metrics: TrialMetrics = compute(Record.open(directory), scenario())
    return {name: metrics.flow_json(name) for name in metrics.flows}


def test_each_content_is_stored_once_and_no_plan_has_its_frames(tmp_path: Path) -> None:
    first, second = played(tmp_path / "out")
    files = sorted((tmp_path / "out/content").iterdir())
    assert len(files) == 2
    assert sorted(Content.load(file).digest for file in files) == [file.stem for file in files]
    named = clips(Record.open(first).trial)
    assert named["one"]["content"] == named["two"]["content"]
    assert "frame_bytes" not in (first / "trial.json").read_text()
    assert {clip["content"]["digest"] for clip in named.values()} == {file.stem for file in files}
    assert clips(Record.open(second).trial)["one"]["content"] == named["one"]["content"]


def test_a_record_is_the_same_whether_its_plan_names_contents_or_has_the_frames(tmp_path: Path) -> None:
    first, _ = played(tmp_path / "out")
    (tmp_path / "alone").mkdir()
    whole = lower(scenario(), "sim", 1)
    summary = json.loads(_native.simulate(json.dumps(whole), tmp_path / "alone"))
    trial = Record.open(first).trial
    assert summary["packets_digest"] == trial["packets_digest"]
    assert summary["events_digest"] == trial["events_digest"]
    # What reads frames reads the same of both, and of records from before.
    for new, old in zip(trial["plan"]["flows"], whole["flows"], strict=True):
        assert with_frames(new["app"], first) == old["app"] == with_frames(old["app"], tmp_path)
    before = measured(first)
    (first / "trial.json").write_text(json.dumps(trial | {"plan": whole}))
    shutil.rmtree(tmp_path / "out/content")
    assert measured(first) == before


def test_a_campaign_can_be_moved_and_a_trial_taken_out_with_its_contents(tmp_path: Path) -> None:
    first, _ = played(tmp_path / "out")
    before = measured(first)
    shutil.move(tmp_path / "out", tmp_path / "elsewhere")
    there = tmp_path / "elsewhere" / first.relative_to(tmp_path / "out")
    assert measured(there) == before
    alone = shutil.copytree(there, tmp_path / "alone")
    record = Record.open(alone)
    assert record.verify() == record.trial["digest"] and record.replay()["different"] == 0
    with pytest.raises(MediaError) as caught:
        measured(alone)
    digest = clips(record.trial)["one"]["content"]["digest"]
    assert f"plays content {digest}, which is not here. Copy content/{digest}.json" in str(caught.value)
    shutil.copytree(tmp_path / "elsewhere/content", alone / "content")
    assert measured(alone) == before


def test_a_content_that_was_changed_is_told_and_mended_by_the_next_run(tmp_path: Path) -> None:
    first, _ = played(tmp_path / "out")
    digest = clips(Record.open(first).trial)["one"]["content"]["digest"]
    file = tmp_path / f"out/content/{digest}.json"
    data = json.loads(file.read_text())
    data["tracks"][0]["encodings"][0]["frames"]["frame_bytes"][0] += 1
    file.write_text(json.dumps(data))
    store_at.cache_clear()
    with pytest.raises(MediaError, match=f"{digest}.json: it is another content, of digest"):
        measured(first)
    store_at.cache_clear()
    shutil.rmtree(first)
    played(tmp_path / "out")
    assert Content.load(file).digest == digest and measured(first)


def test_a_trial_that_fails_leaves_no_content_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        assert len(list((tmp_path / "out/content").iterdir())) == 2
        raise RecordError("nothing goes")

    monkeypatch.setattr(trial_module, "finish_trial", fail)
    with pytest.raises(RecordError, match="nothing goes"):
        run([scenario()], {"test/contents": ["sim"]}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_plan_whose_content_nobody_has_is_one_error(tmp_path: Path) -> None:
    plan = lower(scenario(), "sim", 1, contents=store_at(tmp_path))
    unknown = "0" * 32
    plan["flows"][1]["app"]["rtp"]["clip"]["content"]["digest"] = unknown
    with pytest.raises(
        ScenarioError, match=rf"flows.two.app.rtp.clip.content: no content {unknown} is at hand"
    ):
        _native.simulate(json.dumps(plan), tmp_path, store_at(tmp_path).loaded)
    assert [one.name for one in tmp_path.iterdir()] == ["content"]
    with pytest.raises(MediaError, match=f"its plan plays content {unknown}, which is not here"):
        contents_of(plan, tmp_path)
    plan["flows"][1]["app"]["rtp"]["clip"]["content"]["digest"] = "../../passwords"
    with pytest.raises(MediaError, match="is no digest of a content; the plan is damaged"):
        contents_of(plan, tmp_path)


def test_what_is_handed_to_sim_must_be_content() -> None:
    with pytest.raises(MediaError, match=r"content abc: its schema is \"streamgauge.content/9\""):
        _native.Contents().add(
            "abc", '{"schema": "streamgauge.content/9", "name": "", "duration_ns": 1, "tracks": []}'
        )
