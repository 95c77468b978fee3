"""Documents of several runs as one: conditions that ran on this machine, and others in a virtual one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from streamgauge.crosscheck.compared import CrosscheckMatter, Found
from streamgauge.crosscheck.equivalence import LEAST_RUNS
from streamgauge.crosscheck.rows import compare_as
from streamgauge.crosscheck.run import overall
from streamgauge.errors import ScenarioError
from streamgauge.input_files import UnfitInputError, read_input

__all__ = ["joined", "load_document", "machines_apart"]

_LARGEST_BYTES = 256_000_000

_OF_A_RUN: Final = (
    "date", "duration_s", "load_average", "cpus", "cpu", "kernel", "virtual_machine", "streamgauge",
    "commit", "host", "machine",
)  # fmt: skip


def load_document(file: Path, schema: str, option: str = "--also") -> dict[str, Any]:
    """Reads the document of another run.

    Raises:
        ScenarioError: for a file that is none, or of another crosscheck, or of trials that no page takes.
    """
    try:
        found = json.loads(read_input(file, _LARGEST_BYTES))
    except UnfitInputError as error:
        raise ScenarioError(f"{option} {file}: {error}") from None
    except RecursionError:
        raise ScenarioError(f"{option} {file}: is nested too deeply") from None
    except OSError as error:
        raise ScenarioError(f"{option} {file}: {error.strerror}") from None
    except ValueError as error:
        raise ScenarioError(f"{option} {file}: is no JSON: {error}") from None
    said = found.get("schema") if isinstance(found, dict) else None
    if said != schema:
        raise ScenarioError(f"{option} {file}: its schema is {said or 'missing'} and not {schema}")
    if found["quick"] or found["reference"] != "emu" or found["interrupted"]:
        raise ScenarioError(
            f"{option} {file}: it is of a quick run, of one against sim, or of one that was cut short",
            hint="run that one again without --quick and --against",
        )
    return dict(found)


def joined(
    matter: CrosscheckMatter, first: Mapping[str, Any], others: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns one document of several runs: each case from the run with the most valid real trials of it, of
    equal ones the earlier. ``runs`` has for each its machine and its cases, ``machines`` the agreement of
    real trials of virtual machines with this one's (`machines_apart`).

    Args:
        matter: the common subject of all of them.
        first: the document that takes precedence.
        others: those of other runs.
    """
    if not others:
        return dict(first)
    runs = [first, *others]
    of: dict[str, int] = {}
    cases: dict[str, Mapping[str, Any]] = {}
    for place, run in enumerate(runs):
        for case in run["cases"]:
            before = cases.get(case["id"])
            if before is None or case["valid"]["emu"] > before["valid"]["emu"]:
                cases[case["id"]], of[case["id"]] = case, place
    every = [case.id for case in matter.cases(False)]
    order = [name for name in every if name in cases]
    rows = {name: [row for row in runs[of[name]]["rows"] if row["case"] == name] for name in order}
    skipped = {one["case"]: one for run in runs for one in run["skipped"] if one["case"] not in cases}
    document = {
        **first,
        "rows": [row for name in order for row in rows[name]],
        "mutants": _mutants(runs, of),
        "cases": [cases[name] for name in order],
        "skipped": list(skipped.values()),
        "not_asked": [name for name in every if name not in cases and name not in skipped],
        "runs": [
            {
                **{key: run[key] for key in _OF_A_RUN if key in run},
                "cases": [name for name in order if of[name] == place],
            }
            for place, run in enumerate(runs)
        ],
        "machines": machines_apart(matter, first, others),
    }
    document["verdict"] = overall(document)
    return document


def machines_apart(
    matter: CrosscheckMatter, first: Mapping[str, Any], others: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Returns real trials of virtual machines against this machine's, by the test that compares sim with
    them: a row for each quantity of each case with at least two of each.

    The spread and the margin are those of this machine's trials.
    """
    cases = {case.id: case for case in matter.cases(False)}
    of: dict[bool, dict[str, list[Found]]] = {True: {}, False: {}}
    for run in (first, *others):
        for case in run["cases"]:
            of[bool(run.get("virtual_machine"))].setdefault(case["id"], case["quantities"]["emu"])
    rows = []
    for name, case in cases.items():
        guests, hosts = (of[guest].get(name, []) for guest in (True, False))
        if min(len(guests), len(hosts)) < LEAST_RUNS:
            continue
        for metric in dict.fromkeys(key for found in (*hosts, *guests) for key in found):
            values = [[found.get(metric) for found in some] for some in (guests, hosts)]
            if all(value is None for some in values for value in some):
                continue
            asked = matter.quantity(metric)
            found = compare_as(case, asked, *values)
            rows.append(
                {
                    "case": name, "metric": metric, "unit": asked.unit, "factor": asked.factor,
                    "virtual": found.sim, "host": found.emu, "spread": found.spread, "margin": found.margin,
                    "low": found.low, "high": found.high, "n": [found.n_sim, found.n_emu],
                    "verdict": found.finding, "why": found.why,
                }
            )  # fmt: skip
    return rows


def _mutants(runs: Sequence[Mapping[str, Any]], of: Mapping[str, int]) -> list[dict[str, Any]]:
    """Returns each mutant with the cases that are taken from the run that tried it there."""
    found: dict[str, dict[str, Any]] = {}
    for place, run in enumerate(runs):
        for one in run["mutants"]:
            mine = {name: rows for name, rows in one["cases"].items() if of.get(name) == place}
            known = found.get(one["name"])
            if known is None:
                found[one["name"]] = {**one, "cases": mine}
            else:
                known["cases"] = {**known["cases"], **mine}
    for one in found.values():
        if one["cases"]:
            one["rejected"] = any(one["cases"].values())
            one.pop("why", None)
    return list(found.values())
