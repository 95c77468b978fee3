"""The answer in plain words: the viewer's experience and the fate of a flow under congestion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamgauge.claims.dimension import PERCENT, RATE, TIME, plain, say, show
from streamgauge.metrics import Interval
from streamgauge.report.certificate import virtual_machine
from streamgauge.report.model import Entry, Group, class_labels, listed, mean_of, say_mean
from streamgauge.report.observed import CAPTURED, observed_of
from streamgauge.report.phases import Phases
from streamgauge.report.viewer import viewer_sentence
from streamgauge.report.words import bottleneck_words, relay_words
from streamgauge.report.yes_no import yes_or_no
from streamgauge.systems.machines import origin

HELD_RATE, BACKED_OFF = 0.95, 0.8
"""A flow that sends this share of its earlier rate or more held on; this share or less, it backed off."""


BURST_S = 3.0
"""Shorter company gives no evidence of backing off."""
NEARLY_ALL = 0.95
"""A flow that sends for this share of a stretch or more counts as without a pause in it."""
MANY = 3
"""Number of flows beside a flow from which they are not described one by one."""


@dataclass(frozen=True)
class Answer:
    """A scenario's answer: for each flow the viewer's experience and its fate, with the mode and number of
    the measurements."""

    scenario: str
    title: str
    """The scenario's name in words."""
    question: str
    sentences: tuple[str, ...]
    basis: str
    """Mode and n; the conditions of the number are in `conditions`."""
    conditions: str

    def __str__(self) -> str:
        return " ".join([*self.sentences, f"({self.basis}; {self.conditions})"])


def answer(entry: Entry, group: Group) -> Answer:
    """Returns one scenario's answer, from its trials in one mode."""
    question, conditions = _question(entry), bottleneck_words(entry)
    if not group.valid:
        reasons = sorted({reason for trial in group.trials for reason in trial.why})
        why = "; ".join(reasons[:3]) or "nothing to measure"
        no = f"No valid trial, so no answer; {_remedy(reasons)}."
        return Answer(entry.id, entry.title, question, (no,), f"{group.mode}: {why}", conditions)
    if (observed := observed_of(group)) is not None and observed.get("answer"):
        return Answer(entry.id, entry.title, question, tuple(observed["answer"]), basis(group), conditions)
    told = tuple(_flow_sentences(entry, group, name) for name in spoken_of(entry, group))
    sentences = told or ("The only subjects are pings, which have no answer.",)
    return Answer(entry.id, entry.title, question, sentences, basis(group), conditions)


_WANT_OF_A_PROCESSOR = ("departures", "reached the ends", "processor", "pre-flight")
"""Words of reasons that a busy machine gives."""


def _remedy(reasons: Sequence[str]) -> str:
    if reasons and all(any(word in reason for word in _WANT_OF_A_PROCESSOR) for reason in reasons):
        return "end other programs that load this machine and run it again, or add --machine virtual"
    return "the trial's folder has the logs of its programs: repair the faults there and run it again"


def spoken_of(entry: Entry, group: Group) -> list[str]:
    """Returns the subjects of an answer: all but a relay at the server that itself sent nothing, as its data
    for its flows crosses the path under their names."""
    relays = entry.scenario.get("relays") or {}

    def is_silent(name: str) -> bool:
        sent = group.over("sent", name)
        return sent is None or sent.mean == 0

    at_server = {name for name, relay in relays.items() if relay["at"] == "server"}
    return [name for name in entry.names("subject") if name not in at_server or not is_silent(name)]


def basis(group: Group) -> str:
    """Returns mode, n and kind of interval: the basis of a number."""
    mode = {"sim": "simulated", "emu": "emulated"}.get(group.mode, group.mode)
    if group.mode == CAPTURED:
        return "from captures, no plan"
    if group.valid and group.mode == "emu":
        subjects = [info for info in group.numbers.infos.values() if info.role == "subject"]
        whose = sorted({origin(info.system, ours=info.ours).replace("ours", "our") for info in subjects})
        if virtual_machine(group.trials) is not None:
            mode += " in a virtual machine"
        mode += f" with {' and '.join(whose)} programs"
    n = len(group.valid)
    return f"{mode}, n = {n}" + (", so no interval" if n < 2 else "")


def _flow_sentences(entry: Entry, group: Group, name: str) -> str:
    """Returns the experience of a flow's viewer, then its fate; for short transfers also their time."""
    seen = viewer_sentence(group, name, named=len(spoken_of(entry, group)) > 1)
    return f"{seen} {_passage(entry, group, name)}{_transfers(group, name)}".strip()


