"""What `verify` finds: an edit of anything that reports read, and what it cannot check is listed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small import PLAN, make
from streamgauge.errors import RecordError
from streamgauge.record import Record, prune, rewrite_trial
from streamgauge.record.seal import FILES, SEAL, check_verdict

Trial = dict[str, Any]


def _edit(directory: Path, change: Callable[[Trial], Any]) -> None:
    trial = json.loads((directory / "trial.json").read_text())
    change(trial)
    (directory / "trial.json").write_text(json.dumps(trial))


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """A small record with a file of metrics, whatever is in it."""
    whole = make(
        tmp_path / "record", measure=lambda folder: (folder / "metrics.parquet").write_bytes(b"numbers")
    )
    assert Record.open(whole).check().left_out == ()
    return whole


EDITS: dict[str, Callable[[Trial], Any]] = {
    "the duration": lambda trial: trial.update(duration_s=1e308),
    "the seed": lambda trial: trial.update(seed=7),
    "the mode": lambda trial: trial.update(mode="emu"),
    "a bound": lambda trial: trial["validity"]["bounds"].update(silent_flows=5),
    "a reason": lambda trial: trial["validity"].update(valid=False, why=["forged"]),
    "who a flow is": lambda trial: trial["flows"][0].update(role="rival"),
    "a count": lambda trial: trial["balance"][0].update(in_packets=1),
    "the plan": lambda trial: trial["plan"].update(duration=1),
    "what was set": lambda trial: trial.update(set=["path.down.rate=1 Mbit/s"]),
    "for whom it stands": lambda trial: trial.update(replaces=3),
    "a key more": lambda trial: trial.update(more=1),
    "a key less": lambda trial: trial.pop("host"),
    "the seal": lambda trial: trial.update({SEAL: "sha256:0"}),
    "no digests": lambda trial: trial.pop(FILES),
}


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_of_the_trial_is_found(what: str, measured: Path) -> None:
    _edit(measured, EDITS[what])
    with pytest.raises(RecordError, match=r"trial\.json: damaged: "):
        Record.open(measured).check()


@pytest.mark.parametrize("file", ["metrics.parquet", "provenance.json"])
def test_an_edit_of_a_file_is_found(file: str, measured: Path) -> None:
    data = (measured / file).read_bytes()
    for spoilt in (b"", data + b" ", data[::-1]):
        (measured / file).write_bytes(spoilt)
        with pytest.raises(RecordError, match=f"{file}: damaged: its digest is"):
            Record.open(measured).check()
    (measured / file).unlink()
    with pytest.raises(RecordError, match=f"{file}: damaged: missing"):
        Record.open(measured).check()


def test_metrics_of_another_trial_are_found(measured: Path, tmp_path: Path) -> None:
    other = make(
        tmp_path / "other",
        PLAN | {"seed": 2},
        measure=lambda folder: (folder / "metrics.parquet").write_bytes(b"other numbers"),
    )
    shutil.copy(other / "metrics.parquet", measured / "metrics.parquet")
    with pytest.raises(RecordError, match=r"metrics\.parquet: damaged"):
        Record.open(measured).check()


def test_the_form_of_the_text_is_no_edit(measured: Path) -> None:
    trial = json.loads((measured / "trial.json").read_text())
    text = json.dumps(dict(reversed(trial.items())), indent=3, ensure_ascii=True)
    (measured / "trial.json").write_text(text)
    assert Record.open(measured).check().left_out == ()


def test_a_record_without_a_seal_lists_what_was_not_checked(measured: Path) -> None:
    _edit(measured, lambda trial: (trial.pop(SEAL), trial.pop(FILES)))
    (left_out,) = Record.open(measured).check().left_out
    for name in ("verdict", "duration", "counts", "metrics.parquet", "provenance.json"):
        assert name in left_out


@pytest.mark.parametrize("name", ["metrics.parquet", "metrics.json"])
def test_a_file_without_a_digest_is_listed(name: str, tmp_path: Path) -> None:
    record = make(tmp_path / "record")
    (record / name).write_bytes(b"put there later")
    (left_out,) = Record.open(record).check().left_out
    assert left_out.startswith(f"{name} (")


def test_what_was_not_kept_is_listed(measured: Path) -> None:
    prune(measured, "events")
    assert Record.open(measured).check().left_out == ("packets.parquet (not kept)",)
    prune(measured, "metrics")
    assert Record.open(measured).check().left_out == (
        "packets.parquet (not kept)",
        "events.parquet (not kept)",
    )


def test_a_trial_that_is_written_again_is_sealed_unless_it_was_edited(measured: Path) -> None:
    trial = Record.open(measured).trial
    (measured / "metrics.parquet").write_bytes(b"measured anew")
    rewrite_trial(measured, trial)
    with pytest.raises(RecordError, match=r"metrics\.parquet: damaged"):
        Record.open(measured).check()
    rewrite_trial(measured, Record.open(measured).trial, anew=("metrics.parquet",))
    assert Record.open(measured).check().left_out == ()
    _edit(measured, EDITS["the duration"])
    rewrite_trial(measured, Record.open(measured).trial, anew=("metrics.parquet",))
    with pytest.raises(RecordError, match=r"trial\.json: damaged"):
        Record.open(measured).check()


def _verdict(bound: Any, value: Any, *, why: bool, valid: bool | None = None, name: str = "x") -> Trial:
    reasons = ["a reason"] if why else []
    return {
        "valid": not why if valid is None else valid,
        "why": reasons,
        "bounds": {name: bound},
        "measured": {name: value},
    }


SOUND = {
    "within": _verdict(0.1, 0.05, why=False),
    "at the bound": _verdict(0, 0, why=False),
    "outside": _verdict(0.1, 0.2, why=True),
    "within two bounds": _verdict([-1, 1], 0.5, why=False),
    "outside of two": _verdict([-1, 1], -2, why=True),
    "nothing went wrong": _verdict([], [], why=False),
    "something did": _verdict([], ["a reason"], why=True),
    "an expected value is no bound": _verdict(100, 120, why=False, name="cbr_packets.web"),
    "not measured": _verdict(100, None, why=False),
    "no bounds": {"valid": False, "why": ["x"], "bounds": {}, "measured": {}},
}
FORGED = {
    "valid beside a value outside": _verdict(0.1, 0.2, why=False),
    "valid beside faults": _verdict([], ["a fault"], why=False),
    "valid beside a value outside of two": _verdict([-1, 1], 2, why=False),
    "invalid though all is within": _verdict(0.1, 0.05, why=True),
    "valid with a reason": _verdict([], ["a reason"], why=True, valid=True),
    "invalid without one": _verdict([], [], why=False, valid=False),
    "no verdict": {"valid": 1, "why": []},
    "reasons that are none": {"valid": True, "why": None},
}


@pytest.mark.parametrize("what", SOUND)
def test_a_verdict_that_follows_from_what_was_measured(what: str) -> None:
    check_verdict(Path("trial.json"), SOUND[what])


@pytest.mark.parametrize("what", FORGED)
def test_a_verdict_that_does_not(what: str) -> None:
    with pytest.raises(RecordError, match=r"trial\.json: damaged: its v"):
        check_verdict(Path("trial.json"), FORGED[what])
    with pytest.raises(RecordError):
        check_verdict(Path("trial.json"), [])


def test_an_old_record_with_a_forged_verdict_is_found(measured: Path) -> None:
    def forge(trial: Trial) -> None:
        trial.pop(SEAL)
        trial["validity"].update(valid=False, why=[], bounds={}, measured={})

    _edit(measured, forge)
    with pytest.raises(RecordError, match="its verdict is invalid with 0 reasons"):
        Record.open(measured).check()
