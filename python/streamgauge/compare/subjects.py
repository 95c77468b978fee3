"""Subjects of ``compare``: folders of records, scenarios with their settings, systems in the place of
another, values of an address, modes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from streamgauge.compare.labels import subject_labels
from streamgauge.errors import ScenarioError
from streamgauge.scenario import Scenario, load
from streamgauge.scenario.over import Axis
from streamgauge.scenario.settings import set_folder, setting_labels, short_addresses, tidy
from streamgauge.systems.registry import SYSTEMS, TRAFFIC, Mode

__all__ = ["MODE", "AskedScenario", "ComparedSubject", "subjects_of"]

MODE = "mode"
"""As an axis: the modes themselves are compared."""
_MODES: tuple[Mode, ...] = ("sim", "emu")
_SETTING = re.compile(r"\s+(?=[\w*][\w.*-]*=)")


@dataclass(frozen=True, kw_only=True)
class AskedScenario:
    """A scenario to run for a subject."""

    scenario: Scenario
    base: Scenario
    """The same before that was set in it by which subjects differ."""
    settings: tuple[str, ...] = ()
    """All that was set in it."""
    place: Path = field(default_factory=Path)
    """Its campaign's folder, below that of the comparison."""


@dataclass(frozen=True, kw_only=True)
class ComparedSubject:
    """A subject of the comparison: a folder of records, or scenarios to run."""

    label: str
    operand: str
    directory: Path | None = None
    asked: tuple[AskedScenario, ...] = ()
    mode: Mode | None = None
    """Its mode, where modes are compared."""


def subjects_of(
    operands: Sequence[str],
    *,
    axes: Sequence[Axis] = (),
    settings: Iterable[str] = (),
    inside: str | None = None,
    flow: str | None = None,
    apart: bool = False,
) -> list[ComparedSubject]:
    """Returns the subjects that operands and axes define, in their order.

    Args:
        operands: folders; ids, globs or files of scenarios, each with settings ``ADDRESS=VALUE`` behind it;
            with `inside`, names of systems or traffic, likewise.
        axes: each operand is taken with every combination of their values, one of which may be of `MODE`.
        settings: set in every scenario alike.
        inside: the scenario in which operands replace the subject's system.
        flow: the subject flow, if its role does not show it.
        apart: a lone operand for several scenarios, a glob or a family, is a subject a scenario.

    Raises:
        ScenarioError: naming the operand or option, if it does not exist, has no effect or is a repeat.
    """
    common = list(settings)
    found = [
        subject
        for operand in operands
        for subject in _of_operand(operand, axes=axes, common=common, inside=inside, flow=flow)
    ]
    if apart and len(found) == 1 and len(found[0].asked) > 1:
        return _one_a_scenario(found[0])
    named = _labelled(found, several=len(operands) > 1, varied=bool(axes))
    twice = [
        one.label for place, one in enumerate(named) if one.label in {two.label for two in named[:place]}
    ]
    if twice:
        raise ScenarioError(f"'{twice[0]}' is asked for twice", hint="each subject is given once")
    return named


def _one_a_scenario(subject: ComparedSubject) -> list[ComparedSubject]:
    """Returns a subject for each of its scenarios, named by the parts of its id that not all have."""
    parts = [re.split(r"(?<=[/-])", one.scenario.id) for one in subject.asked]
    shared = 0
    while all(len(mine) > shared + 1 and mine[shared] == parts[0][shared] for mine in parts):
        shared += 1
    return [
        replace(subject, label="".join(mine[shared:]), operand=one.scenario.id, asked=(one,))
        for mine, one in zip(parts, subject.asked, strict=True)
    ]


