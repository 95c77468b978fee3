"""An entry of the catalogue, whole, for real."""

from __future__ import annotations

import json
import os

import pytest
from driving import Person


@pytest.mark.long
def test_an_ftp_download_alone_on_its_link(person: Person) -> None:
    if person.way == "user" and os.geteuid() == 0:
        pytest.skip("two minutes a trial: once is enough, in the way with the better clock")
    verdicts: list[dict[str, str]] = []
    for seed in ("1", "2", "3"):
        done = person.run(
            "run", "hessler/ftp-no", "--mode", "emu", "--seed", seed, "--out", str(person.out), "--json"
        )
        answer = json.loads(done.stdout)
        (trial,) = answer["trials"]
        print(f"seed {seed}: valid {trial['valid']}", *trial["why"], sep="\n  ")
        verdicts.append(
            {check["id"]: check["verdict"] for check in answer["checks"]} if trial["valid"] else {}
        )
        valid = [one for one in verdicts if one]
        if len(valid) * 2 > len(verdicts):
            break
    assert 2 * len(valid) > len(verdicts), "most trials are invalid"
    assert valid[-1] == {"HW-3": "pass", "HW-5": "pass", "total": "pass"}
