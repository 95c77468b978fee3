"""Describes the matrix in three sentences: for the viewer, for the neighbours, for both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.compare import COMPARED, ComparedRow, say_value
from streamgauge.compare.answer import listed
from streamgauge.matrix.judged import OVERALL, JudgedKind, JudgedMatrix

__all__ = ["SENTENCES_NEED", "MatrixSentence", "answering", "beaten_in_both", "sentences"]

SENTENCES_NEED = (
    "No ranking without two valid trials of one kind of scenario, or of all kinds with congestion."
)
_MODE = {"sim": "simulated", "emu": "emulated"}
_BOTH = ("shown_rate", "harm")
_FEW = 4


@dataclass(frozen=True)
class MatrixSentence:
    """A sentence with the place of its evidence on the page."""

    text: str
    basis: str
    evidence: str
    """The id of the part of the page."""

    def __str__(self) -> str:
        return f"{self.text} ({self.basis}.)"


def sentences(found: JudgedMatrix) -> list[MatrixSentence]:
    """Returns the three sentences, of all kinds with congestion or of the one that was run; none where single
    trials were, or kinds that cannot be one."""
    block = answering(found)
    if block is None or block.n < 2:
        return []
    told = [_viewer(found, block), _neighbours(found, block), _both(found, block)]
    return [one for one in told if one is not None]


def answering(found: JudgedMatrix) -> JudgedKind | None:
    """Returns the subject of the sentences: all kinds with congestion, or the one that was run; None without
    one."""
    overall = found.of(OVERALL, found.main)
    if overall is not None:
        return overall
    disturbed = found.disturbed(found.main)
    every = [one for one in found.kinds if one.mode == found.main]
    return next((mine[0] for mine in (disturbed, every) if len(mine) == 1), None)


def _evidence(block: JudgedKind, of_all: str) -> str:
    """Returns where on the page: the part of all kinds, or that of the one."""
    return of_all if block.kind.name == OVERALL else f"kind-{block.kind.name}"


def _viewer(found: JudgedMatrix, overall: JudgedKind) -> MatrixSentence | None:
    rows = overall.ordered("shown_rate")
    if len(rows) < 2:
        return None
    if not overall.tells_apart("shown_rate"):
        text = f"No system shows more of the film than the others beyond doubt ({_span(rows)})"
        return MatrixSentence(f"{text}.", _basis(found, overall, "shown_rate"), _evidence(overall, "overall"))
    first = [row for row in rows if row.rank == 1]
    text = f"A viewer sees most of the film with {_tied(found, first)}"
    steady = [row for row in overall.ordered("frozen_share") if row.rank == 1]
    both = [row for row in first if row.subject in {one.subject for one in steady}]
    if both:
        text += f", and least freezing has {_few(found, both).replace('others', 'of them')}"
    elif steady:
        still = [mine for row in first if (mine := overall.row(row.subject, "frozen_share")) is not None]
        if still and len(still) <= _FEW:
            times = listed([say_value(row) for row in still])
            text += f", but the picture is frozen for {times} of the time"
        text += f"; least freezing has {_tied(found, steady)}"
    return MatrixSentence(
        f"{text}.", _basis(found, overall, "shown_rate", "frozen_share"), _evidence(overall, "overall")
    )


def _neighbours(found: JudgedMatrix, overall: JudgedKind) -> MatrixSentence | None:
    rows = overall.ordered("harm")
    if len(rows) < 2:
        return None
    if not overall.tells_apart("harm"):
        text = f"No system does less harm to neighbours than the others beyond doubt ({_span(rows)})"
        return MatrixSentence(f"{text}.", _basis(found, overall, "harm"), _evidence(overall, "neighbours"))
    text = f"Neighbours lose least to {_tied(found, [row for row in rows if row.rank == 1])}"
    greedy = [row for row in rows if overall.row(row.subject, "shown_rate") is None]
    if not greedy:
        return MatrixSentence(
            f"{text}, and most to {_told(found, rows[-1])}.", _basis(found, overall, "harm"), "neighbours"
        )
    reference = greedy[0]
    others = [row for row in rows if row.subject != reference.subject]
    less = [row for row in others if row.subject in reference.beaten_by]
    more = [row for row in others if reference.subject in row.beaten_by]
    alike = [row for row in others if row not in less and row not in more]
    text += (
        f"; compared with a {found.label(reference.subject)} in the same place ({say_value(reference)} of "
        f"their goodput), {len(less) or 'none'} of {len(others)} systems take less beyond doubt"
    )
    if alike:
        verb = "does" if len(alike) == 1 else "do"
        text += f", {_names(found, alike)} {verb} not differ beyond doubt"
    text += (
        f", and {_names(found, more)} {'takes' if len(more) == 1 else 'take'} more"
        if more
        else ", and none takes more"
    )
    return MatrixSentence(f"{text}.", _basis(found, overall, "harm"), _evidence(overall, "neighbours"))


def _both(found: JudgedMatrix, overall: JudgedKind) -> MatrixSentence | None:
    rows = [row for row in overall.ordered("shown_rate") if overall.row(row.subject, "harm") is not None]
    if len(rows) < 2:
        return None
    if not (overall.tells_apart("shown_rate") and overall.tells_apart("harm")):
        text = "No winner on both metrics"
        return MatrixSentence(f"{text}.", _basis(found, overall, *_BOTH), _evidence(overall, "front"))
    beaten = beaten_in_both(overall)
    left = [row for row in rows if row.subject not in beaten]

    def pair(row: ComparedRow) -> str:
        harm = overall.row(row.subject, "harm")
        assert harm is not None
        return f"{found.label(row.subject)} ({say_value(row)} seen, {say_value(harm)} harm)"

    if len(left) == 1:
        text = f"{pair(left[0])} is best for viewer and neighbours: it beats every other on both metrics"
        return MatrixSentence(f"{text}.", _basis(found, overall, *_BOTH), _evidence(overall, "front"))
    between = f" over {_names(found, left[1:-1])}" if len(left) > 2 else ""
    text = (
        f"No system is best for viewer and neighbours: from {pair(left[0])}{between} to {pair(left[-1])} "
        "none is worse on both metrics than another"
    )
    if beaten:
        which = [row for row in rows if row.subject in beaten]
        text += f", but {_names(found, which)} {'is' if len(which) == 1 else 'are'}, beyond doubt"
    return MatrixSentence(f"{text}.", _basis(found, overall, *_BOTH), _evidence(overall, "front"))


def beaten_in_both(overall: JudgedKind) -> dict[str, str]:
    """Systems that another beats beyond doubt for the viewer and for the neighbours, each with one that
    does."""
    found = {}
    for row in overall.ordered("shown_rate"):
        by = next((other for other in row.beaten_by if overall.dominated(row.subject, other, _BOTH)), None)
        if by is not None:
            found[row.subject] = by
    return found


def _tied(found: JudgedMatrix, rows: Sequence[ComparedRow]) -> str:
    """Returns the first systems, each with its value: of many the first alone."""
    if len(rows) > _FEW:
        return f"{len(rows)} systems without a difference beyond doubt, {_told(found, rows[0])} among them"
    return listed([_told(found, row) for row in rows])


def _span(rows: Sequence[ComparedRow]) -> str:
    return f"{say_value(rows[0])} to {say_value(rows[-1])}"


def _names(found: JudgedMatrix, rows: Sequence[ComparedRow]) -> str:
    return listed([found.label(row.subject) for row in rows])


def _few(found: JudgedMatrix, rows: Sequence[ComparedRow]) -> str:
    return _names(found, rows) if len(rows) <= _FEW else f"{len(rows)} others"


def _told(found: JudgedMatrix, row: ComparedRow) -> str:
    return f"{found.label(row.subject)} ({say_value(row)})"


def _basis(found: JudgedMatrix, overall: JudgedKind, *measures: str) -> str:
    names = listed([COMPARED[measure].short for measure in measures])
    rests = (
        f"{_MODE.get(overall.mode, overall.mode)}, n = {overall.n}, ± half the 95 % interval; paired by seed"
    )
    if overall.kind.name != OVERALL:
        return f"{names[0].upper()}{names[1:]}: means in one kind of scenario, {overall.kind.label}, {rests}"
    counts = {len(_kinds_with(found, overall.mode, measure)) for measure in measures}
    kinds = listed([str(count) for count in sorted(counts, reverse=True)])
    return f"{names[0].upper()}{names[1:]}: means over {kinds} kinds of scenario with congestion, {rests}"


def _kinds_with(found: JudgedMatrix, mode: str, measure: str) -> list[JudgedKind]:
    """Returns the kinds of `overall` in which a measure is known of any system."""
    return [
        one
        for one in found.disturbed(mode)
        if any(one.row(system.name, measure) is not None for system in found.matrix.systems)
    ]