def _of_operand(
    operand: str, *, axes: Sequence[Axis], common: list[str], inside: str | None, flow: str | None
) -> Iterator[ComparedSubject]:
    if inside is None and Path(operand).is_dir():
        if axes or common:
            option = "--over" if axes else "--set"
            raise ScenarioError(
                f"'{operand}' is a folder of records, in which nothing can be set", key=option,
                hint="name a scenario to run, or leave the option out",
            )  # fmt: skip
        yield ComparedSubject(label=operand, operand=operand, directory=Path(operand))
        return
    name, *own = _SETTING.split(operand.strip()) if not Path(operand).exists() else [operand]
    if inside is not None:
        scenarios = load(inside, settings=common)
        own = [*_put_in(name, scenarios, inside, flow), *own]
        name = inside
    modes = next((axis for axis in axes if axis.address == MODE), None)
    others = [axis for axis in axes if axis.address != MODE]
    bases = {one.id: one for one in load(name, settings=common)}
    for values in itertools.product(*(axis.settings for axis in others)):
        varied = [*own, *values]
        asked = tuple(
            AskedScenario(
                scenario=scenario,
                base=bases[scenario.id],
                settings=tidy([*common, *varied]),
                place=set_folder([*common, *varied]),
            )
            for scenario in load(name, settings=[*common, *varied])
        )
        label = ", ".join(_spoken(value, others) for value in values)
        subject = ComparedSubject(label=label, operand=operand, asked=asked)
        if modes is None:
            yield subject
        for mode in () if modes is None else map(_mode, modes.values):
            both = ", ".join(part for part in (label, mode) if part)
            yield replace(subject, label=both, mode=mode)


def _put_in(name: str, scenarios: Sequence[Scenario], inside: str, flow: str | None) -> list[str]:
    """Returns the settings by which a system replaces the subject's."""
    if name not in SYSTEMS and name not in TRAFFIC:
        known = ", ".join([*SYSTEMS, *TRAFFIC])
        raise ScenarioError(
            f"no system or traffic is called '{name}'; there are {known}",
            hint="with --in, name systems; compare scenarios or folders without it",
        )
    kind = "system" if name in SYSTEMS else "traffic"
    found: dict[str, None] = {}
    for scenario in scenarios:
        tested = [flow] if flow else [one for one, what in scenario.flows.items() if what.role == "subject"]
        if len(tested) != 1 or tested[0] not in scenario.flows:
            flows = ", ".join(scenario.flows)
            fault = f"no flow {flow}" if flow else f"{len(tested)} subjects, expected one"
            raise ScenarioError(
                f"{scenario.id} has {fault}; its flows are {flows}",
                key="--in",
                hint="name one with --flow",
            )
        for mode in _MODES:
            if getattr(scenario.flows[tested[0]], mode) is not None:
                found[f"flows.{tested[0]}.{mode}=null"] = None
        # Its own parameters: the same name may mean another thing.
        found[f"flows.{tested[0]}.parameters={{}}"] = None
        found[f"flows.{tested[0]}.{kind}={name}"] = None
    return list(found)


def _mode(value: str) -> Mode:
    for mode in _MODES:
        if value.strip() == mode:
            return mode
    raise ScenarioError(f"'{value}' is no mode; expected sim or emu", key=f"--over {MODE}")


def _spoken(setting: str, axes: Sequence[Axis]) -> str:
    """Returns a value of an axis as a person reads it; with the end of its address where there are
    several."""
    address, _, value = setting.partition("=")
    axis = next(one for one in axes if one.address == address)
    every = setting_labels(
        {one: [f"{address}={label}"] for one, label in zip(axis.values, axis.labels, strict=True)}
    )
    label = every[value] if len(axis) > 1 else axis.labels[0]
    return label if len(axes) == 1 else f"{short_addresses(one.address for one in axes)[address]} {label}"


def _labelled(subjects: Sequence[ComparedSubject], *, several: bool, varied: bool) -> list[ComparedSubject]:
    """Returns subjects with unique labels: for operands the difference of their ids, for axes their
    values."""
    if not several:
        return [replace(one, label=one.label or one.operand) for one in subjects]
    operands = list(dict.fromkeys(one.operand for one in subjects))
    ids = {
        operand: [asked.scenario.id for asked in one.asked] or [operand]
        for operand in operands
        for one in subjects
        if one.operand == operand
    }
    settings = {operand: _SETTING.split(operand.strip())[1:] for operand in operands}
    plain = {operand: _SETTING.split(operand.strip())[0] for operand in operands}
    if len(set(plain.values())) == 1:
        # One scenario with several sets of settings: these make the labels.
        short = setting_labels(settings)
    elif any(one.directory is not None for one in subjects) or any(settings.values()):
        short = {operand: operand for operand in operands}
    else:
        short = subject_labels(ids)
    if not varied:
        return [replace(one, label=short[one.operand]) for one in subjects]
    return [replace(one, label=f"{short[one.operand]}, {one.label}") for one in subjects]
