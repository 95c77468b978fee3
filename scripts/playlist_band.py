#!/usr/bin/env python3
"""Results of each of the twenty playlists of catalogue/realvideo, check by check: the band that contains the
first of them.

    scripts/playlist_band.py                    all, which takes a quarter of an hour
    scripts/playlist_band.py --playlists 4      the first four alone
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "catalogue" / "realvideo" / "playlists"
SCENARIOS = ("realvideo/head2head-*", "realvideo/media-scaling-35-*")


def checks_of(playlist: Path, out: Path, repeat: int | None) -> list[dict[str, Any]]:
    """Returns the checks of a campaign in which the members are those of a playlist."""
    command = [sys.executable, "-m", "streamgauge", "run", *SCENARIOS, "--mode", "sim", "--keep", "metrics"]
    if repeat is not None:
        command += ["--repeat", str(repeat)]
    said = subprocess.run(
        [*command, "--set", f"population.members={playlist}", "--out", out, "--json"],
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    # Failed checks are the subject of the search; without a document there is nothing to examine.
    if not said.stdout:
        sys.exit(said.returncode or 1)
    found: list[dict[str, Any]] = json.loads(said.stdout)["checks"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--playlists", type=int, default=20, help="how many, from the first on")
    parser.add_argument("--repeat", type=int, help="clips of each, in place of all")
    parser.add_argument("--out", type=Path, default=Path("runs/playlists"), help="where records go")
    wanted = parser.parse_args()
    values: dict[tuple[str, str], list[float]] = {}
    verdicts: dict[tuple[str, str], Counter[str]] = {}
    units: dict[tuple[str, str], str] = {}
    for playlist in sorted(FOLDER.glob("??.json"))[: wanted.playlists]:
        for check in checks_of(playlist, wanted.out / playlist.stem, wanted.repeat):
            key = (str(check["scenario"]), str(check["id"]))
            verdicts.setdefault(key, Counter())[str(check["verdict"])] += 1
            if check["measured"] is not None:
                values.setdefault(key, []).append(check["measured"])
                units[key] = str(check["unit"])
    print(
        f"{'scenario':<34}{'check':<20}{'first':>10}{'least':>10}{'median':>10}{'most':>10}  unit, verdicts"
    )
    for key, counted in verdicts.items():
        found = values.get(key, [])
        numbers = [found[0], min(found), statistics.median(found), max(found)] if found else []
        shown = "".join(f"{number:>10.4g}" for number in numbers)
        told = ", ".join(f"{count} {verdict}" for verdict, count in counted.most_common())
        print(f"{key[0]:<34}{key[1]:<20}{shown:<40}  {units.get(key, '')}, {told}")


if __name__ == "__main__":
    main()
