"""Windows Media files of several rates: a server sends each player the one that its link carries."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from streamgauge.errors import MediaError
from streamgauge.media.encode import prepare_wma, prepare_wmv
from streamgauge.media.ladder import Ladder, Tell, encoded, short_name

__all__ = ["ENDINGS", "LEAST_AUDIO_BPS", "MOST_RATES", "asf_of_files", "asf_of_ladder"]

ENDINGS = (".wmv", ".asf")
"""Endings of the names of such files."""
LEAST_AUDIO_BPS = 24_000
"""The lowest rate of sound that ffmpeg's encoder of Windows Media Audio has."""
MOST_RATES = 10
"""Rates of pictures that a file has at most, as a server's encoder made them."""


def asf_of_ladder(ladder: Ladder, *, jobs: int | None = None, tell: Tell | None = None) -> bytes:
    """Returns a file of a ladder's pictures as Windows Media Video 8, a stream a rate, and of its sound as
    Windows Media Audio 2.

    Encodings are made and kept as those of `prepare_ladder`, key frames at the same times. Raises MediaError
    for a rate of sound that cannot be had and for too many rates, and as `prepare_ladder`.
    """
    if len(ladder.rates_bps) > MOST_RATES:
        raise MediaError(
            f"ladder {ladder.source}: {len(ladder.rates_bps)} rates of pictures; one file of Windows Media "
            f"has {MOST_RATES} at most."
        )
    if 0 < ladder.audio_bps < LEAST_AUDIO_BPS:
        raise MediaError(
            f"ladder {ladder.source}: ffmpeg's Windows Media Audio has no rate of {ladder.audio_bps} bit/s. "
            f"Ask for {LEAST_AUDIO_BPS // 1000} kbit/s of sound or more, or for none."
        )
    rates = {short_name(rate): partial(prepare_wmv, ladder.clip(rate)) for rate in ladder.rates_bps}
    sound = {"audio": partial(prepare_wma, ladder.sound)} if ladder.audio_bps else {}
    files = encoded(sound | rates, jobs, tell)
    return _multiplexed([(files[name], "audio" if name in sound else "video") for name in (*sound, *rates)])


def asf_of_files(files: Sequence[Path]) -> bytes:
    """Returns a file of the pictures of all `files` and of the sound of the last one that has some, as they
    are.

    Raises MediaError that names a file which is missing, or is no Windows Media.
    """
    taken = [(file, "video") for file in files]
    if heard := [file for file in files if "audio" in _kinds(file)]:
        taken.insert(0, (heard[-1], "audio"))
    return _multiplexed(taken)


def _multiplexed(files: Sequence[tuple[Path, str]]) -> bytes:
    """Returns one file of the streams of that kind of each."""
    from streamgauge import _native  # late, so that looking at a catalogue needs no build

    taken = []
    for file, kind in files:
        if numbers := [number for number, known in _streams(file) if known == kind]:
            taken.append((str(file), _bytes(file), numbers[:1] if kind == "audio" else numbers))
        else:
            raise MediaError(f"{file}: there is no {kind} in it; name files with pictures.")
    rates = sum(
        len(numbers) for (_, kind), (*_, numbers) in zip(files, taken, strict=True) if kind == "video"
    )
    if rates > MOST_RATES:
        raise MediaError(f"{rates} rates of pictures; one file of Windows Media has {MOST_RATES} at most.")
    content = hashlib.blake2b(digest_size=16)
    for _, read, numbers in taken:
        content.update(f"{len(read)} {numbers} ".encode() + read)
    return _native.multiplex_asf(taken, content.digest())


def _kinds(file: Path) -> set[str]:
    return {kind for _, kind in _streams(file)}


def _streams(file: Path) -> list[tuple[int, str]]:
    from streamgauge import _native  # late, so that looking at a catalogue needs no build

    try:
        return _native.asf_streams(_bytes(file))
    except MediaError as error:
        raise MediaError(f"{file}: {error}; encode it as Windows Media (ffmpeg's -c:v wmv2).") from None


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise MediaError(f"{file}: no such media file; correct its path.") from None
    except OSError as error:
        raise MediaError(f"{file}: {error.strerror}; name a file that you may read.") from error
