"""The ladder of `streamgauge ladder`: for a film of the user's with the film's properties, unless options
override them."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from streamgauge.claims.dimension import TIME, plain, say_exactly
from streamgauge.errors import ScenarioError
from streamgauge.media import BUILT_IN, Ladder
from streamgauge.media.ladder import rate_named, short_name
from streamgauge.media.probe import FilmFacts, film_facts
from streamgauge.units import Quantity, Rate, Time, UnitError

__all__ = ["asked_ladder", "option_value"]

Of = TypeVar("Of", bound=Quantity)
Size = tuple[int, int]

_SIZE = re.compile(r"\s*(\d{1,5})x(\d{1,5})\s*")
_MOST_FRAMES = 240
_CHANNELS = {1: "mono", 2: "stereo"}


def option_value(kind: type[Of], text: str, option: str) -> Of:
    """Returns the quantity that an option has. Raises ScenarioError that names the option."""
    try:
        return kind(text)
    except UnitError as error:
        raise ScenarioError(str(error), file=option) from None


def asked_ladder(
    source: str,
    rates: str,
    *,
    sizes: str | None,
    duration: str | None,
    audio: str | None,
    segment: str | None,
    frame_rate: str | None,
) -> tuple[Ladder, list[str]]:
    """Returns the ladder, and lines on the properties of a film of the user's and those that are encoded in
    another way.

    Size, frame rate, channels and length are the film's own by default; for shipped content they are those of
    a clip. Raises ScenarioError for an invalid option, MediaError for a film that cannot be read,
    CannotRunError.
    """
    film = None if source in BUILT_IN else film_facts(Path(source).expanduser())
    rates_bps, given = _rates_and_sizes(rates, sizes)
    audio_bps = option_value(Rate, audio or "0 bit/s", "--audio").bps
    if film is not None and audio_bps and not film.channels:
        raise ScenarioError(f"{source} has no sound to encode", file="--audio", hint="leave it out")
    own = _Own(film)
    ladder = Ladder(
        source=source,
        rates_bps=rates_bps,
        duration_s=own.duration_s if duration is None else option_value(Time, duration, "--duration").s,
        audio_bps=audio_bps,
        frame_rate=own.frame_rate if frame_rate is None else _frame_rate(frame_rate),
        segment_s=option_value(Time, segment or "2 s", "--segment").s,
        sizes=own.sizes(len(rates_bps)) if given is None else given,
        channels=own.channels,
    )
    return ladder, [] if film is None else _in_words(source, film, ladder)


class _Own:
    """Properties that an encoding inherits."""

    def __init__(self, film: FilmFacts | None) -> None:
        self.film = film
        self.duration_s = 10.0 if film is None else film.duration_s
        self.channels = 1 if film is None else max(1, film.channels)
        self.frame_rate: int | Fraction = 25
        if film is not None:
            # Uneven frames have no rate to keep.
            rate = film.frame_rate if film.is_steady else Fraction(max(1, round(film.frame_rate)))
            self.frame_rate = rate.numerator if rate.denominator == 1 else rate

    def sizes(self, rates: int) -> tuple[Size, ...] | None:
        """Returns one for each of the rates; None where the rates decide."""
        if self.film is None:
            return None
        width, height = self.film.size
        # H.264's pictures of a half of the colours have even sides.
        return ((width - width % 2, height - height % 2),) * rates


def _in_words(source: str, film: FilmFacts, ladder: Ladder) -> list[str]:
    name = Path(source).name
    sound = _CHANNELS.get(film.channels, f"{film.channels} channels") if film.channels else "no sound"
    has = f"{_by(film.size)}, {_per_second(film)}, {say_exactly(film.duration_s, TIME)}, {sound}"
    changed = []
    sizes = ladder.sizes or ()
    if any(size != film.size for size in sizes):
        shown = [
            f"{short_name(rate)} {_by(size)}" for rate, size in zip(ladder.rates_bps, sizes, strict=True)
        ]
        changed.append(f"sizes {', '.join(shown)}")
    if ladder.frame_rate != film.frame_rate or not film.is_steady:
        changed.append(
            f"{_fraction(Fraction(ladder.frame_rate))} frames/s{'' if film.is_steady else ', evenly spaced'}"
        )
    if ladder.duration_s < film.duration_s - 0.001:
        changed.append(f"the first {say_exactly(ladder.duration_s, TIME)} alone")
    if ladder.duration_s > film.duration_s + 0.001:
        changed.append(f"repeated until {say_exactly(ladder.duration_s, TIME)}")
    if film.channels and not ladder.audio_bps:
        changed.append("no sound (--audio 128kbit/s would encode it)")
    said = [f"{name}: {has}", f"changed: {'; '.join(changed) if changed else 'nothing but the rates'}"]
    frames = Fraction(repr(float(ladder.segment_s))) * Fraction(ladder.frame_rate)
    if frames.denominator != 1:
        whole = round(frames)
        said.append(
            f"segments of {whole} frames, {plain(float(whole / Fraction(ladder.frame_rate)), 6)} s: no whole "
            f"number of frames lasts {plain(ladder.segment_s)} s"
        )
    return said


def _per_second(film: FilmFacts) -> str:
    if film.is_steady:
        return f"{_fraction(film.frame_rate)} frames/s"
    return f"unevenly spaced frames, {plain(float(film.frame_rate), 4)} a second on the mean"


def _by(size: Size) -> str:
    return "{}x{}".format(*size)


def _fraction(rate: Fraction) -> str:
    whole = rate.denominator == 1
    return str(rate.numerator) if whole else f"{rate.numerator}/{rate.denominator}"


def _frame_rate(text: str) -> int | Fraction:
    """Returns ``50`` or ``30000/1001``."""
    try:
        rate = Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        rate = Fraction(0)
    if not 1 <= rate <= _MOST_FRAMES or rate.denominator > 1001:
        raise ScenarioError(
            f"'{text}' is no frame rate",
            file="--frame-rate",
            hint=f"write 1 to {_MOST_FRAMES}, or a fraction such as 30000/1001",
        )
    return rate.numerator if rate.denominator == 1 else rate


def _rates_and_sizes(rates: str, sizes: str | None) -> tuple[tuple[int, ...], tuple[Size, ...] | None]:
    """Reads ``235k,1.5M`` in bit/s, and the sizes, which follow an ``@`` or have an option of their own."""
    found, beside = [], []
    for part in rates.split(","):
        rate, at, size = part.partition("@")
        bps = rate_named(rate)
        found.append(option_value(Rate, rate, "--rates").bps if bps is None else bps)
        if at:
            beside.append(_size(size, "--rates"))
    if beside and sizes is not None:
        raise ScenarioError("sizes stand in --rates already", file="--sizes", hint="leave it out")
    if beside and len(beside) != len(found):
        raise ScenarioError(
            f"{len(beside)} of {len(found)} rates have a size", file="--rates", hint="give all one, or none"
        )
    if beside:
        return tuple(found), tuple(beside)
    if sizes is None:
        return tuple(found), None
    given = tuple(_size(part, "--sizes") for part in sizes.split(","))
    if len(given) != len(found):
        raise ScenarioError(
            f"{len(given)} {'size' if len(given) == 1 else 'sizes'} for {len(found)} rates",
            file="--sizes",
            hint="give one for each rate, the lowest first",
        )
    return tuple(found), given


def _size(text: str, option: str) -> Size:
    found = _SIZE.fullmatch(text)
    if found is None or int(found[1]) % 2 or int(found[2]) % 2 or min(int(found[1]), int(found[2])) < 16:
        raise ScenarioError(
            f"'{text}' is no size of pictures", file=option, hint="write even numbers such as 426x240"
        )
    return int(found[1]), int(found[2])
