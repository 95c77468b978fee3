"""Plan of a campaign: scenarios times modes times seeds, and the further trials that their checks need."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from streamgauge.campaign.layout import trial_directory
from streamgauge.claims.expression import parse
from streamgauge.errors import MediaError, ScenarioError
from streamgauge.scenario import Scenario, load
from streamgauge.scenario.commands import Command
from streamgauge.scenario.flow import Clip
from streamgauge.scenario.functions import functions
from streamgauge.scenario.limits import MOST_REPETITIONS, MOST_TRIALS
from streamgauge.scenario.semantics import end_ns
from streamgauge.scenario.settings import tidy
from streamgauge.scenario.shipped import shipped_file
from streamgauge.systems.adapter import SIDES
from streamgauge.systems.adapters import versions
from streamgauge.systems.registry import Mode
from streamgauge.systems.relay import RelayAdapter
from streamgauge.systems.tcp import bpf_object

__all__ = [
    "EMU_VERSION",
    "Extra",
    "Job",
    "check_trials",
    "jobs_for",
    "resume_key",
    "versions_used",
    "with_dependencies",
]

#: Raised when a change of emu, in any system, would produce another record; sim has a number of its own, and
#: so has each system (`streamgauge.systems.system.System.versions`). Since 5 a record has the messages of
#: third-party programs, and numbers connections from the trial's start.
EMU_VERSION = 5
#: Raised when the same clip would have other frames; since 2 they have their key frames, which thinning uses.
CONTENT_VERSION = 2


class Extra(Protocol):
    """Further data that is taken from a record, while its packets exist, and kept beside it."""

    def take(self, directory: Path) -> None:
        """Reads the record in `directory`, with packets and events, and leaves a file of its own there."""
        ...

    def has(self, directory: Path) -> bool:
        """Returns whether that file exists and equals the result of `take`."""
        ...


@dataclass(frozen=True, eq=False)
class Job:
    """One trial to run; compared by identity."""

    scenario: Scenario
    mode: Mode
    seed: int
    directory: Path
    key: str
    extra: Extra | None = None
    """Further data taken from its record."""
    settings: tuple[str, ...] = ()
    """Settings of the scenario, for the record (`streamgauge.scenario.settings.tidy`)."""
    set_with: tuple[str, ...] = ()
    """Settings of the scenarios that it runs with, which keep them apart from others."""
    replaces: int | None = None
    """Seed of the invalid repetition that this one replaces."""
    words: str = ""
    """Digest of the scenario as in its record, with the parts that decide nothing: title, checks, measure."""

    @property
    def seconds(self) -> float:
        """Returns how long it lasts at most, in trial time."""
        return end_ns(self.scenario) / 1e9


def resume_key(scenario: Scenario, mode: Mode, seed: int) -> str:
    """Returns the digest of everything that decides the result of the trial; with an equal key it need not
    run again.

    The digest includes the versions of the systems that the trial uses. A version of 1 adds nothing, so that
    keys from before systems had versions are still the same.

    The clip is in the scenario by name and rate; for files of the user's own, their sizes and the times of
    their last changes are counted in. For a system given as commands, so are the contents of the files that
    its commands name: another build of a program is another program.
    """
    return _keys(scenario, mode)(seed)


def _keys(scenario: Scenario, mode: Mode) -> Callable[[int], str]:
    """Returns the function of the resume keys of a scenario by seed; most of their input is the same for
    all."""
    from streamgauge import _native  # late, so that looking at a catalogue needs no build

    essence = scenario.essence(mode)
    version = f"sim {_native.MODEL_VERSION}" if mode == "sim" else f"emu {EMU_VERSION}"
    parts = [version]
    parts += [
        f"{system} {part} {number}"
        for system, told in versions_used(scenario, mode).items()
        for part, number in told.items()
        if number > 1
    ]
    clips = [flow.clip for flow in scenario.in_mode(mode).flows.values()]
    if scenario.population is not None:
        clips += scenario.population.played or ()
    for clip in clips:
        if clip is not None:
            parts.append(f"content {CONTENT_VERSION}")
        for file in clip.own_files if isinstance(clip, Clip) else ():
            try:
                status = Path(file).stat()
            except OSError as error:
                raise MediaError(f"{file}: {error.strerror}; {scenario.id} plays it.") from None
            parts.append(f"{status.st_size} {status.st_mtime_ns}")
    parts += _own_programs(scenario, mode)
    parts += _own_functions(scenario, mode)
    if _ends_with_the_member(scenario, mode):
        parts.append("ends with the member")
    head, tail = f"{essence}\x1f".encode(), "\x1f".join(["", *parts]).encode()
    return lambda seed: hashlib.blake2b(head + str(seed).encode() + tail, digest_size=16).hexdigest()


def _own_programs(scenario: Scenario, mode: Mode) -> list[str]:
    """Returns the files that the commands of a scenario name, each with a digest of its content.

    Programs of this machine that are found by their names alone, such as ``ffmpeg``, are left out.
    """
    found: dict[str, str] = {}
    for flow in scenario.in_mode(mode).flows.values():
        if mode == "sim" or not isinstance(flow.system, Command):
            continue
        folder = Path(flow.system.folder or ".")
        for side in SIDES:
            for line in flow.system.lines(side):
                words = [*shlex.split(line.command), *line.helpers]
                for file in {folder / word for word in words if word and "$" not in word and word != "."}:
                    if file.is_file():
                        with file.open("rb") as content:
                            found[str(file)] = hashlib.file_digest(content, "blake2b").hexdigest()[:32]
    return [f"program {file} {digest}" for file, digest in sorted(found.items())]


def _own_functions(scenario: Scenario, mode: Mode) -> list[str]:
    """Returns the functions and BPF objects that flows name, each with a digest of its file."""
    flows = scenario.in_mode(mode).flows.values()
    found = {file for flow in flows for _, file, _ in functions(flow)}
    found |= {file for flow in flows if (file := bpf_object(flow.congestion_control)) is not None}
    digests = {file: hashlib.blake2b(Path(file).read_bytes(), digest_size=16).hexdigest() for file in found}
    return [f"function {file} {digest}" for file, digest in sorted(digests.items())]


def _words(scenario: Scenario, mode: Mode) -> str:
    text = json.dumps(scenario.in_mode(mode).normalised(), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _ends_with_the_member(scenario: Scenario, mode: Mode) -> bool:
    """Returns whether nothing but a member's clip, played in place of a stand-in's, decides the end of the
    trial. Such a trial ended when the flow's own clip did, before members took the place of both."""
    name, population = scenario.until.media_end, scenario.population
    if name is None or population is None or population.played is None or population.duration is not None:
        return False
    stand_in = getattr(scenario.flows[name], mode)
    stands_in = stand_in is not None and stand_in.clip is not None
    return stands_in and population.is_for(name) and scenario.until.time is None


