"""The instrument's certificate in words: a calibration's rows as a table's cells and as sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from streamgauge.claims.dimension import number, plain
from streamgauge.report.model import Entry, Group

MARKS = {"pass": "✓", "fail": "✗", "inconclusive": "?", "skipped": "–"}
NOT_CALIBRATED = "not calibrated: run `streamgauge calibrate`"
_LEAST_PERCENT = 1e-4
"""Smaller percentages are shown as smaller than this: powers of ten are hard to read in a table."""
_SCALED = {"bit/s": ((1e6, "Mbit/s"), (1e3, "kbit/s")), "us": ((1e3, "ms"),)}


def row_cells(row: Mapping[str, Any]) -> dict[str, str]:
    """Returns a row as words: ``{"id", "what", "asked", "measured", "error", "bound", "verdict",
    "mark"}``."""
    unit, error_unit = str(row["unit"]), str(row["error_unit"])
    return {
        "id": str(row["id"]),
        "what": str(row["what"]),
        "asked": quantity(row["asked"], unit, digits=6),
        "measured": quantity(row["measured"], unit, digits=6),
        "error": quantity(row["error"], error_unit, digits=3, signed=True),
        "bound": "–" if row["verdict"] == "skipped" else bound_words(row["bound"], error_unit),
        "verdict": str(row["verdict"]),
        "mark": MARKS[str(row["verdict"])],
    }


def quantity(value: float | None, unit: str, *, digits: int, signed: bool = False) -> str:
    """Returns ``10.0002 Mbit/s``, ``+0.0024 %``; a dash for a missing value."""
    if value is None:
        return "–"
    if unit == "%" and 0 < abs(value) < _LEAST_PERCENT:
        return f"< {_LEAST_PERCENT:.4f} %"
    scale, shown = 1.0, unit
    for factor, name in _SCALED.get(unit, ()):
        if abs(value) >= factor:
            scale, shown = factor, name
            break
    text = plain(value / scale, digits) if digits > 3 else number(value / scale, digits)
    sign = "+" if signed and value > 0 else ""
    return f"{sign}{text} {shown}".replace("us", "µs")


def bound_words(bound: Any, unit: str) -> str:
    """Returns ``± 0.02 %``, ``-599 to 0 B``, ``at least -1200 packets/s``, ``at most 0 us``."""
    if not isinstance(bound, list | tuple):
        return f"± {quantity(bound, unit, digits=3)}" if bound else "exact"
    low, high = bound
    if low is None:
        return f"at most {quantity(high, unit, digits=3, signed=True)}"
    if high is None:
        return f"at least {quantity(low, unit, digits=3, signed=True)}"
    return f"{number(low, 3)} to {quantity(high, unit, digits=3)}"


def age_words(seconds: float) -> str:
    """Returns ``12 minutes``, ``3.5 hours``, ``2 days``."""
    for size, name in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * size:
            return f"{plain(seconds / size, 2)} {name}"
    return f"{seconds:.0f} s"


def certificates(trials: Iterable[Any]) -> list[tuple[Mapping[str, Any] | None, int]]:
    """Returns the certificates of emu trials, each with how many trials carry it; None for those that carry
    none."""
    found: dict[str, tuple[Mapping[str, Any] | None, int]] = {}
    for trial in trials:
        if trial.mode != "emu" or _virtual(trial):
            continue
        given = trial.provenance.get("certificate")
        carried = given if isinstance(given, Mapping) and given.get("calibrated") else None
        key = "" if carried is None else str(carried["id"])
        found[key] = (found.get(key, (carried, 0))[0], found.get(key, (carried, 0))[1] + 1)
    return list(found.values())


def virtual_machine(trials: Iterable[Any]) -> Mapping[str, Any] | None:
    """Returns the virtual machine that every one of the trials ran in; None if one did not, or there is
    none."""
    found = [_virtual(trial) for trial in trials]
    return found[0] if found and all(found) else None


def _virtual(trial: Any) -> Mapping[str, Any] | None:
    found = trial.provenance.get("virtual_machine")
    return found if isinstance(found, Mapping) else None


def virtual_sentence(machine: Mapping[str, Any]) -> str:
    """Returns a virtual machine in a line, in a certificate's place."""
    return (
        f"in a virtual machine of {plain(machine['instructions_per_s'] / 1e9, 2)} · 10⁹ "
        f"instructions a second (QEMU {str(machine['qemu']).partition(' ')[0]}, Linux {machine['kernel']}, "
        f"snapshot {machine['snapshot']}), whose time this machine's load does not touch."
    )


def sentence(certificate: Mapping[str, Any] | None, ages_s: Sequence[float] = ()) -> str:
    """Returns one certificate in a line."""
    if certificate is None:
        return f"{NOT_CALIBRATED}."
    verdicts = [row["verdict"] for row in certificate["checks"]]
    within = sum(verdict == "pass" for verdict in verdicts)
    failed = [row["id"] for row in certificate["checks"] if row["verdict"] == "fail"]
    ages = sorted(ages_s or [float(certificate["age_s"])])
    age = age_words(ages[0])
    if age_words(ages[-1]) != age:
        age += f" to {age_words(ages[-1])}"
    load = certificate.get("load_average") or []
    busy = f", load average {load[0]:.1f}" if load else ""
    # "normal" alone would lack its noun.
    way, scheduling = certificate["way"], str(certificate["class"]).replace("normal", "normal class")
    text = (
        f"calibrated {str(certificate['date']).replace('T', ' ').removesuffix('Z')} UTC, {age} before the "
        f"trial, way {way}, {scheduling}{busy}{', quick' if certificate.get('quick') else ''}: "
        f"{within} of {len(verdicts)} within their bounds"
    )
    skipped = [row["id"] for row in certificate["checks"] if row["verdict"] == "skipped"]
    text += f"; not {', '.join(failed)}" if failed else ""
    return text + (f"; not measured: {', '.join(skipped)}." if skipped else ".")


def for_groups(groups: Iterable[Group]) -> dict[str, Any] | None:
    """Returns the text under a scenario's figures; None if no trial of it is emulated.

    Returns:
        ``{"sentences": [...], "tables": [[cells, ...], ...], "mixed": bool}``.
    """
    trials = [trial for group in groups for trial in group.trials if trial.mode == "emu"]
    found = certificates(trials)
    machines = {virtual_sentence(machine): None for trial in trials if (machine := _virtual(trial))}
    if not found and not machines:
        return None
    sentences = list(machines)
    tables: list[list[Any]] = [[] for _ in machines]
    for certificate, count in found:
        mine = [] if certificate is None else [t for t in trials if _is_of(t, str(certificate["id"]))]
        ages = [float(trial.provenance["certificate"]["age_s"]) for trial in mine]
        prefix = f"{count} of {len(trials)} trials: " if len(found) > 1 else ""
        sentences.append(prefix + sentence(certificate, ages))
        tables.append([] if certificate is None else [row_cells(row) for row in certificate["checks"]])
    return {"sentences": sentences, "tables": tables, "mixed": len(found) + len(machines) > 1}


def _is_of(trial: Any, identity: str) -> bool:
    carried = trial.provenance.get("certificate") or {}
    return str(carried.get("id")) == identity


def for_report(entries: Iterable[Entry]) -> dict[str, Any] | None:
    """Returns the same over every scenario of a report."""
    return for_groups([group for entry in entries for group in entry.groups])
