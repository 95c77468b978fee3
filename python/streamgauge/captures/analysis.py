"""`streamgauge analyze`: from files to the document that it prints."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from streamgauge import _native
from streamgauge.captures.answer import answer_of
from streamgauge.captures.playing import adaptive_streams
from streamgauge.captures.qlogs import beside_packets
from streamgauge.errors import CaptureFileError
from streamgauge.input_files import UnfitInputError, check_file

__all__ = ["SCHEMA", "AnalysisRequest", "analyse"]

SCHEMA: Final = "streamgauge.analysis/1"
STANDARD_INPUT: Final = "-"
_INNER: Final = ("exchanges", "manifests")
"""Keys of a flow that streams are inferred from, and that nobody else needs."""
Document = dict[str, Any]
Place = tuple[Path, int | None]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class AnalysisRequest:
    """The captures, and known facts about them."""

    files: tuple[Path, ...]
    """One or two; ``-`` is standard input."""
    at: Literal["sender", "receiver"] | None = None
    """Where a single capture was taken, or the first of two."""
    flow: str | None = None
    """Only flows with this text in their name."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Ends of the second capture by their names in the first, where addresses are translated between both."""
    qlogs: tuple[Path, ...] = ()
    """Logs of an endpoint, which are placed beside the packets."""
    base_delay_s: float | None = None
    """The least one-way delay from sender to receiver, if it is known."""
    checks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Checks of the record, by name (`streamgauge.captures.checking`)."""


def analyse(request: AnalysisRequest, out: Path | None = None) -> Document:
    """Returns the document of ``--json``, see docs/captures.md.

    Args:
        request: the captures.
        out: the folder for the record of two captures; its folder is ``record`` in the document.

    Raises:
        CaptureFileError: if a file cannot be read, is no capture, or no flow matches.
    """
    places = _places(request.files)
    if len(places) == 1:
        if out is not None:
            raise CaptureFileError(
                "--out, --report, --checks: one capture does not show packets' fates; name one of each end."
            )
        ((file, only),) = places
        found = json.loads(_native.analyse_capture(file, only, request.at))
        flows = _chosen(found["flows"], request.flow, file)
        return _document(request, [found["capture"]], flows, _path(found["capture"], flows))
    one, other = places
    if out is not None:
        return _recorded(request, one, other, out)
    text = _native.analyse_captures(one, other, request.at, request.base_delay_s, request.renamed)
    found = json.loads(text)
    flows = _chosen(found["flows"], request.flow, one[0])
    return _document(request, found["captures"], flows, found["path"], found["translated"])


def _document(
    request: AnalysisRequest,
    captures: Sequence[Row],
    flows: Sequence[Row],
    path: Row,
    translated: Sequence[Sequence[str]] = (),
) -> Document:
    streams = adaptive_streams(flows)
    shown = [{key: value for key, value in flow.items() if key not in _INNER} for flow in flows]
    document: Document = {
        "schema": SCHEMA, "captures": captures, "flows": shown, "path": path, "streams": streams,
        "qlogs": beside_packets(request.qlogs, flows, captures[0]["first_s"] or 0.0),
        "translated": [{"first": ours, "second": theirs} for theirs, ours in translated],
    }  # fmt: skip
    return document | {"answer": answer_of(document)}


def _recorded(request: AnalysisRequest, one: Place, other: Place, out: Path) -> Document:
    """Returns the figures of two captures, and writes their record below `out`."""
    from streamgauge.captures import recording

    place = recording.place_of(out, request.files)
    growing = recording.begin(place)
    try:
        into = (growing, request.flow)
        text = _native.record_captures(one, other, into, request.at, request.base_delay_s, request.renamed)
        found: Document = json.loads(text)
        flows = _chosen(found["flows"], request.flow, one[0])
        document = _document(request, found["captures"], flows, found["path"], found["translated"])
        recording.finish(growing, place, request.files, found, document, request.checks)
    except BaseException:
        recording.remove(growing)
        raise
    return document | {"record": str(place)}


def _places(files: Sequence[Path]) -> list[Place]:
    """The captures with their interfaces: one file with interfaces at two places is two captures."""
    for file in files:
        _check_kind(file)
    if str(files[0]) != STANDARD_INPUT and len(files) == 1:
        survey = json.loads(_native.survey_capture(files[0]))
        if survey["places"] is not None:
            return [(files[0], index) for index in survey["places"]]
    if len(files) > 1 and len({file.absolute() for file in files}) == 1:
        raise CaptureFileError(f"{files[0]}: named twice; name a capture of each end.")
    if len(files) > 1 and any(str(file) == STANDARD_INPUT for file in files):
        raise CaptureFileError(
            "-: standard input can be read once, and matching needs two passes; use a file."
        )
    return [(file, None) for file in files]


def _check_kind(file: Path) -> None:
    if str(file) == STANDARD_INPUT:
        return
    try:
        check_file(file)
    except UnfitInputError as error:
        raise CaptureFileError(f"{file}: {error}. A stream is read from standard input: -.") from None


def _chosen(flows: Sequence[Mapping[str, Any]], text: str | None, file: Path) -> list[Mapping[str, Any]]:
    if text is None:
        return list(flows)
    chosen = [flow for flow in flows if text in flow["flow"]]
    if not chosen:
        names = ", ".join(flow["flow"] for flow in flows[:3]) or "none"
        raise CaptureFileError(f"--flow {text}: no flow of {file} has this in its name; it has {names}.")
    return chosen


def _path(capture: Mapping[str, Any], flows: Sequence[Mapping[str, Any]]) -> Document:
    """The figures of the path as far as one capture shows them: without a second clock there is no offset."""
    lost = [flow["lost"] for flow in flows if flow["lost"] is not None]
    return {
        "offset_s": None,
        "skew_ppm": None,
        "rate_bps": None,
        "queue_bytes": None,
        "lost": sum(lost) if lost else None,
        "lost_by_capture": capture["gaps"],
    }
