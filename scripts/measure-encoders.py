#!/usr/bin/env python3
"""Measures frame sizes of real-time encodes of the shipped sequences, for the live encoder's tables.

Encodes each sequence with x264 and VP8 (libvpx) as a call does: 640x360, 30 frames/s, constant bit rate, no
frame ahead, a key frame each 2 s. Writes crates/systems/src/media/live/frames.txt, a line an encode: codec,
sequence, rate in kbit/s, then the bytes of each frame. Needs ffmpeg with libx264 and libvpx.

    .venv/bin/python scripts/measure-encoders.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from streamgauge.media.sources import source_file

SOURCES = ("carphone", "bikes", "bigbuckbunny")
RATES_KBIT = (75, 120, 200, 300, 450, 700, 1000, 1500, 2300, 3500)
FRAMES_PER_S = 30
KEY_EVERY = 60
FRAMES = 2 * KEY_EVERY
CODECS = {
    "x264": "-c:v libx264 -preset veryfast -tune zerolatency "
    "-x264-params nal-hrd=none:scenecut=0:rc-lookahead=0",
    "vp8": "-c:v libvpx -deadline realtime -cpu-used 8 -lag-in-frames 0 -error-resilient 1 -auto-alt-ref 0",
}
OUTPUT = Path(__file__).parents[1] / "crates/systems/src/media/live/frames.txt"


def pictures(source: str, folder: Path) -> Path:
    """Returns the sequence as pictures of the size and rate that are encoded."""
    out = folder / f"{source}.y4m"
    scale = f"scale=640:360,fps={FRAMES_PER_S}"
    decode = [
        "ffmpeg",
        "-nostdin",
        "-loglevel",
        "error",
        "-y",
        "-stream_loop",
        "-1",
        "-i",
        str(source_file(source)),
    ]
    subprocess.run(
        [*decode, "-an", "-vf", scale, "-pix_fmt", "yuv420p", "-frames:v", str(FRAMES), str(out)], check=True
    )
    return out


def frames(source: str, read: Path, codec: str, kbit: int, folder: Path) -> list[int]:
    """Bytes of each frame of one encode; every `KEY_EVERY`-th is a key frame."""
    out = folder / "out.mkv"
    rate = f"-b:v {kbit}k -maxrate {kbit}k -bufsize {kbit // 2}k -g {KEY_EVERY} -keyint_min {KEY_EVERY}"
    encode = ["ffmpeg", "-nostdin", "-loglevel", "error", "-y", "-i", str(read), "-threads", "1"]
    subprocess.run([*encode, *CODECS[codec].split(), *rate.split(), str(out)], check=True)
    probe = ["ffprobe", "-loglevel", "error", "-select_streams", "v:0", "-show_entries", "packet=size,flags"]
    found = subprocess.run([*probe, "-of", "csv=p=0", str(out)], check=True, capture_output=True, text=True)
    rows = [line.split(",")[:2] for line in found.stdout.split()]
    keys = [number for number, (_, flags) in enumerate(rows) if "K" in flags]
    if len(rows) != FRAMES or keys != list(range(0, FRAMES, KEY_EVERY)):
        sys.exit(f"{source} {codec} {kbit} kbit/s: {len(rows)} frames, key frames at {keys}")
    return [int(size) for size, _ in rows]


def main() -> None:
    """Writes all tables."""
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        read = {source: pictures(source, folder) for source in SOURCES}
        for codec in CODECS:
            for source in SOURCES:
                for kbit in RATES_KBIT:
                    sizes = frames(source, read[source], codec, kbit, folder)
                    lines.append(f"{codec} {source} {kbit} {' '.join(map(str, sizes))}\n")
                    print(
                        f"{codec} {source} {kbit}: {sum(sizes) * 8 * FRAMES_PER_S / FRAMES / 1e3:.0f} kbit/s",
                        flush=True,
                    )
    OUTPUT.write_text("".join(lines), encoding="ascii")


if __name__ == "__main__":
    main()