def _transfers(group: Group, name: str) -> str:
    mean, p95 = group.over("completion_time", name), group.over("completion_time_p95", name)
    if mean is None or p95 is None:
        if not group.numbers.has_transfers(name):
            return ""
        ever = group.numbers.completed_transfers(name)
        return f" None of its transfers completed{' in the measurement window' if ever else ''}."
    took = say_mean(mean, "completion_time")
    return f" Its transfers took {took} on average, 95 % of them at most {say(p95.mean, TIME)}."


def _passage(entry: Entry, group: Group, name: str) -> str:
    found = group.phases(name)
    if found is None:
        total = group.over("sent", name)
        if total is not None and total.mean == 0:
            return f"{name} sent nothing{_beside_the_path(entry, group, name)}."
        sent, lost = group.say("throughput", name), group.say("sent_loss", name)
        return f"{name} sent {sent} and lost {lost}; {_delay(group, name, None)}."
    stretch = f"{plain(found.during[0])} s to {plain(found.during[1])} s"
    beside = f"beside {_company(group, name, found)} ({stretch})"
    # All bits sent in these seconds: those that a queue still delivers from before are left out.
    during = group.say("throughput", name, *found.during)
    loss = group.say("sent_loss", name, *found.during)
    got = group.say("sent_goodput", name, *found.during)
    delay = _delay(group, name, found.during)
    if found.before is None:
        return f"{name} sent {during} {beside}, lost {loss} and got {got} of payload through; {delay}."
    length = found.during[1] - found.during[0]
    verb = _verb(group, name, found) if length >= BURST_S else f"met a burst of less than {plain(BURST_S)} s"
    before = group.say("throughput", name, *found.before)
    loss_before = group.say("sent_loss", name, *found.before)
    return (
        f"{name} {verb}: it sent {before} alone and {during} {beside}. "
        f"It lost {loss} (alone {loss_before}) and got {got} of payload through; {delay}."
    )


def _beside_the_path(entry: Entry, group: Group, name: str) -> str:
    """Returns why a flow sent nothing if it uses a relay at the client, and that it was served nonetheless if
    its player played in every trial; empty without such a relay."""
    relay = relay_words(entry, name)
    if not relay.endswith(" at the client"):
        return ""
    if group.numbers.played(name):
        return f" across the path: {relay} served it"
    return f" across the path, because {relay} is between"


def _company(group: Group, name: str, found: Phases) -> str:
    """Returns the senders beside a flow, and their rates: each by itself if there are few, else from least to
    most."""
    told = [_sending(group, one, name, found.during) for one in found.company]
    rates = [group.over("sending_rate", one, *found.during) for one in found.company]
    means = [rate.mean for rate in rates if rate is not None]
    if len(told) < MANY or len(means) < len(told):
        return listed(told)
    least, most = say(min(means), RATE), say(max(means), RATE)
    span = least if least == most else f"{least} to {most}"
    return f"{listed(found.company)}, each sending {span} while it does"


def _sending(group: Group, flow: str, beside: str, stretch: tuple[float, float]) -> str:
    """Returns a flow that sent beside another, with its rate while it did, and for how long if not all the
    time."""
    rate = group.over("sending_rate", flow, *stretch)
    time = group.over("sending_time", flow, *stretch)
    if rate is None or time is None:
        return flow
    text = f"{flow} sending {say_mean(rate, 'sending_rate')}"
    infos = group.numbers.infos
    if infos[flow].direction != infos[beside].direction:
        text += " the other way"
    whole = time.mean >= NEARLY_ALL * (stretch[1] - stretch[0])
    return text if whole else f"{text} for {say(time.mean, TIME)}"


def _verb(group: Group, name: str, found: Phases) -> str:
    assert found.before is not None
    before = group.values("throughput", name, *found.before)
    during = group.values("throughput", name, *found.during)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = mean_of(np.where(before == 0, np.nan, during / before))
    if share is None:
        return "ran"
    change = show(abs(1 - share.mean), share.half_width, PERCENT)
    if share.mean <= BACKED_OFF:
        return f"backed off by {change}"
    if share.mean < HELD_RATE:
        return f"backed off a little, by {change}"
    if share.mean > 1 / HELD_RATE:
        return f"sent {change} more than alone"
    return "did not back off"


def _delay(group: Group, name: str, stretch: tuple[float, float] | None) -> str:
    begin, end = stretch or (None, None)
    found: Interval | None = group.over("queue_delay", name, begin, end)
    if found is None:
        return "its queueing delay is unknown"
    return f"its packets stayed {say_mean(found, 'queue_delay')} in the bottleneck on average"


