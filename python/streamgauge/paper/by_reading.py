"""Numbered claims under each reading of their papers, side by side: which reading explains more of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.checks import CheckResult
from streamgauge.paper.comparison import published_words, short
from streamgauge.paper.machines import HERE, in_order, mode_on, words_of
from streamgauge.paper.numbered import NumberedClaim, PaperOutcome
from streamgauge.paper.published import Paper
from streamgauge.terminal import lay_out

__all__ = ["PaperByReading", "better_words", "by_reading_json", "by_reading_text", "joined", "measured_by"]

_SIZE = "≠"
"""Marks a claim that holds with a printed number further away than the check's tolerance."""


@dataclass(frozen=True)
class PaperByReading:
    """A paper's numbered claims, with their results under each reading that was run."""

    outcomes: Mapping[str, PaperOutcome]
    """By reading."""
    default: str
    """The reading with the verdicts of the claims."""
    held_out: Mapping[str, str]
    """By claim: its verdict under a fit of the default reading that did not see it."""

    @property
    def paper(self) -> Paper:
        """Returns the paper."""
        return self.chosen.paper

    @property
    def chosen(self) -> PaperOutcome:
        """Returns the outcome under the default reading."""
        return self.outcomes[self.default]

    def claim(self, reading: str, place: int) -> NumberedClaim | None:
        """Returns a claim under a reading; None where the paper has no such reading."""
        found = self.outcomes.get(reading)
        return None if found is None else found.claims[place]

    def words(self) -> str:
        """Returns a line: ``hessler, described: of 16 claims 11 as claimed, ...``."""
        of = f"{self.paper.id}, {self.default}" if len(self.outcomes) > 1 else self.paper.id
        said = f"{of}: {self.chosen.words()}"
        if self.held_out:
            holds = sum(verdict == "pass" for verdict in self.held_out.values())
            said += f"; held out {holds} of {len(self.held_out)} pass"
        return said


def joined(
    papers: Sequence[Paper],
    outcomes: Mapping[str, Sequence[PaperOutcome]],
    defaults: Mapping[str, str],
    held_out: Mapping[str, Mapping[str, str]],
) -> list[PaperByReading]:
    """Outcomes of all papers by reading, as one a paper.

    Args:
        papers: in the order asked; those without numbered claims are left out.
        outcomes: by reading, each of the papers that have it.
        defaults: by paper, which of the readings that were run is its default.
        held_out: by paper, of its default.
    """
    found = []
    for paper in papers:
        mine = {
            reading: one for reading, ones in outcomes.items() for one in ones if one.paper.id == paper.id
        }
        if mine:
            # Ctrl-C may have come before the default was run.
            default = defaults[paper.id] if defaults[paper.id] in mine else next(iter(mine))
            found.append(PaperByReading(mine, default, held_out.get(paper.id, {})))
    return found


def readings_among(papers: Iterable[PaperByReading]) -> list[str]:
    """Readings of any of them, in order."""
    return list(dict.fromkeys(name for one in papers for name in one.outcomes))


def better_words(papers: Sequence[PaperByReading]) -> str:
    """Returns which reading explains more, in a sentence, counting numbered claims that are wholly as
    published."""
    total = sum(len(one.chosen.claims) for one in papers)
    counts = {name: _whole(papers, name) for name in readings_among(papers)}
    if len(counts) < 2:
        ((name, count),) = counts.items()
        return f"{count} of {total} claims are as claimed under reading {name}."
    best, *others = sorted(counts, key=lambda name: counts[name], reverse=True)
    rest = " and ".join(f"{counts[name]} under {name}" for name in others)
    if counts[best] == counts[others[0]]:
        return (
            f"No reading explains more: {counts[best]} of {total} claims are as claimed under {best}, {rest}."
        )
    return f"Reading {best} explains more: {counts[best]} of {total} claims are as claimed under it, {rest}."


