"""The answer in plain words: what happened to a flow when the network got tight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamgauge.metrics import Interval, TrialMetrics
from streamgauge.metrics.dimension import PERCENT, RATE, TIME, say
from streamgauge.report.model import Entry, Group, say_mean
from streamgauge.report.words import bottleneck_words

HELD_RATE, BACKED_OFF = 0.95, 0.8
"""A flow that sends this share of its earlier rate or more held on; this share or less, it backed off."""


BURST_S = 3.0
"""Company shorter than this says nothing about backing off."""


@dataclass(frozen=True)
class Answer:
    """A scenario's answer: one sentence a flow, and where and how often it was measured."""

    scenario: str
    question: str
    sentences: tuple[str, ...]
    basis: str
    """Mode and n; what the number was measured on is in `conditions`."""
    conditions: str

    def __str__(self) -> str:
        return " ".join([*self.sentences, f"({self.basis}; {self.conditions})"])


def active(trial: TrialMetrics, flow: str) -> tuple[float, float] | None:
    """When a flow was at it, in s: from the first to the last sample with at least half its usual packets.

    None if it sent nothing. Usual is the median over samples with any, so that a sample that holds only the
    flow's first or last packets is not taken for company.
    """
    packets = trial.flows[flow].series["sent_packets"].numerator
    if not packets.any():
        return None
    sent = np.flatnonzero(packets >= 0.5 * np.median(packets[packets > 0]))
    edges = trial.grid.edges_ns / 1e9
    return float(edges[sent[0]]), float(edges[sent[-1] + 1])


@dataclass(frozen=True)
class Phases:
    """When a subject ran alone, and when it had company, inside the measurement window, in s."""

    before: tuple[float, float] | None
    during: tuple[float, float]


def phases(entry: Entry, trial: TrialMetrics, subject: str) -> Phases | None:
    """A subject's time without and with its rivals; None if nothing competed with it."""
    rivals = [found for name in entry.names("rival") if (found := active(trial, name))]
    mine = active(trial, subject)
    if not rivals or mine is None:
        return None
    begin = max(min(start for start, _ in rivals), mine[0], trial.grid.begin_s)
    end = min(max(stop for _, stop in rivals), mine[1], trial.grid.end_s)
    if end - begin < trial.grid.sample_s:
        return None
    alone = max(mine[0], trial.grid.begin_s)
    before = (alone, begin) if begin - alone >= max(1.0, 2 * trial.grid.sample_s) else None
    return Phases(before, (begin, end))


def answer(entry: Entry) -> Answer:
    """One scenario's answer, from the mode that answers best: emulation where it is valid."""
    group = entry.best
    question = str(entry.scenario.get("question") or entry.scenario.get("title") or entry.id)
    conditions = bottleneck_words(entry.plan)
    if not group.valid:
        reasons = sorted({reason for trial in group.trials for reason in trial.why})
        why = "; ".join(reasons[:3]) or "nothing to measure"
        return Answer(
            entry.id, question, ("No valid trial, so no answer.",), f"{group.mode}: {why}", conditions
        )
    sentences = tuple(_flow_sentence(entry, group, name) for name in entry.names("subject"))
    return Answer(entry.id, question, sentences, basis(group), conditions)


def basis(group: Group) -> str:
    """Mode, n and kind of interval: what a number rests on."""
    mode = {"sim": "simulated", "emu": "emulated"}.get(group.mode, group.mode)
    shown = group.shown
    if shown is not None and group.mode == "emu":
        subjects = [flow.info for flow in shown.flows.values() if flow.info.role == "subject"]
        whose = sorted({"our" if info.ours else "third-party" for info in subjects})
        mode += f" with {' and '.join(whose)} programs"
    n = len(group.valid)
    return f"{mode}, n = {n}" + (", so no interval" if n < 2 else "")


