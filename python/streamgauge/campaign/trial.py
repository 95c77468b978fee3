"""One trial: lowered, run in its mode, finished into a record, measured."""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.campaign.index import Index, IndexedTrial
from streamgauge.campaign.layout import campaign_of, keep_logs, place
from streamgauge.campaign.plan import Job, versions_used
from streamgauge.campaign.stored import FILE, has_metrics, load_metrics, save_metrics
from streamgauge.checks import Leaves, Number, take
from streamgauge.errors import CannotRunError, RecordError, StreamGaugeError
from streamgauge.media import ContentStore, store_at
from streamgauge.metrics import TrialMetrics, compute
from streamgauge.record import Record, RecordInMemory, finish_trial, prune, rewrite_trial
from streamgauge.record.read import Column, Saying
from streamgauge.record.write import JsonText
from streamgauge.scenario import Scenario, lower
from streamgauge.scenario.lower import Keep
from streamgauge.systems.machines import begins_ns
from streamgauge.systems.registry import Mode

if TYPE_CHECKING:
    from streamgauge.emu.concurrency import ConcurrentTrials

__all__ = ["EmuSettings", "Outcome", "disk_errors", "reuse", "run_job"]


@dataclass(frozen=True, kw_only=True)
class EmuSettings:
    """How emu runs."""

    way: str | None = None
    """``root`` or ``user``; by who we are if ``None``."""
    capture: bool = False
    """Keep ``capture.pcapng``."""
    jobs: int = 1
    """How many emu trials run at the same time on this machine.

    1 is the rule: two trials disturb each other. With more, the run holds the machine's lock from its first
    emu trial to its last, and each trial's own validity verdict says whether the processors were enough for
    it: a machine that cannot carry so many shows it in invalid trials, told as ever and never averaged in.
    `provenance.json` has ``concurrent_trials``: ``{"allowed", "most"}``.
    """
    replace: int = 0
    """How many further seeds may stand, one after the other, for a repetition whose trial is invalid.

    0 replaces nothing. Each is told: `Outcome.replaced_by`, ``replaces`` in its record, and in the verdicts.
    """
    spin: bool | None = None
    """Whether emulators spin away the last 50 us before a departure; only one that runs alone if ``None``."""
    brought: tuple[Path, ...] = ()
    """Folders that a virtual machine gets as well, at the same place (`EmuOptions.brought`)."""

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise ValueError(f"jobs is {self.jobs}; at least one trial runs at a time.")
        if self.replace < 0:
            raise ValueError(f"replace is {self.replace}; 0 replaces no trial.")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one trial."""

    job: Job
    valid: bool
    why: tuple[str, ...]
    digest: str | None
    wall_s: float
    readings: Mapping[str, Number] = field(default_factory=dict)
    """What was asked for of its metrics: the leaves of checks, by their text."""
    reused: bool = False
    replaced_by: int | None = None
    """The seed of the valid trial that stands for this invalid one."""

    @property
    def metrics(self) -> TrialMetrics | None:
        """All its metrics, read from its folder each time; ``None`` if it left nothing to measure."""
        if self.digest is None:
            return None
        return load_metrics(self.job.directory, _measure(self.job))

    @property
    def counts(self) -> bool:
        """Whether it is its repetition's: neither replaced, nor an invalid trial in another's place."""
        return self.valid or (self.replaced_by is None and self.job.replaces is None)

    @property
    def simulated_s(self) -> float:
        """Trial time that it covers, s."""
        return self.job.seconds if self.digest is not None else 0.0

    def to_json(self) -> dict[str, Any]:
        """Its place in ``streamgauge.run/1``."""
        metrics = self.metrics
        return {
            "scenario": self.job.scenario.id,
            "mode": self.job.mode,
            "seed": self.job.seed,
            "valid": self.valid,
            "why": list(self.why),
            "replaces": self.job.replaces,
            "replaced_by": self.replaced_by,
            "directory": str(self.job.directory),
            "digest": self.digest,
            "flows": {} if metrics is None else {name: metrics.flow_json(name) for name in metrics.flows},
        }


_DISK = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.ENOTEMPTY,
    errno.EIO,
)


@contextmanager
def disk_errors(directory: Path) -> Iterator[None]:
    """A full or read-only disk is the machine's failing, and says its remedy."""
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK:
            raise
        remedy = "choose another folder with --out"
        if error.errno == errno.EFBIG:
            remedy = "raise the limit of a file's size (ulimit -f), or store less with --keep metrics"
        elif error.errno in (errno.ENOSPC, errno.EDQUOT):
            remedy = "free some space, choose another folder with --out, or store less with --keep metrics"
        raise CannotRunError(f"cannot write {directory}: {error.strerror}; {remedy}.") from error


def _measure(job: Job) -> dict[str, Any]:
    return job.scenario.measure.model_dump(mode="json", by_alias=True, exclude_none=True)


