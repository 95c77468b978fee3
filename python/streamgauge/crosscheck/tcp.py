"""The crosscheck of TCP: quantities that distinguish congestion controls, sim's compared with the
kernel's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from streamgauge.crosscheck import ns3
from streamgauge.crosscheck.cases import CONTROL, Case, cases
from streamgauge.crosscheck.compared import CrosscheckMatter, Mutant, Variant
from streamgauge.crosscheck.measure import keep_quantities
from streamgauge.crosscheck.quantities import quantity
from streamgauge.errors import ScenarioError
from streamgauge.scenario import Scenario, lower, override
from streamgauge.systems.registry import GREEDY_TCP
from streamgauge.systems.tcp import MECHANISMS
from streamgauge.units import Time

__all__ = ["MUTANTS", "SWITCHES", "TCP", "varied"]

JITTER: Final = "host_jitter"
ANSWER_AFTER: Final = "answer_after"
"""Key of a variant: hosts answer after exactly this time, where sim's do after up to `host_jitter`."""

OF_LINUX_6_1: Final = (
    "bic_per_round",
    "early_growth",
    "scaling_ratio",
    "whole_segments",
    "fine_bandwidth",
)
"""Differences of Linux 6.1 from sim, which follows a later kernel in most of it, an earlier one in BIC, and
is simpler than any in the rest."""
BESIDE_IPERF3: Final = {"bytes": "400 B", "ahead": "3 ms"}
"""Data of iperf3 on its control connection before its data."""
BESIDE_IPERF3_IN_A_GUEST: Final = {"bytes": "334 B", "ahead": "6 ms"}
"""The same in a virtual machine, by packets captured there: of the 614 B that go down before data does, all
but 134 do so 6 to 8 ms before it. The flow's own SYN is 74 of them; the control connection's are here."""
QUICK_HOSTS: Final = "49 us"
"""After that long hosts in a virtual machine answer a SYN, each time. BBR's first rate, and with it the
window of its start, is ten segments in that round trip."""

MUTANTS: Final = (
    Mutant("reno-is-cubic", "CUBIC runs instead of Reno", "reno/*kb", {"congestion_control": "cubic"}),
    Mutant(
        "no-delayed-ack",
        "every segment is acknowledged at once",
        "reno/*kb",
        {"parameters.delayed_ack": "0 ms"},
    ),
    Mutant("no-hystart", "CUBIC's slow start ends by loss alone", "cubic/*kb", {"parameters.hystart": "off"}),
)

SWITCHES: Final[Mapping[str, Variant]] = {
    **{f"without {name}": {"parameters.without": [name]} for name in MECHANISMS},
    "as Linux 6.1": {"parameters.without": list(OF_LINUX_6_1)},
    "hystart off": {"parameters.hystart": "off"},
    "hystart plus_plus": {"parameters.hystart": "plus_plus"},
    "delayed_ack 0 ms": {"parameters.delayed_ack": "0 ms"},
    "delayed_ack 200 ms": {"parameters.delayed_ack": "200 ms"},
    "initial_window 4": {"parameters.initial_window": "4 packets"},
    "receive_window 64 KiB": {"parameters.receive_window": "64 KiB"},
    "receive_window 14 segments": {"parameters.receive_window": "20272 B"},
    "host_jitter 600 us": {JITTER: "600 us"},
    "answer_after 49 us": {ANSWER_AFTER: QUICK_HOSTS},
    "control connection": {CONTROL: BESIDE_IPERF3},
    "as Linux 6.1, control connection": {"parameters.without": list(OF_LINUX_6_1), CONTROL: BESIDE_IPERF3},
    "as Linux 6.1 in a virtual machine": {
        "parameters.without": list(OF_LINUX_6_1),
        ANSWER_AFTER: QUICK_HOSTS,
        CONTROL: BESIDE_IPERF3_IN_A_GUEST,
    },
}
"""One mechanism each; all differences of Linux 6.1, which virtual machines run; these with a control
connection, for real trials there have both; and with that connection and hosts as they are there. Hosts that
jitter by half a packet's time at 10 Mbit/s keep flows out of step. Linux of hosts offers a program that asks
for a receive buffer of 17,520 B 14 segments once data has arrived; and iperf3's messages on its control
connection, 9 packets of 614 B in all, are on the link just before its data is (docs/fidelity-papers.md)."""


