"""Real trials of an earlier run, by its document: a reference for sim when it alone has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamgauge.crosscheck.compared import CrosscheckMatter
from streamgauge.crosscheck.trials import CaseRuns
from streamgauge.errors import ScenarioError

__all__ = ["measured_before", "real_trials"]

_OF_A_RUN: Final = ("date", "cpu", "cpus", "kernel", "commit")


def real_trials(matter: CrosscheckMatter, documents: Sequence[Mapping[str, Any]]) -> dict[str, CaseRuns]:
    """Returns the real trials of each case. Several documents' trials of a case count together, and a run
    that two of them have counts once.

    Raises:
        ScenarioError: if one is of a virtual machine, or its cases have another set of conditions by now.
    """
    known = {case.id: case for case in matter.cases(False)}
    found: dict[str, CaseRuns] = {}
    for document in documents:
        if document["virtual_machine"]:
            raise ScenarioError(
                "--real: real trials of a virtual machine are joined by --also; name it there"
            )
        before: dict[str, list[Mapping[str, Any]]] = {}
        for run in document.get("real_of", ()):
            for name in run["cases"]:
                before.setdefault(name, []).append(run)
        for case in document["cases"]:
            name = case["id"]
            if name not in known or known[name].conditions != case["conditions"]:
                raise ScenarioError(f"--real: {name} has other conditions by now; run its real trials again")
            values = case["quantities"]["emu"]
            if values:
                taken = [{"quantities": one, "asked": case["asked"]["emu"]} for one in values]
                invalid = tuple((one["seed"], one["why"]) for one in case["invalid"])
                runs = [
                    {key: run[key] for key in _OF_A_RUN if key in run} for run in before.get(name, [document])
                ]
                found[name] = _together(found.get(name), CaseRuns(tuple(taken), invalid, tuple(runs)))
    return found


def _together(before: CaseRuns | None, more: CaseRuns) -> CaseRuns:
    if before is None:
        return more
    if any(run in before.provenance for run in more.provenance):
        return before if len(before.taken) > len(more.taken) else more
    return CaseRuns(
        (*before.taken, *more.taken),
        (*before.invalid, *more.invalid),
        (*before.provenance, *more.provenance),
    )


def measured_before(real: Mapping[str, CaseRuns], cases: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the runs of the real trials, each with its cases."""
    runs: list[dict[str, Any]] = []
    for name, told in ((case, told) for case in cases for told in real[case].provenance):
        known = next((run for run in runs if {**run, "cases": None} == {**told, "cases": None}), None)
        if known is None:
            runs.append({**told, "cases": [name]})
        else:
            known["cases"].append(name)
    return runs