def _whole(papers: Iterable[PaperByReading], reading: str) -> int:
    """Claims that are as claimed; a paper without the reading counts by its default."""
    return sum(one.outcomes.get(reading, one.chosen).counts()["pass"] for one in papers)


def by_reading_text(papers: Sequence[PaperByReading], columns: int | None = None, machine: str = HERE) -> str:
    """Returns the sentence, the table of all claims for a terminal, no wider than `columns`, and a line for
    each paper; emulated trials ran on `machine`."""
    names = readings_among(papers)
    has_mutants = any(one.chosen.mutants for one in papers)
    has_held_out = any(one.held_out for one in papers)
    head = ["claim", "paper", "published", *names, "checks", "origin"]
    head += ["held out"] if has_held_out else []
    head += ["mutants"] if has_mutants else []
    rows = [[*head, "claim in words"]]
    for paper in papers:
        for place, claim in enumerate(paper.chosen.claims):
            shown = claim.shown
            published = "" if shown is None else published_words(shown)
            cells = [claim.id, paper.paper.id, published or "–"]
            cells += [_cell(paper.claim(name, place), shown) for name in names]
            cells.append(f"{claim.counts()['pass']} of {len(claim.checks)}")
            cells.append(", ".join(claim.origins) or "–")
            if has_held_out:
                cells.append(paper.held_out.get(claim.id, "–"))
            if has_mutants:
                told = claim.mutants or ()
                cells.append(f"{claim.caught} of {len(told)}" if told else "–")
            rows.append([*cells, claim.words])
    kinds = f"lll{'l' * len(names)}rl{'l' if has_held_out else ''}{'r' if has_mutants else ''}w"
    laid = lay_out(rows, kinds, columns=columns, keys=2, indent=2)
    total = sum(len(one.chosen.claims) for one in papers)
    modes = in_order(mode_on(check.mode, machine) for one in papers for check in one.chosen.checks)
    ran = f" in {' and '.join(words_of(mode, modes) for mode in modes)}" if modes else ""
    of = papers[0].paper.id if len(papers) == 1 else f"{len(papers)} papers"
    said = [better_words(papers), "", f"{total} claims of {of}{ran}", *(text.plain for text in laid)]
    if any(_SIZE in cell for row in rows for cell in row[3:-1]):
        said.append(f"  {_SIZE} holds, but a printed number is further away than the check's tolerance")
    return "\n".join([*said, "", *(f"{one.words()}." for one in papers)])


def _cell(claim: NumberedClaim | None, shown: CheckResult | None) -> str:
    """Returns a claim's verdict under a reading, and the measured value of the check that is shown."""
    if claim is None:
        return "–"
    verdict = f"{_SIZE} in size" if claim.verdict == "differs in size" else claim.verdict
    measured = measured_by(claim, shown)
    return f"{verdict}: {measured}" if measured else verdict


def measured_by(claim: NumberedClaim, shown: CheckResult | None) -> str:
    """Returns the number of the check that is shown, as a claim of another reading has it; empty if it has
    none."""
    key = None if shown is None else (shown.id, shown.scenario, shown.mode)
    same = [one for one in claim.checks if (one.id, one.scenario, one.mode) == key]
    return short(same[0]) if same and same[0].measured is not None else ""


def by_reading_json(papers: Sequence[PaperByReading], machine: str = HERE) -> dict[str, Any]:
    """Returns ``papers`` and ``claims`` of ``streamgauge.papers/1``: verdict and checks of the default
    reading, and those of each by its name; emulated trials ran on `machine`."""
    return {
        "papers": [
            one.chosen.to_json()
            | {
                "default": one.default,
                "readings": {name: outcome.counts() for name, outcome in one.outcomes.items()},
            }
            for one in papers
        ],
        "claims": [
            claim.to_json(one.paper, machine)
            | {
                "held_out": one.held_out.get(claim.id),
                "readings": {
                    name: outcome.claims[place].to_json(one.paper, machine)
                    for name, outcome in one.outcomes.items()
                },
            }
            for one in papers
            for place, claim in enumerate(one.chosen.claims)
        ],
    }
