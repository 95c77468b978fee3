"""One trial: lowered, run in its mode, finished into a record, measured."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from streamgauge.campaign.index import Index, IndexedTrial
from streamgauge.campaign.layout import campaign_of, keep_logs, place
from streamgauge.campaign.plan import Job, resume_key, versions_used
from streamgauge.campaign.stored import FILE, has_metrics, load_metrics, save_metrics
from streamgauge.checks import Leaves, Number, take
from streamgauge.errors import CannotRunError, RecordError, StreamGaugeError, errno_of
from streamgauge.media import ContentStore, store_at
from streamgauge.metrics import TrialMetrics, compute
from streamgauge.record import Record, RecordInMemory, finish_trial, prune, rewrite_trial
from streamgauge.record.header import REQUIRED, read_trial
from streamgauge.record.read import Column, Saying
from streamgauge.record.write import JsonText
from streamgauge.scenario import Scenario, lower
from streamgauge.scenario.lower import Keep
from streamgauge.systems.machines import begins_ns
from streamgauge.systems.registry import Mode

if TYPE_CHECKING:
    from streamgauge.emu.concurrency import ConcurrentTrials

__all__ = ["EmuSettings", "Outcome", "Simulator", "disk_errors", "reuse", "run_job"]


@dataclass(frozen=True, kw_only=True)
class EmuSettings:
    """How emu runs."""

    way: str | None = None
    """``root`` or ``user``; ``None`` decides by the current user."""
    capture: bool = False
    """Keep ``capture.pcapng``."""
    jobs: int = 1
    """How many emu trials run at the same time on this machine.

    1 is the rule: two trials disturb each other. With more, the run holds the machine's lock from its first
    emu trial to its last, and each trial's own validity verdict covers whether the processors were enough for
    it: an overloaded machine shows it in invalid trials, reported as ever and never averaged in.
    `provenance.json` has ``concurrent_trials``: ``{"allowed", "most"}``.
    """
    replace: int = 0
    """Number of further seeds that may replace, one after the other, a repetition with an invalid trial.

    0 replaces nothing. Each is reported: `Outcome.replaced_by`, ``replaces`` in its record, and in the
    verdicts.
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
    """Outcome of one trial."""

    job: Job
    valid: bool
    why: tuple[str, ...]
    digest: str | None
    wall_s: float
    readings: Mapping[str, Number] = field(default_factory=dict)
    """Requested metrics: the leaves of checks, by their text."""
    reused: bool = False
    replaced_by: int | None = None
    """Seed of the valid trial that replaces this invalid one."""

    @property
    def metrics(self) -> TrialMetrics | None:
        """Returns all its metrics, read from its folder each time; ``None`` if it left nothing to measure."""
        if self.digest is None:
            return None
        return load_metrics(self.job.directory, _measure(self.job))

    @property
    def counts(self) -> bool:
        """Returns whether it is its repetition's: neither replaced, nor an invalid trial in another's
        place."""
        return self.valid or (self.replaced_by is None and self.job.replaces is None)

    @property
    def simulated_s(self) -> float:
        """Trial time that it covers, s."""
        return self.job.seconds if self.digest is not None else 0.0

    def to_json(self) -> dict[str, Any]:
        """Returns its place in ``streamgauge.run/1``."""
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
    """Raises an error with a remedy for a full or read-only disk, which is the machine's fault."""
    try:
        yield
    except OSError as error:
        number = errno_of(error)
        if number is None or number not in _DISK:
            raise
        remedy = "choose another folder with --out"
        if number == errno.EFBIG:
            remedy = "raise the limit of a file's size (ulimit -f), or store less with --keep metrics"
        elif number in (errno.ENOSPC, errno.EDQUOT):
            remedy = "free some space, choose another folder with --out, or store less with --keep metrics"
        raise CannotRunError(f"cannot write {directory}: {os.strerror(number)}; {remedy}.") from error


Simulator = Callable[[str, Path], Any]
"""Runs a plan in another program, which writes the record's files into a folder; returns the summary."""


def _measure(job: Job) -> dict[str, Any]:
    return job.scenario.measure.model_dump(mode="json", by_alias=True, exclude_none=True)


@contextmanager
def _logs_kept(partial: Path, directory: Path) -> Iterator[None]:
    """Keeps the logs of a trial that breaks, and adds their place to the error."""
    try:
        yield
    except StreamGaugeError as error:
        if (kept := keep_logs(partial, directory)) is None:
            raise
        raise type(error)(f"{error} Logs: {kept}") from error


class Steering(Protocol):
    """Shows a trial while it runs and may change its path."""

    @property
    def live_fd(self) -> int:
        """Returns the trial's end of a socket."""
        ...

    def simulate(self, plan: str, directory: Path, contents: Any) -> tuple[Any, dict[str, Any]]:
        """Summary and provenance of a trial of sim."""
        ...

    def ran(self, changed: list[dict[str, Any]], duration_ns: int, *, stopped: bool = False) -> Scenario:
        """Applies the changes of an emu trial; returns the scenario as it was run."""
        ...

    @property
    def scenario(self) -> Scenario | None:
        """As it was run."""
        ...

    def player_said(self, flow: str, name: str, value: float | None) -> None:
        """Takes an event of a player of emu while it runs."""
        ...