def versions_used(scenario: Scenario, mode: Mode) -> dict[str, dict[str, int]]:
    """Returns the versions of the systems and relays that a trial in that mode uses, by their names."""
    adapter = {"adapter": RelayAdapter.version} if mode == "emu" else {}
    relays = {relay.system: {"machine": relay.version} | adapter for relay in scenario.relays.values()}
    flows = scenario.in_mode(mode).flows.values()
    used = ((flow.registered, flow.parameters, flow.arrivals is not None) for flow in flows)
    return dict(sorted((versions(used, mode) | relays).items()))


def with_dependencies(scenarios: Sequence[Scenario], *, settings: Iterable[str] = ()) -> list[Scenario]:
    """Returns the scenarios, and after them those that their checks read and that are not among them."""
    settings = list(settings)
    found = {scenario.id: scenario for scenario in scenarios}
    pending = list(scenarios)
    while pending:
        scenario = pending.pop(0)
        for name, check in scenario.checks.items():
            for other in sorted(parse(check.that).scenarios()):
                if other in found:
                    continue
                if shipped_file(other) is None:
                    raise ScenarioError(
                        f"reads the scenario '{other}', which is neither in this run nor in the catalogue",
                        key=f"{scenario.id}: checks.{name}.that",
                    )
                found[other] = _with_what_fits(other, settings)
                pending.append(found[other])
    return list(found.values())


def _with_what_fits(name: str, settings: Sequence[str]) -> Scenario:
    """Returns a scenario that only a check asks for, with those of the settings that mean something there."""
    return load(name, settings=fitting(name, settings))[0]


def fitting(name: str, settings: Iterable[str]) -> list[str]:
    """Returns those of the settings that mean something in a scenario of the catalogue."""
    kept: list[str] = []
    for setting in settings:
        try:
            load(name, settings=[*kept, setting])
        except ScenarioError:
            continue
        kept.append(setting)
    return kept


def check_trials(counts: Iterable[int]) -> None:
    """Raises ScenarioError if the repetitions of all scenarios and modes are more trials than a run has."""
    if (count := sum(counts)) > MOST_TRIALS:
        raise ScenarioError(
            f"a run of {count:,} trials has more than {MOST_TRIALS:,}",
            hint="give fewer repetitions, variants or values, or run it in parts",
        )


def jobs_for(
    scenario: Scenario,
    mode: Mode,
    out: Path,
    *,
    first_seed: int,
    repeat: int | None,
    settings: Iterable[str] = (),
    set_with: Iterable[str] | None = None,
) -> list[Job]:
    """Returns the trials of a scenario in one mode: seeds ``first_seed`` and up. ``settings`` were set in it,
    ``set_with`` in those that it runs with; the same if None."""
    count = repeat if repeat is not None else getattr(scenario.repetitions, mode)
    if count > MOST_REPETITIONS:
        raise ScenarioError(
            f"{count:,} repetitions of {scenario.id} are more than {MOST_REPETITIONS:,}",
            hint="give fewer, and further ones with another first seed",
        )
    said = tidy(settings)
    beside = said if set_with is None else tidy(set_with)
    key, words = _keys(scenario, mode), _words(scenario, mode)
    return [
        Job(
            scenario=scenario,
            mode=mode,
            seed=seed,
            directory=trial_directory(out, scenario.id, mode, seed),
            key=key(seed),
            settings=said,
            set_with=beside,
            words=words,
        )
        for seed in range(first_seed, first_seed + count)
    ]
