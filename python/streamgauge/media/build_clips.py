"""Makes the shipped frame sizes from real encodes: ``python -m streamgauge.media.build_clips [FOLDER]``.

Needs ffmpeg, ffprobe and the test sequences. Each built-in source is encoded as `prepare` does at a ladder of
rates; the sizes of the coded frames of a pass of 10 s, after a first pass in which the rate control settles,
are written as one JSON file a source.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from streamgauge.media.clip import BUILT_IN, Clip
from streamgauge.media.encode import encoder_arguments, ffmpeg_version, prepare
from streamgauge.media.frames import SCHEMA

LADDER_BPS = (100_000, 250_000, 550_000, 1_500_000)
PASS_S = 10


def packet_sizes(file: Path) -> list[int]:
    """Bytes of each coded video frame of `file`, in order."""
    command = ["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "packet=size"]
    done = subprocess.run([*command, "-of", "csv=p=0", str(file)], capture_output=True, text=True, check=True)
    return [int(line.strip(",")) for line in done.stdout.split()]


def build(source: str) -> dict[str, object]:
    """The contents of a source's file."""
    encodings: dict[str, list[int]] = {}
    for rate in LADDER_BPS:
        clip = Clip(source=source, bit_rate_bps=rate, duration_s=2 * PASS_S)
        encodings[str(rate)] = packet_sizes(prepare(clip))[PASS_S * clip.frame_rate :]
    return {
        "schema": SCHEMA,
        "source": source,
        "shows": BUILT_IN[source],
        "encoder": ffmpeg_version(),
        "arguments": " ".join(encoder_arguments(clip, None if source == "testsrc2" else Path("SOURCE"))),
        "frame_interval_ns": 1_000_000_000 // clip.frame_rate,
        "encodings": encodings,
    }


def main() -> None:
    """Writes every source's file into the folder given, or into the package."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "clips"
    for source in BUILT_IN:
        file = folder / f"{source}.json"
        file.write_text(json.dumps(build(source)) + "\n", encoding="utf-8")
        print(file)


if __name__ == "__main__":
    main()
