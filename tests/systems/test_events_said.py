"""The events that a machine's description lists are those that its code reports, with their units."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rust_modules import Module, uses_between_files
from streamgauge import _native
from streamgauge.crosscheck.systems.cases import FLOW, SystemsCase, cases
from streamgauge.scenario import lower
from streamgauge.systems.machines import MACHINES

SRC = Path(__file__).parents[2] / "crates" / "systems" / "src"
OF_EVERY_PLAYER = {"media_end"}
"""Part of the interface of machines: a trial may end at it. No description lists it."""
BY_ANY_TEXT = re.compile(r'\.say\(\s*[^,]+,\s*("?)([\w:]+)\1\s*,')
CONSTANT = re.compile(r'const (\w+): &str = "([a-z_]+)";')
OF_THE_BED = re.compile(r"tcp_\w+|message|connection_\w+|listen_overflow")
"""Events that the simulator itself reports of a flow."""


def sources() -> dict[Module, str]:
    """Each file of the crate, without its tests."""
    found = {}
    for path in sorted(SRC.rglob("*.rs")):
        parts = path.relative_to(SRC).with_suffix("").parts
        module = parts[:-1] if parts[-1] in ("mod", "lib") else parts
        if not {"tests", "testing"} & set(parts):
            found[module] = path.read_text("utf-8").partition("#[cfg(test)]\nmod tests {")[0]
    return found


SOURCES = sources()
CONSTANTS = {name: text for source in SOURCES.values() for name, text in CONSTANT.findall(source)}
USES = uses_between_files(SRC)


def said_in(module: Module) -> set[str]:
    """The names of events in a file's calls of `say` and in its tallies; a variable stands for each text of
    the file."""
    found = set()
    for tallied in re.findall(r"Tally::new\(\[(.*?)\]\)", SOURCES[module], re.DOTALL):
        found |= set(re.findall(r'"(\w+)"', tallied))
    for quoted, name in BY_ANY_TEXT.findall(SOURCES[module]):
        text = name if quoted else CONSTANTS.get(name.rpartition("::")[2])
        found |= {text} if text else set(re.findall(r'"([a-z]+(?:_[a-z]+)+)"', SOURCES[module]))
    return found


def reached(folder: str) -> Iterator[Module]:
    """The files of a folder, and those that they use, each with the files below it."""
    waiting = [module for module in SOURCES if module[:1] == (folder,)]
    seen = set(waiting)
    while waiting:
        module = waiting.pop()
        yield module
        used = set(USES.get(module, ())) | {module}
        more = {one for one in SOURCES if any(one[: len(by)] == by != () for by in used)} - seen
        seen |= more
        waiting += more


def folder_of(machine: str) -> str:
    """The folder of a machine's code: that of the file with its name."""
    (found,) = (
        module[0]
        for module, source in SOURCES.items()
        if re.search(rf'const NAME: &\'static str = "{machine}";', source)
    )
    return found


@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_can_report_what_its_description_lists(machine: str) -> None:
    said = {name for module in reached(folder_of(machine)) for name in said_in(module)}
    assert set(MACHINES[machine].events) - said == set()


@pytest.mark.parametrize("machine", MACHINES)
def test_a_machines_own_code_reports_nothing_else(machine: str) -> None:
    folder = folder_of(machine)
    own = {name for module in SOURCES if module[:1] == (folder,) for name in said_in(module)}
    # A folder may hold a relay as well.
    listed = {name for one in MACHINES.values() if folder_of(one.name) == folder for name in one.events}
    relays = "".join(source for module, source in SOURCES.items() if module[:1] == (folder,))
    listed |= set(re.findall(r'\("([a-z_]+)", "[^"]*"\)', relays))
    assert own - listed - OF_EVERY_PLAYER == set()


@pytest.mark.parametrize("case", cases(quick=True, conditions=1), ids=lambda case: case.id)
def test_a_session_reports_listed_events_in_their_units(case: SystemsCase) -> None:
    plan = lower(case.scenario, "sim", 1)
    _, _, events = _native.simulate_in_memory(json.dumps(plan), None)
    listed = MACHINES[case.scenario.flows[FLOW].registered.name].events  # type: ignore[union-attr]
    found = {name: set(units) - {""} for name, flow, _, _, units in events if flow == FLOW}
    found = {name: units for name, units in found.items() if not OF_THE_BED.fullmatch(name)}
    assert set(found) - OF_EVERY_PLAYER <= set(listed) and {"buffer", "frame_shown"} & set(found)
    assert {name: units for name, units in found.items() if name in listed and units - {listed[name]}} == {}