def answer_text(entries: Sequence[Entry]) -> str:
    """Returns all answers as plain text for a terminal: a question once, yes or no if it asks that, its
    answers."""
    lines: list[str] = []
    for asked in by_question(entries):
        lines += ([""] if lines else []) + [asked.question]
        lines += [f"  {asked.verdict}"] if asked.verdict else []
        common = asked.basis
        for found in asked.answers:
            parts = [found.scenario] if found.title != found.scenario else []
            parts += [] if common else [own_basis(found)]
            told = f" ({'; '.join(parts)})" if parts else ""
            lines.append(f"  - {found.title}: {' '.join(found.sentences)}{told}")
        if common:
            lines.append(f"    ({common})")
        if asked.why_simulated:
            lines.append(f"    {asked.why_simulated}")
    if lines:
        lines += ["", PLUS_MINUS]
    return "\n".join(lines)


PLUS_MINUS = (
    "± is half the 95 % interval (Student's t); brackets have its ends where one would be below zero. It is "
    "left out for n = 1, and where the variation is below the digits shown."
)


@dataclass(frozen=True)
class Asked:
    """A question with the answers of the scenarios that ask it, in order."""

    question: str
    answers: tuple[Answer, ...]
    summary: str
    """Throughput and loss of all of them; empty for fewer than three."""
    verdict: str
    """Yes or no, and the evidence; empty if it is no such question or is undecided."""
    why_simulated: str
    """Why simulation answers although trials were emulated, in a line; empty if it does not."""

    @property
    def basis(self) -> str:
        """Returns the common basis of all answers; empty if they differ."""
        bases = {own_basis(found) for found in self.answers}
        return bases.pop() if len(bases) == 1 and len(self.answers) > 1 else ""


def by_question(entries: Sequence[Entry]) -> list[Asked]:
    """Questions in order, each answered from one mode where that is possible: like with like."""
    asked: dict[str, list[Entry]] = {}
    for entry in entries:
        asked.setdefault(_question(entry), []).append(entry)
    found = []
    for question, mine in asked.items():
        groups = answering(mine)
        answers = tuple(answer(entry, group) for entry, group in zip(mine, groups, strict=True))
        verdict = yes_or_no(question, mine, groups)
        found.append(Asked(question, answers, summary(mine, groups), verdict, _why_simulated(mine, groups)))
    return found


def answering(entries: Sequence[Entry]) -> list[Group]:
    """Returns the trials by which scenarios of one question answer: all emulated where all have valid ones,
    else all simulated where all have that, else each scenario's best."""
    for mode in ("emu", "sim"):
        groups = [group for entry in entries if (group := entry.group(mode)) is not None and group.valid]
        if len(groups) == len(entries):
            return groups
    return [entry.best for entry in entries]


def _why_simulated(entries: Sequence[Entry], groups: Sequence[Group]) -> str:
    emulated = [entry.group("emu") for entry in entries]
    if any(group.mode != "sim" for group in groups) or not any(emulated):
        return ""
    parts = []
    for entry, group in zip(entries, emulated, strict=True):
        if group is None:
            parts.append(f"{entry.id} was not emulated")
        elif not group.valid:
            reasons = sorted({reason for trial in group.trials for reason in trial.why})
            why = f" ({len(group.trials)} tried: {reasons[0]})" if reasons else ""
            parts.append(f"no emulated trial of {entry.id} is valid{why}")
    more = f"; {len(parts) - 2} more like these" if len(parts) > 2 else ""
    return f"Answered by simulation: {'; '.join(parts[:2])}{more}."


def _question(entry: Entry) -> str:
    return str(entry.scenario.get("question") or entry.title)


def own_basis(found: Answer) -> str:
    """Returns the basis of one answer."""
    return f"{found.basis}; {found.conditions}"


def summary(entries: Sequence[Entry], groups: Sequence[Group]) -> str:
    """Returns throughput and loss of one question's scenarios, in one sentence; empty for fewer than
    three."""
    told = []
    if len(entries) < 3:
        return ""
    short = class_labels(entries, groups)
    subjects = {name for entry in entries for name in entry.names("subject")}
    for name in sorted(subjects):
        parts = []
        for entry, group in zip(entries, groups, strict=True):
            got, lost = group.over("goodput", name), group.over("loss", name)
            if got is not None and lost is not None:
                through, gone = say_mean(got, "goodput"), say_mean(lost, "loss", 2)
                parts.append(f"{short[entry.id]} {through} ({gone} lost)")
        if parts:
            told.append(f"Payload that {name} got through over the whole run: {', '.join(parts)}.")
    return " ".join(told)
