"""Measures the cost of a release, keeps it in benches/history, and prints what moved since the last release.

    python benches/history.py [--rounds N] [--only NAME] [--save VERSION]

Each round runs every bench of `BENCHES` between two runs of a fixed reference work in Python and numpy. A
figure is CPU time as a multiple of the reference's, so that machines and their load count for less. A figure
moved if its rounds and those of the release do not overlap and their medians differ by more than 5 %.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
HISTORY = Path(__file__).with_name("history")
SCHEMA = "streamgauge.bench-history/1"
LEAST_CHANGE = 0.05
BENCHES: Mapping[str, Sequence[str]] = {
    "call": ("call.py", "--trials", "3"),
    "abr": ("abr.py", "--sessions", "0"),
    "compare": ("compare.py", "--scenarios", "3"),
    "sweep": ("sweep.py", "--points", "60", "hessler/ftp-medium"),
    "infer": ("infer.py", "--points", "2", "hessler"),
}
"""Every bench that is tracked, by its name, with the arguments of its short form."""


@dataclass(frozen=True)
class Moved:
    """A figure that is another than the release's, with both medians and their quotient."""

    name: str
    before: float
    now: float

    def __str__(self) -> str:
        change = 100 * (self.now / self.before - 1)
        return f"{self.name}: {change:+.0f} % ({self.before:.3g} to {self.now:.3g} of the reference)"


def reference_s() -> float:
    """Returns the CPU time of the reference work, s."""
    random = np.random.default_rng(1)
    began = time.process_time()
    total = sum(number * number for number in range(300_000))
    text = hashlib.sha256(str(total).encode() * 200_000).hexdigest()
    values = np.sort(random.random(400_000))
    assert text and values[0] <= values[-1]
    return time.process_time() - began


def measured(bench: str) -> dict[str, dict[str, Any]]:
    """Returns the figures of one bench, by name."""
    name, *arguments = BENCHES[bench]
    command = [sys.executable, str(Path(__file__).with_name(name)), *arguments, "--json"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout)["figures"])


def rounds(names: Sequence[str], count: int) -> dict[str, dict[str, Any]]:
    """Returns every figure with its values, and their multiples of the reference, in each round."""
    found: dict[str, dict[str, Any]] = {}
    for number in range(1, count + 1):
        for bench in names:
            print(f"history: round {number} of {count}, {bench}", file=sys.stderr, flush=True)
            before = reference_s()
            figures = measured(bench)
            reference = (before + reference_s()) / 2
            for name, one in figures.items():
                kept = found.setdefault(
                    f"{bench}: {name}", {"unit": one["unit"], "values": [], "relative": []}
                )
                scale = 1e-3 if one["unit"] == "ms" else 1.0
                kept["values"].append(round(one["value"], 6))
                kept["relative"].append(round(one["value"] * scale / reference, 6))
    return found


def moved(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Moved]:
    """Yields the figures that moved beyond their noise."""
    for name, one in now.items():
        if name not in before:
            continue
        old, new = before[name]["relative"], one["relative"]
        was, is_now = median(old), median(new)
        apart = max(old) < min(new) or max(new) < min(old)
        if apart and abs(is_now / was - 1) > LEAST_CHANGE:
            yield Moved(name, was, is_now)


def last_release() -> tuple[str, Mapping[str, Any]] | None:
    """Returns the newest version that is kept, and its figures; None if none is kept."""
    files = {tuple(map(int, re.findall(r"\d+", path.stem))): path for path in HISTORY.glob("*.json")}
    if not files:
        return None
    path = files[max(files)]
    document = json.loads(path.read_text(encoding="utf-8"))
    if document.get("schema") != SCHEMA:
        raise SystemExit(
            f"{path}: schema {document.get('schema')!r}, expected {SCHEMA!r}; write it anew with --save"
        )
    return path.stem, document["figures"]


def machine() -> dict[str, Any]:
    """Returns the machine's description."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }


def save(version: str, figures: Mapping[str, Any]) -> Path:
    """Writes the figures of a release."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    document = {
        "schema": SCHEMA,
        "version": version,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit.stdout.strip(),
        "machine": machine(),
        "figures": figures,
    }
    HISTORY.mkdir(exist_ok=True)
    path = HISTORY / f"{version}.json"
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=BENCHES, default=[])
    parser.add_argument("--save", metavar="VERSION", help="write benches/history/VERSION.json")
    asked = parser.parse_args()
    release = last_release()
    figures = rounds(asked.only or list(BENCHES), asked.rounds)
    if asked.save:
        print(f"history: {save(asked.save, figures).relative_to(ROOT)}")
        return
    for name, one in figures.items():
        print(f"{name}: {median(one['values']):.4g} {one['unit']} CPU")
    if release is None:
        print("history: no release is kept in benches/history; --save VERSION writes one")
        return
    version, before = release
    changes = list(moved(before, figures))
    for change in changes:
        print(f"since {version}: {change}")
    if not changes:
        print(f"since {version}: nothing moved beyond its noise, of {len(figures)} figures")


if __name__ == "__main__":
    main()
