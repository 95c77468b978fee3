"""The parameters that records show, each from its own measurement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from streamgauge.errors import RecordError
from streamgauge.two_phases.model import predict
from streamgauge.two_phases.observed import ObservedStream, predicted
from streamgauge.two_phases.parameters import ModelParameters

__all__ = ["fit"]

_SEEN = 1.2
"""A stream that is sent faster than this times its rate is accelerated: bursts are spaced to a tenth or
so."""
_AT_MOST = 0.97
"""And one that is within this share of the most is held by the most, not by the link."""
_QUIET = 0.005
"""Loss below which nothing of note is sent again."""
_HELD = (
    "filling.time_s", "filling.offered_bps", "filling.received_bps", "filling.tcp_bps",
    "playing.offered_bps", "playing.received_bps",
)  # fmt: skip
"""Quantities to which the last four are fitted, by relative error, and the loss while the buffer fills."""
_LITTLE = 0.1
"""An error beyond this counts linearly, not by its square."""
_LOSS_COUNTS = 4.0
"""Weight of a loss: an absolute error of 1 counts as this relative error, a point as 4 %."""


def fit(seen: Sequence[ObservedStream], given: ModelParameters | None = None) -> ModelParameters:
    """Returns parameters by which the model matches the observations; those of `given`, or its defaults,
    where no observation shows them.

    Bursts, headers and accelerations are read off, thresholds lie in the middle between the groups that they
    separate, and the rest (`buffer_s`, `tcp_window_share`, `tcp_yield`, `key_share`) is fitted to relative
    errors together.

    Raises:
        RecordError: where fewer than three streams play as a whole and lose nothing, which headers are read
        off.
    """
    found = _headers(seen, given or ModelParameters())
    found = _accelerations(seen, found)
    found = _thresholds(seen, found)
    return _rest(seen, found)


def _headers(seen: Sequence[ObservedStream], found: ModelParameters) -> ModelParameters:
    quiet = [
        one
        for one in seen
        if one.thinned == 0 and one.values.get("playing.loss", 1.0) < _QUIET and one.inputs.loss == 0
    ]
    rows = [(one.values["chosen_bps"], one.values["playing.offered_bps"]) for one in quiet]
    if len({encoded for encoded, _ in rows}) < 3:
        raise RecordError(
            f"{len(rows)} of the {len(seen)} streams play as a whole and lose nothing. "
            "The fit needs at least three of different rates."
        )
    encoded, offered = np.array(rows).T
    by = np.stack([encoded / offered, 1 / offered], axis=1)
    (share, padding), *_ = np.linalg.lstsq(by, np.ones(len(rows)), rcond=None)
    spacings = [
        one.values["playing.burst_spacing_s"] for one in quiet if "playing.burst_spacing_s" in one.values
    ]
    return replace(
        found,
        header_share=max(0.0, float(share) - 1),
        padding_bps=max(0.0, float(padding)),
        burst_s=float(np.median(spacings)),
    )


def _accelerations(seen: Sequence[ObservedStream], found: ModelParameters) -> ModelParameters:
    rows = [
        (
            found.burst_s / one.values["filling.burst_spacing_s"],
            one.values["chosen_bps"] / one.inputs.capacity_bps,
        )
        for one in seen
        if "filling.burst_spacing_s" in one.values
    ]
    faster = [(times, share) for times, share in rows if times > _SEEN]
    if not faster:
        return replace(found, most_acceleration=1.0, accelerated_share=0.0, least_acceleration=1.0)
    most = max(times for times, _ in faster)
    by_link = [times * share for times, share in faster if times < _AT_MOST * most]
    # Where the maximum holds all of them, the link lets through at least the rate of the fastest.
    shares = by_link or [max(times * share for times, share in faster)]
    at_most = [times for times, _ in faster if times >= _AT_MOST * most]
    return replace(
        found,
        most_acceleration=float(np.median(at_most)) if by_link or len(at_most) > 1 else most,
        accelerated_share=float(np.median(shares)),
        # The least observation, less the precision of spacings: any below it was not sent faster.
        least_acceleration=max(1.0, _AT_MOST * min(times for times, _ in faster)),
    )


def _thresholds(seen: Sequence[ObservedStream], found: ModelParameters) -> ModelParameters:
    """Returns thresholds: `judged_s` separates streams that lost much while they filled their buffers and
    continued from those that took less then; `most_loss` separates the losses of those that continued from
    those of the rest."""
    much = [
        one for one in seen if one.values.get("filling.loss", 0.0) > max(10 * _QUIET, 2 * one.inputs.loss)
    ]
    on = [one.values["filling.time_s"] for one in much if one.thinned < 0.5 and one.inputs.loss == 0]
    less = [one.values["filling.time_s"] for one in much if one.thinned >= 0.5 and one.inputs.loss == 0]
    if on and less and max(on) < min(less):
        found = replace(found, judged_s=(max(on) + min(less)) / 2)
    judged: list[tuple[float, bool]] = []
    for one in seen:
        phase = "filling" if one.values["filling.time_s"] > found.judged_s else "playing"
        if f"{phase}.loss" in one.values:
            judged.append((one.values[f"{phase}.loss"], one.thinned >= 0.5))
    went_on = max((loss for loss, is_less in judged if not is_less), default=None)
    took_less = min((loss for loss, is_less in judged if is_less), default=None)
    if went_on is None or took_less is None or went_on > took_less:
        return found
    return replace(found, most_loss=(went_on + took_less) / 2)


def _rest(seen: Sequence[ObservedStream], found: ModelParameters) -> ModelParameters:
    from scipy.optimize import minimize

    bounds = {"buffer_s": (0.5, 600.0)}
    if any(one.inputs.tcp_window_bytes is not None for one in seen):
        bounds |= {"tcp_window_share": (0.05, 1.0), "tcp_yield": (0.0, 3.0)}
    if any(one.thinned >= 0.5 for one in seen):
        bounds["key_share"] = (0.0, 1.0)
    begin = np.array([getattr(found, name) for name in bounds])

    def at(values: Iterable[float]) -> ModelParameters:
        return replace(found, **{name: float(value) for name, value in zip(bounds, values, strict=True)})

    def badness(values: npt.NDArray[np.float64]) -> float:
        """Returns small errors squared, and large ones linearly."""
        off = np.array(_misses(seen, at(values))) / _LITTLE
        return float(np.mean(np.sqrt(1 + off**2) - 1))

    # Without derivatives: a stream's rate changes in steps, as it is thinned or not.
    corners = np.vstack([begin, *(begin + np.diag(np.maximum(0.15 * begin, 0.02)))])
    result = minimize(
        badness,
        begin,
        method="Nelder-Mead",
        bounds=list(bounds.values()),
        options={
            "initial_simplex": np.clip(corners, *np.array(list(bounds.values())).T),
            "maxfev": 250,
            "xatol": 1e-3,
            "fatol": 1e-5,
        },
    )
    return at(result.x)


def _misses(seen: Sequence[ObservedStream], parameters: ModelParameters) -> list[float]:
    errors: list[float] = []
    for one in seen:
        phases = predict(one.inputs, parameters)
        for quantity in _HELD:
            if measured := one.values.get(quantity):
                errors.append(predicted(phases, quantity) / measured - 1)
        if (lost := one.values.get("filling.loss")) is not None:
            errors.append(_LOSS_COUNTS * (phases.filling.loss - lost))
    return errors