def _flow_sentence(entry: Entry, group: Group, name: str) -> str:
    shown = group.valid[0]
    found = phases(entry, shown, name)
    label = f"{entry.id}: {name}" if len(entry.names("subject")) > 1 else entry.id
    if found is None:
        sent = group.say("throughput", name)
        return f"{label} sent {sent} and lost {group.say('loss', name)}; {_delay(group, name, None)}."
    rivals = entry.names("rival")
    with_rivals = " and ".join(rivals)
    rival_rate = group.over_each(
        lambda trial: sum(trial.value("throughput", rival, *found.during) for rival in rivals)
    )
    load = "" if rival_rate is None else f" sending {say_mean(rival_rate, 'throughput')}"
    stretch = f"{found.during[0]:g} s to {found.during[1]:g} s"
    during = group.say("throughput", name, *found.during)
    loss = group.say("loss", name, *found.during)
    got = group.say("goodput", name, *found.during)
    if found.before is None:
        return (
            f"{label} sent {during} beside {with_rivals}{load} ({stretch}), lost {loss} and got {got} of "
            f"payload through; {_delay(group, name, found.during)}."
        )
    length = found.during[1] - found.during[0]
    verb = _verb(group, name, found) if length >= BURST_S else f"met a burst of less than {BURST_S:g} s"
    before = group.say("throughput", name, *found.before)
    loss_before = group.say("loss", name, *found.before)
    delay = _delay(group, name, found.during)
    return (
        f"{label} {verb}: it sent {before} alone and {during} beside {with_rivals}{load} ({stretch}). "
        f"It lost {loss} (alone {loss_before}) and got {got} of payload through; {delay}."
    )


def _verb(group: Group, name: str, found: Phases) -> str:
    def kept(trial: TrialMetrics) -> float:
        assert found.before is not None
        before = trial.value("throughput", name, *found.before)
        return trial.value("throughput", name, *found.during) / before if before else float("nan")

    share = group.over_each(kept)
    if share is None:
        return "ran"
    change = say(abs(1 - share.mean), PERCENT)
    if share.mean <= BACKED_OFF:
        return f"backed off by {change}"
    if share.mean < HELD_RATE:
        return f"backed off a little, by {change}"
    if share.mean > 1 / HELD_RATE:
        return f"sent {change} more under congestion"
    return "did not back off"


def _delay(group: Group, name: str, stretch: tuple[float, float] | None) -> str:
    begin, end = stretch or (None, None)
    found: Interval | None = group.over("queue_delay", name, begin, end)
    if found is None:
        return "its queueing delay is unknown"
    return f"its packets stayed {say(found.mean, TIME)} in the bottleneck on average"


def answer_text(entries: Sequence[Entry]) -> str:
    """All answers as plain text for a terminal: one question once, then its answers."""
    lines: list[str] = []
    for question, answers in by_question(entries):
        lines += ([""] if lines else []) + [question]
        common = shared_basis([found for _, found in answers])
        for _, found in answers:
            lines.append(f"  - {' '.join(found.sentences)}" + ("" if common else f" ({own_basis(found)})"))
        if common:
            lines.append(f"    ({common})")
    if lines:
        lines += ["", PLUS_MINUS]
    return "\n".join(lines)


PLUS_MINUS = "± is half the 95 % interval (Student's t); it is left out where nothing varied and for n = 1."


def by_question(entries: Sequence[Entry]) -> list[tuple[str, list[tuple[Entry, Answer]]]]:
    """Questions in order, each with the scenarios that ask it and their answers."""
    asked: dict[str, list[tuple[Entry, Answer]]] = {}
    for entry in entries:
        found = answer(entry)
        asked.setdefault(found.question, []).append((entry, found))
    return list(asked.items())


def own_basis(found: Answer) -> str:
    """What one answer rests on."""
    return f"{found.basis}; {found.conditions}"


def shared_basis(answers: Sequence[Answer]) -> str:
    """What all answers rest on, to be said once; empty if they differ."""
    bases = {own_basis(found) for found in answers}
    return bases.pop() if len(bases) == 1 and len(answers) > 1 else ""


def summary(entries: Sequence[Entry]) -> str:
    """What scenarios of one question got through and lost, in one sentence; empty for fewer than three."""
    told = []
    if len(entries) < 3:
        return ""
    subjects = {name for entry in entries for name in entry.names("subject")}
    for name in sorted(subjects):
        parts = []
        for entry in entries:
            got, lost = entry.best.over("goodput", name), entry.best.over("loss", name)
            if got is not None and lost is not None:
                label = entry.id.rpartition("-")[2]
                parts.append(f"{label} {say(got.mean, RATE)} ({say(lost.mean, PERCENT, 2)} lost)")
        if parts:
            told.append(f"Payload that {name} got through over the whole run: {', '.join(parts)}.")
    return " ".join(told)