def run_job(
    job: Job,
    *,
    keep: Keep,
    emu: EmuSettings,
    say: Callable[[str], None],
    leaves: Leaves | None = None,
    concurrent: ConcurrentTrials | None = None,
    wanted: Callable[[], bool] = lambda: True,
    live: Steering | None = None,
    simulator: Simulator | None = None,
) -> Outcome:
    """Runs one trial and leaves its record in ``job.directory``, or leaves nothing.

    ``say`` receives a line about a wait. ``leaves`` are read of its metrics. ``concurrent`` are the emu
    trials that it runs among; without, it takes the machine's lock and runs alone. ``wanted`` is asked before
    the record takes its place. With ``live`` the trial is shown while it runs, and its record has the
    scenario with the changes. ``simulator`` runs sim's plan in place of the one here. Raises
    StreamGaugeError.
    """
    began = time.monotonic()
    with disk_errors(job.directory), place(job.directory) as partial:
        # Metrics are computed from the packets; files that are not kept are removed after that.
        store = store_at(campaign_of(job.directory))
        # Another program is given all of a plan in one text.
        contents = None if simulator is not None else store
        plan = lower(job.scenario, job.mode, job.seed, contents=contents)
        tables: _Tables | None = None
        plan_text: JsonText | None = None
        if job.mode == "sim":
            # A file that is neither kept nor read is not even written.
            in_memory = keep == "metrics" and job.extra is None and simulator is None and not emu.capture
            plan_text = JsonText.of(plan)
            if simulator is not None:
                summary, provenance = simulator(plan_text, partial), {"wall_s": time.monotonic() - began}
            elif live is None:
                summary, provenance, tables = _simulate(
                    plan_text, partial, contents, in_memory=in_memory, capture=emu.capture
                )
            else:
                summary, provenance = live.simulate(plan_text, partial, store.loaded)
                job = _as_steered(job, live)
                plan = lower(job.scenario, job.mode, job.seed, contents=contents)
                plan_text = JsonText.of(plan)
            validity = _sim_validity(plan, summary)
        else:
            from streamgauge.emu import run_trial  # Linux alone has it

            with _logs_kept(partial, job.directory):
                options = _emu_options(emu, say, concurrent)
                if live is not None:
                    options = _steered_options(options, live, job, store)
                found = run_trial(job.scenario, plan, job.seed, partial, options)
            if live is not None:
                job = _as_steered(job, live)
                plan = lower(job.scenario, job.mode, job.seed, contents=contents)
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


def _as_steered(job: Job, live: Steering) -> Job:
    scenario = live.scenario
    assert scenario is not None
    return replace(job, scenario=scenario, key=resume_key(scenario, job.mode, job.seed))


def _steered_options(options: Any, live: Steering, job: Job, contents: ContentStore) -> Any:
    def planned(changed: list[dict[str, Any]], duration_ns: int) -> dict[str, Any]:
        return lower(live.ran(changed, duration_ns), job.mode, job.seed, contents=contents)

    return replace(options, live_fd=live.live_fd, steered=planned, player_said=live.player_said)


_last_run: tuple[Scenario, Mode, dict[str, Any]] | None = None


def _as_run(scenario: Scenario, mode: Mode) -> dict[str, Any]:
    """Returns the scenario as in the records of its trials; read-only. With a population it takes
    milliseconds to make, and is the same for all trials of a scenario, which are mostly consecutive."""
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
    plan: JsonText,
    directory: Path,
    contents: ContentStore | None = None,
    *,
    in_memory: bool = False,
    capture: bool = False,
) -> tuple[Any, dict[str, Any], _Tables | None]:
    """Returns summary and provenance, and where no files are written their contents."""
    from streamgauge import _native

    began = time.monotonic()
    loaded = None if contents is None else contents.loaded
    tables: _Tables | None = None
    if in_memory:
        text, packets, events = _native.simulate_in_memory(plan, loaded)
        tables = (packets, events)
    else:
        text = _native.simulate(plan, str(directory), loaded, capture=capture)
    summary = json.loads(text)
    provenance = {"wall_s": time.monotonic() - began}
    return summary, provenance, tables


def _sim_validity(plan: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    """Sim has no clock to be late by; the remaining checks are conservation, and flows that never sent."""
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
    """Returns the trial with the present scenario: words, checks or measure changed, but not its result."""
    from streamgauge import _native

    digests = (trial.get("packets_digest") or "", trial.get("events_digest") or "")
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
    """Returns the trial as it lies in its place already, if it is the same; ``None`` if it must run.

    Args:
        job: the trial.
        keep: the required parts of its record.
        leaves: metrics to read.
        index: the folder's; trials in it are not read again.
        verify: read the whole record, and accept it only if undamaged. Without, existing files are trusted.
        invalid_too: accept an invalid emu trial as well.
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
    """Returns the index entry of a trial that has just run; ``None`` for one without a record."""
    if outcome.digest is None:
        return None
    job = outcome.job
    return IndexedTrial(
        job.key, job.words, outcome.valid, outcome.why, outcome.digest, job.replaces, outcome.readings
    )


_REUSED = (*REQUIRED, "validity", "digest")


def _read_again(job: Job, leaves: Leaves, *, verify: bool) -> IndexedTrial | None:
    """Reads the trial in its place, if it is the same, with its present scenario and its metrics as measured
    now."""
    try:
        trial = read_trial(job.directory / "trial.json", _REUSED)
    except RecordError:
        return None
    if trial.get("resume_key") != job.key or "valid" not in trial["validity"]:
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
    # An extra reads the trial itself; metrics of an older schema are no reason to run again.
    if metrics is None and job.extra is None:
        return None
    return IndexedTrial(
        key=job.key,
        scenario=job.words,
        valid=bool(trial["validity"]["valid"]),
        why=tuple(trial["validity"].get("why", ())),
        digest=str(trial["digest"]),
        replaces=trial.get("replaces"),
        readings={} if metrics is None else take(metrics, leaves),
    )