@contextmanager
def _logs_kept(partial: Path, directory: Path) -> Iterator[None]:
    """A trial that breaks keeps its logs, and the error says where."""
    try:
        yield
    except StreamGaugeError as error:
        if (kept := keep_logs(partial, directory)) is None:
            raise
        raise type(error)(f"{error} Logs: {kept}") from error


def run_job(
    job: Job,
    *,
    keep: Keep,
    emu: EmuSettings,
    say: Callable[[str], None],
    leaves: Leaves | None = None,
    concurrent: ConcurrentTrials | None = None,
    wanted: Callable[[], bool] = lambda: True,
) -> Outcome:
    """Runs one trial and leaves its record in ``job.directory``, or leaves nothing.

    ``say`` takes a line about what is being waited for. ``leaves`` are read of its metrics. ``concurrent``
    are the emu trials that it runs among; without, it takes the machine's lock and runs alone. ``wanted`` is
    asked before the record takes its place. Raises StreamGaugeError.
    """
    began = time.monotonic()
    with disk_errors(job.directory), place(job.directory) as partial:
        # Metrics are computed from the packets; what is not to be kept goes after that.
        contents = store_at(campaign_of(job.directory))
        plan = lower(job.scenario, job.mode, job.seed, contents=contents)
        tables: _Tables | None = None
        plan_text: JsonText | None = None
        if job.mode == "sim":
            # What is not kept, and read by nobody else, is not even written.
            in_memory = keep == "metrics" and job.extra is None
            plan_text = JsonText.of(plan)
            summary, provenance, tables = _simulate(plan_text, partial, contents, in_memory=in_memory)
            validity = _sim_validity(plan, summary)
        else:
            from streamgauge.emu import run_trial  # Linux alone has it

            with _logs_kept(partial, job.directory):
                found = run_trial(job.scenario, plan, job.seed, partial, _emu_options(emu, say, concurrent))
            validity, summary, provenance = found["validity"], found["summary"], found["provenance"]
        as_run = _as_run(job.scenario, job.mode)
        measured: list[TrialMetrics] = []

        def measure(trial: dict[str, Any]) -> None:
            record = Record(partial, trial) if tables is None else RecordInMemory.of(partial, trial, *tables)
            measured.append(compute(record, job.scenario))
            save_metrics(partial, measured[0], as_run.get("measure", {}))

        trial = finish_trial(
            partial,
            scenario=as_run,
            plan=plan,
            plan_text=plan_text,
            mode=job.mode,
            seed=job.seed,
            validity=validity,
            provenance=provenance,
            resume_key=job.key,
            summary=summary,
            ours=_ours(job),
            systems=versions_used(job.scenario, job.mode),
            settings=job.settings,
            set_with=job.set_with,
            replaces=job.replaces,
            in_memory=tables is not None,
            measure=measure,
        )
        if job.extra is not None:
            job.extra.take(partial)
        if keep != "packets" and tables is None:
            prune(partial, keep)
        if not wanted():
            raise CannotRunError(f"{job.directory}: the campaign that asked for this trial is gone.")
    return Outcome(
        job=job,
        valid=bool(trial["validity"]["valid"]),
        why=tuple(trial["validity"]["why"]),
        digest=str(trial["digest"]),
        wall_s=time.monotonic() - began,
        readings=take(measured[0], leaves or {}),
    )


_last_run: tuple[Scenario, Mode, dict[str, Any]] | None = None


def _as_run(scenario: Scenario, mode: Mode) -> dict[str, Any]:
    """The scenario as the records of its trials have it, for nobody to change. Of one with a population it
    takes milliseconds to make, and is the same for all trials of a scenario, which mostly come in a row."""
    global _last_run
    found = _last_run
    if found is None or found[0] is not scenario or found[1] != mode:
        found = _last_run = (scenario, mode, scenario.in_mode(mode).normalised())
    return found[2]


def _ours(job: Job) -> dict[str, bool]:
    flows = job.scenario.in_mode(job.mode).flows
    return {
        name: flow.registered is not None
        and flow.registered.written_by_us(job.mode, flow.parameters, arrivals=flow.arrivals is not None)
        for name, flow in flows.items()
    }


def _emu_options(emu: EmuSettings, say: Callable[[str], None], concurrent: ConcurrentTrials | None) -> Any:
    from streamgauge.emu import EmuOptions

    return EmuOptions(
        way=emu.way,
        capture=emu.capture,
        say=say,
        concurrent=concurrent,
        spin=emu.spin,
        brought=emu.brought,
    )


_Tables = tuple[list[tuple[str, Column]], list[Saying]]
"""Packets and events, as `RecordInMemory.of` takes them."""


def _simulate(
    plan: JsonText, directory: Path, contents: ContentStore | None = None, *, in_memory: bool = False
) -> tuple[Any, dict[str, Any], _Tables | None]:
    """Summary and provenance, and where nothing is to be written what would have been."""
    from streamgauge import _native

    began = time.monotonic()
    loaded = None if contents is None else contents.loaded
    tables: _Tables | None = None
    if in_memory:
        text, packets, events = _native.simulate_in_memory(plan, loaded)
        tables = (packets, events)
    else:
        text = _native.simulate(plan, str(directory), loaded)
    summary = json.loads(text)
    provenance = {"wall_s": time.monotonic() - began}
    return summary, provenance, tables


