"""Makes the shipped frame sizes from real encodes: ``python -m streamgauge.media.build_clips [FOLDER]``.

Needs ffmpeg, ffprobe and the test sequences. Each built-in source is encoded as `prepare` does. At a constant
rate: the sizes of the coded frames of a pass of 10 s, after a first pass in which the rate control settles,
at a ladder of rates. At a variable rate: the sizes and the key frames of the pass that is repeated. One JSON
file a source.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from streamgauge.media.clip import BUILT_IN, PASS_S, ClipEncoding, Codec
from streamgauge.media.encode import encoder_arguments, ffmpeg_version, packets, prepare
from streamgauge.media.frames import SCHEMA

LADDER_BPS = (100_000, 250_000, 550_000, 1_500_000)
SETTLED_S = 10
VARIABLE_BPS = (242_000,)
"""The average of *Foreman* in De Cicco et al., section V."""
CODECS: tuple[Codec, ...] = ("h264", "mpeg4")


def _arguments(clip: ClipEncoding) -> str:
    return " ".join(encoder_arguments(clip, None if clip.source == "testsrc2" else Path("SOURCE")))


def build(source: str) -> dict[str, object]:
    """Returns the contents of a source's file."""
    encodings: dict[str, list[int]] = {}
    for rate in LADDER_BPS:
        clip = ClipEncoding(source=source, bit_rate_bps=rate, duration_s=2 * SETTLED_S)
        encodings[str(rate)] = [frame.size for frame in packets(prepare(clip))][
            int(SETTLED_S * clip.frame_rate) :
        ]
    arguments = _arguments(clip)
    variable: dict[str, dict[str, object]] = {}
    for codec in CODECS:
        variable[codec] = {}
        for rate in VARIABLE_BPS:
            clip = ClipEncoding(
                source=source, bit_rate_bps=rate, duration_s=PASS_S, rate_control="variable", codec=codec
            )
            frames = packets(prepare(clip))
            variable[codec][str(rate)] = {
                "arguments": _arguments(clip),
                "frame_bytes": [frame.size for frame in frames],
                "key_frames": [number for number, frame in enumerate(frames) if frame.is_key],
            }
    return {
        "schema": SCHEMA,
        "source": source,
        "shows": BUILT_IN[source],
        "encoder": ffmpeg_version(),
        "arguments": arguments,
        "frame_interval_ns": 1_000_000_000 // clip.frame_rate,
        "encodings": encodings,
        "variable": variable,
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
