"""A trial.json that is no trial's: whichever command reads it refuses it by name."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from small import make
from streamgauge.campaign.loaded import load_trial
from streamgauge.errors import RecordError
from streamgauge.record import Record

TEXTS = {
    "empty": "",
    "not JSON": "{",
    "a list": "[]",
    "a number": "3",
    "nested without end": "[" * 100_000,
    "a number of very many digits": '{"seed": ' + "9" * 10_000 + "}",
}
WRONG: dict[str, Any] = {
    "scenario": 3,
    "plan": [],
    "validity": [],
    "mode": {},
    "seed": "1",
    "replaces": "x",
    "duration_s": "long",
    "set": {},
    "kept": None,
    "stages": [1],
    "flows": {"a": 1},
    "balance": "x",
    "systems": [],
    "schema": 3,
}


def _refused(directory: Path) -> None:
    for read in (Record.open, load_trial):
        with pytest.raises(RecordError) as caught:
            read(directory)
        text = str(caught.value)
        assert text.startswith(f"{directory / 'trial.json'}: ") and "\n" not in text
        assert len(text) < len(str(directory)) + 260


@pytest.mark.parametrize("what", TEXTS)
def test_a_text_that_is_no_object(what: str, spoilt: Path) -> None:
    (spoilt / "trial.json").write_text(TEXTS[what])
    _refused(spoilt)


@pytest.mark.parametrize("key", WRONG)
def test_a_value_of_another_type(key: str, spoilt: Path) -> None:
    trial = json.loads((spoilt / "trial.json").read_text())
    (spoilt / "trial.json").write_text(json.dumps(trial | {key: WRONG[key]}))
    _refused(spoilt)


def test_reasons_that_are_no_list(spoilt: Path) -> None:
    trial = json.loads((spoilt / "trial.json").read_text())
    trial["validity"]["why"] = "because"
    (spoilt / "trial.json").write_text(json.dumps(trial))
    _refused(spoilt)


@pytest.mark.parametrize("key", ["scenario", "mode", "seed"])
def test_a_key_that_is_missing(key: str, spoilt: Path) -> None:
    trial = json.loads((spoilt / "trial.json").read_text())
    trial.pop(key)
    (spoilt / "trial.json").write_text(json.dumps(trial))
    with pytest.raises(RecordError, match=f"trial.json: damaged: it has no '{key}'"):
        load_trial(spoilt)


def test_bytes_that_are_no_text_and_files_that_are_none(spoilt: Path) -> None:
    file = spoilt / "trial.json"
    file.write_bytes(b"\xff\xfe{}")
    _refused(spoilt)
    file.unlink()
    os.mkfifo(file)
    _refused(spoilt)
    file.unlink()
    file.symlink_to("/dev/zero")
    _refused(spoilt)
    file.unlink()
    file.mkdir()
    _refused(spoilt)


def test_a_provenance_that_is_none_makes_the_trial_invalid(tmp_path: Path) -> None:
    record = make(tmp_path / "record")
    (record / "provenance.json").write_text("[]")
    trial = load_trial(record)
    assert not trial.valid and "provenance.json: damaged" in trial.why[-1]
