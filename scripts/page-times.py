#!/usr/bin/env python3
"""Prints how long players' pages take where no bytes move, as quantiles of real trials.

Each folder is a real trial of `streamgauge crosscheck abr`. The shares are those of the settings in
crates/systems/src/dash/player/settings.rs: 2, 10, 20 ... 90 and 98 per cent. Times are in ms.

    .venv/bin/python scripts/page-times.py runs/crosscheck/scenario=*/mode=emu/seed=*
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

SHARES = (0.02, *(tenth / 10 for tenth in range(1, 10)), 0.98)


def main(folders: list[Path]) -> int:
    """Prints a line for each player and time."""
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for folder in folders:
        player = re.split(r"%2F|-", str(folder).partition("abr%2F")[2])[0]
        kept = json.loads((folder / "crosscheck.json").read_text(encoding="utf-8"))
        for name, ms in kept.get("page", ()):
            times[player, name].append(ms)
    for (player, name), found in sorted(times.items()):
        found.sort()
        quantiles = [round(found[round(share * (len(found) - 1))]) for share in SHARES]
        print(f"{player} {name}: n = {len(found)}: {quantiles}")
    return 0


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