def _sim_validity(plan: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    """Sim has no clock to be late by; what is left is conservation, and flows that never sent."""
    unaccounted = [str(line) for line in summary["imbalance"]]
    # A relay may answer in place of its flows' servers.
    starts = {
        flow["name"]: max(flow["start"], begins_ns(flow)) for flow in plan["flows"] if flow.get("via") is None
    }
    silent = [
        flow["name"]
        for flow in summary["flows"]
        if not flow["server_sent_bytes"]
        and starts.get(flow["name"], plan["duration"]) < summary["duration_ns"]
    ]
    why = unaccounted + [f"flow {name} never sent" for name in silent]
    return {
        "valid": not why,
        "why": why,
        "bounds": {"unaccounted": 0, "silent_flows": 0},
        "measured": {"unaccounted": len(unaccounted), "silent_flows": len(silent)},
    }


def _reworded(directory: Path, trial: dict[str, Any], as_run: dict[str, Any]) -> dict[str, Any]:
    """The trial with the scenario as it reads now: words, checks or measure changed, not what it leaves."""
    from streamgauge import _native

    digests = (trial["packets_digest"] or "", trial["events_digest"] or "")
    digest = _native.trial_digest(json.dumps(as_run, allow_nan=False), *digests)
    with disk_errors(directory):
        return rewrite_trial(directory, trial, scenario=as_run, digest=digest)


_FILES: dict[Keep, tuple[str, ...]] = {
    "metrics": (),
    "events": ("events.parquet",),
    "packets": ("packets.parquet", "events.parquet"),
}


def reuse(
    job: Job,
    keep: Keep,
    leaves: Leaves | None = None,
    *,
    index: Index | None = None,
    verify: bool = False,
    invalid_too: bool = False,
) -> Outcome | None:
    """The trial as it lies in its place already, if it is the same; ``None`` if it must run.

    Args:
        job: the trial.
        keep: what of its record must be there.
        leaves: what is read of its metrics.
        index: the folder's; what it tells of the trial is not read again.
        verify: read the whole record, and take it only if it is what was written. Without, files that are
            there are trusted.
        invalid_too: take an invalid emu trial as well.
    """
    wanted = leaves or {}
    known = None if index is None or verify else index.find(job.directory)
    if job.extra is None and not has_metrics(job.directory):
        known = None
    if known is None or known.scenario != job.words or not known.readings.keys() >= wanted.keys():
        known = _read_again(job, wanted, verify=verify)
        if known is not None and index is not None:
            index.add(job.directory, known)
    if known is None or known.key != job.key:
        return None
    if job.mode == "emu" and not known.valid and not invalid_too:
        return None
    if not all((job.directory / name).exists() for name in _FILES[keep]):
        return None
    if job.extra is not None and not job.extra.has(job.directory):
        return None
    return Outcome(
        job=job,
        valid=known.valid,
        why=known.why,
        digest=known.digest,
        wall_s=0.0,
        readings={text: known.readings[text] for text in wanted if text in known.readings},
        reused=True,
    )


def indexed(outcome: Outcome) -> IndexedTrial | None:
    """What an index keeps of a trial that has just run; ``None`` of one that left no record."""
    if outcome.digest is None:
        return None
    job = outcome.job
    return IndexedTrial(
        job.key, job.words, outcome.valid, outcome.why, outcome.digest, job.replaces, outcome.readings
    )


def _read_again(job: Job, leaves: Leaves, *, verify: bool) -> IndexedTrial | None:
    """What lies in the trial's place, if it is the same; its scenario as it reads now, its metrics as they
    are measured now."""
    try:
        trial = json.loads((job.directory / "trial.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if trial.get("resume_key") != job.key:
        return None
    if verify:
        try:
            Record.open(job.directory).verify()
        except RecordError:
            return None
    as_run = job.scenario.in_mode(job.mode).normalised()
    if trial["scenario"] != as_run:
        trial = _reworded(job.directory, trial, as_run)
    measure = as_run.get("measure", {})
    metrics = load_metrics(job.directory, measure)
    if metrics is None and (job.directory / "packets.parquet").exists():
        try:
            metrics = compute(Record.open(job.directory), job.scenario)
        except RecordError:
            return None
        with disk_errors(job.directory):
            save_metrics(job.directory, metrics, measure)
            rewrite_trial(job.directory, trial, anew=(FILE,))
    # Who keeps something else of a trial reads that; metrics of an older schema are no reason to run again.
    if metrics is None and job.extra is None:
        return None
    return IndexedTrial(
        key=job.key,
        scenario=job.words,
        valid=bool(trial["validity"]["valid"]),
        why=tuple(trial["validity"]["why"]),
        digest=str(trial["digest"]),
        replaces=trial.get("replaces"),
        readings={} if metrics is None else take(metrics, leaves),
    )