def varied(case: Case, variant: Variant) -> Case:
    """Returns the case with something about its TCP, or about sim's hosts, changed.

    Raises:
        ScenarioError: if sim's TCP does not support the change.
    """
    changes = _of_hosts(case, variant)
    if CONTROL in variant:
        if case.kind != "single":
            raise ScenarioError(f"{case.id}: of several flows each has a control connection of its own")
        rest = {key: value for key, value in variant.items() if key != CONTROL}
        return _with_control(varied(case, rest) if rest else case, **variant[CONTROL])
    for name, flow in case.scenario.flows.items():
        if flow.traffic != GREEDY_TCP:
            continue
        for key, value in variant.items():
            if key not in (JITTER, ANSWER_AFTER):
                changes[f"flows.{name}.{key}"] = value
    try:
        scenario = override(case.scenario, changes, drop_checks=True)
        lower(scenario, "sim", 1)
    except (ValidationError, ValueError) as error:
        said = " ".join(str(error).split())
        if isinstance(error, ValidationError):
            said = "; ".join(str(detail["msg"]) for detail in error.errors(include_url=False))
        raise ScenarioError(f"{case.id}: {said}") from None
    return replace(case, scenario=scenario)


def _of_hosts(case: Case, variant: Variant) -> dict[str, Any]:
    """Returns the part of a variant that is the scenario's own and no flow's."""
    if ANSWER_AFTER not in variant:
        return {key: value for key, value in variant.items() if key == JITTER}
    up = case.scenario.path.up.delay or Time("0 ms")
    if not isinstance(up, Time):
        raise ScenarioError(
            f"{case.id}: its delay on the way up is more than a time; nothing can be added to it"
        )
    return {JITTER: "0 us", "path.up.delay": f"{Time(variant[ANSWER_AFTER]).ns + up.ns} ns"}


def _with_control(case: Case, *, bytes: str, ahead: str) -> Case:
    """Returns the case with a short connection that ends before its flow begins."""
    told = case.scenario.model_dump(mode="json", exclude_unset=True)
    (name,) = told["flows"]
    # It has to be of the flow's own start phase.
    told["flows"][name]["start"] = "0.5 s"
    told["flows"][CONTROL] = {
        "role": "rival",
        "traffic": GREEDY_TCP,
        "congestion_control": "reno",
        "parameters": {"bytes": bytes},
        "start": f"{name}.start - {ahead}",
    }
    told["start_phase"] = "0 ms"
    return replace(case, scenario=Scenario.model_validate(told))


def _kernel_lacks(case: Case, way: str | None) -> str | None:
    """Returns why this machine's kernel cannot run the case's congestion controls; None if it can."""
    from streamgauge.emu import controls
    from streamgauge.emu.options import EmuOptions

    flows = case.scenario.flows.values()
    asked = {flow.congestion_control or "cubic" for flow in flows if flow.traffic == GREEDY_TCP}
    options = EmuOptions(way=way)
    if options.virtual is not None:
        return None  # Debian's kernel has them all
    chosen = options.chosen_way
    return next((why for name in sorted(asked) if (why := controls.lacking(name, chosen)) is not None), None)


def _windows(
    case: Case, sim: Sequence[Mapping[str, Any]], emu: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns the measurements of it, and one run's windows in each mode."""
    return {
        "window_s": [time / 1e9 for time in case.window_ns],
        "windows": {
            mode: some[0]["windows"]
            for mode, some in (("sim", sim), ("emu", emu))
            if some and case.kind == "single"
        },
    }


TCP: Final = CrosscheckMatter(
    name="tcp",
    schema="streamgauge.crosscheck/1",
    cases=lambda quick: cases(quick=quick),
    such_as="'reno/*' or '*/10m-25kb'",
    quantity=quantity,
    keeper=keep_quantities,
    vary=varied,
    mutants=MUTANTS,
    switches=SWITCHES,
    lacking=_kernel_lacks,
    about=_windows,
    third=ns3.column,
    require_third=ns3.require,
)
"""Everything that it has of its own."""
