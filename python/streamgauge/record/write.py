"""Completes the record of a trial."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from streamgauge import _native
from streamgauge.record import provenance as provenance_module
from streamgauge.record.balance import balance
from streamgauge.record.read import Record, stage_labels
from streamgauge.record.schema import (
    EVENTS,
    PACKETS,
    PROVENANCE,
    PROVENANCE_SCHEMA,
    TRIAL,
    TRIAL_SCHEMA,
)
from streamgauge.record.seal import FILES, SEAL, file_digests, is_intact, seal_of, text_of

Keep = Literal["metrics", "events", "packets"]
KEPT: dict[Keep, tuple[str, ...]] = {"metrics": (), "events": (EVENTS,), "packets": (PACKETS, EVENTS)}
"""The large files of a record that are stored."""


class JsonText(str):
    """A value as its JSON, which is written unchanged: the common input of simulator and files is serialised
    once."""

    @classmethod
    def of(cls, value: Any) -> JsonText:
        """Raises ValueError if a number is not finite."""
        return cls(text_of(value))


def legend(plan: Mapping[str, Any] | JsonText) -> dict[str, Any]:
    """Returns the meaning of the codes in a record of this plan: names of flows, stages with their
    directions."""
    text = plan if isinstance(plan, JsonText) else JsonText.of(plan)
    found: dict[str, Any] = json.loads(_native.legend(text))
    return found


def write_events(directory: Path, events: Sequence[Mapping[str, Any]], *, plan: Mapping[str, Any]) -> str:
    """Writes `events.parquet`, sorted by time (events of one time stay in the order given).

    Args:
        directory: the trial's directory.
        events: each `{"t_ns", "flow", "name", "value", "unit", "reason"}`: whole ns since the trial's start,
            the flow's name or None, the event, a finite number or None, its SI unit, the cause. Only `t_ns`
            and `name` must be there.
        plan: the trial's plan.

    Returns:
        The digest of the events.

    Raises:
        RecordError: if an event is not of that form or names a flow that the plan has not.
        OSError: if the file cannot be written.
    """
    text = json.dumps([dict(event) for event in events], allow_nan=False)
    return _native.write_events(directory, text, _native.legend(json.dumps(plan)))


def finish_trial(
    directory: Path,
    *,
    scenario: Mapping[str, Any],
    plan: Mapping[str, Any],
    plan_text: JsonText | None = None,
    mode: str,
    seed: int,
    validity: Mapping[str, Any],
    provenance: Mapping[str, Any],
    resume_key: str,
    summary: Mapping[str, Any],
    settings: Sequence[str] = (),
    set_with: Sequence[str] | None = None,
    replaces: int | None = None,
    ours: Mapping[str, bool] | None = None,
    systems: Mapping[str, Mapping[str, int]] | None = None,
    in_memory: bool = False,
    measure: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Writes `trial.json` and `provenance.json` beside the packets and events that are there already.

    Args:
        directory: the trial's directory.
        scenario: the scenario as run, normalised: with packets and events it makes the digest.
        plan: the trial's plan.
        plan_text: the same as JSON, where it is at hand.
        mode: "sim" or "emu".
        seed: the trial's seed.
        validity: `{"valid", "why", "bounds", "measured"}`.
        provenance: additions to the result of `collect_provenance`.
        resume_key: equal for trials that need not be run again.
        summary: the run's own summary; `duration_s`, `model_version`, `balance` and `host` are used if they
            exist, the rest is kept under "summary".
        settings: settings of the scenario, `ADDRESS=VALUE`.
        set_with: settings of the scenarios that this one was run for; the same if None.
        replaces: the seed of the invalid trial that this one replaces.
        ours: for each flow, whether we wrote the programs at both ends; if None, whether the plan has a
            machine of ours for it.
        systems: the versions of the parts of each system that the trial used.
        in_memory: packets and events were never written, and `summary` has their digests.
        measure: writes the metrics beside them, given the coming content of `trial.json` but for digests.

    Returns:
        The present content of `trial.json`.

    Raises:
        RecordError: if a file of the record cannot be read.
        OSError: if a file cannot be written.
    """
    digests: dict[str, str | None] = {}
    kept = []
    for name, key in ((PACKETS, "packets_digest"), (EVENTS, "events_digest")):
        path = directory / name
        if in_memory:
            digests[name] = summary[key]
            continue
        digests[name] = json.loads(_native.footer(path))["digest"] if path.exists() else None
        if digests[name] is not None:
            kept.append(name)
    plan_text = JsonText.of(plan) if plan_text is None else plan_text
    scenario_text = _text_of(scenario)
    labels = legend(plan_text)
    stages = [{"id": code, **stage} for code, stage in enumerate(labels["stage"])]
    rows = summary.get("balance")
    if rows is None and PACKETS in kept:
        rows = balance(Record.packets_of(directory / PACKETS), labels["stage"], stage_labels(labels["stage"]))
    trial: dict[str, Any] = {
        "schema": TRIAL_SCHEMA,
        "digest": _native.trial_digest(scenario_text, digests[PACKETS] or "", digests[EVENTS] or ""),
        "packets_digest": digests[PACKETS],
        "events_digest": digests[EVENTS],
        "kept": kept,
        "mode": mode,
        "seed": seed,
        "model_version": summary.get("model_version", _native.MODEL_VERSION),
        "systems": {name: dict(told) for name, told in (systems or {}).items()},
        "set": list(settings),
        **({"set_with": list(set_with)} if set_with is not None and [*set_with] != [*settings] else {}),
        "replaces": replaces,
        "resume_key": resume_key,
        "duration_s": summary.get("duration_s", plan["duration"] / 1e9),
        "validity": dict(validity),
        "stages": stages,
        "flows": [
            *(_flow(code, flow, scenario, ours) for code, flow in enumerate(plan["flows"])),
            *_relays(plan),
        ],
        "balance": rows or [],
        "host": summary.get("host") or {},
        "summary": {key: value for key, value in summary.items() if key not in ("balance", "host")},
        "scenario": dict(scenario),
        "plan": dict(plan),
    }
    origin = {
        "schema": PROVENANCE_SCHEMA,
        **provenance_module.collect(),
        "finished_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **provenance,
    }
    write_json(directory / PROVENANCE, origin)
    if measure is not None:
        measure(trial)
    trial[FILES] = file_digests(directory)
    # Last: a directory with a trial.json is a whole record.
    trial[SEAL] = write_sealed(directory / TRIAL, trial | {"scenario": scenario_text, "plan": plan_text})
    return trial


def rewrite_trial(
    directory: Path, before: Mapping[str, Any], *, anew: Collection[str] = (), **changes: Any
) -> dict[str, Any]:
    """Writes a `trial.json` that reads `before`, with changes, and seals it again.

    A record that others edited keeps its broken seal, one without a seal stays without.

    Args:
        directory: the trial's directory.
        before: the old content of `trial.json`.
        anew: the files of the seal that have just been written.
        changes: keys of `trial.json`.

    Returns:
        The present content of `trial.json`.

    Raises:
        OSError: if it cannot be written.
    """
    trial = {**before, **changes}
    if is_intact(before):
        trial[FILES] = {**before[FILES], **file_digests(directory, anew)}
        trial[SEAL] = write_sealed(directory / TRIAL, trial)
    else:
        write_json(directory / TRIAL, trial)
    return trial


def write_sealed(path: Path, trial: Mapping[str, Any]) -> str:
    """Writes it with its seal last, which it returns."""
    texts = {key: item if isinstance(item, JsonText) else JsonText.of(item) for key, item in trial.items()}
    seal = seal_of(texts)
    write_json(path, {key: text for key, text in texts.items() if key != SEAL} | {SEAL: seal})
    return seal


_last_text: tuple[Mapping[str, Any], JsonText] | None = None


def _text_of(scenario: Mapping[str, Any]) -> JsonText:
    """Returns a scenario as JSON; consecutive trials are mostly of one, which is read-only."""
    global _last_text
    found = _last_text
    if found is None or found[0] is not scenario:
        found = _last_text = (scenario, JsonText.of(scenario))
    return found[1]


def prune(directory: Path, keep: Keep) -> None:
    """Removes the files that a campaign does not keep, and marks it in `trial.json`.

    The digests stay; `Record.verify` checks the remaining files.

    Raises:
        RecordError: if there is no whole record in `directory`.
        OSError: if a file cannot be removed or written.
    """
    trial = Record.open(directory).trial
    kept = [name for name in trial["kept"] if name in KEPT[keep]]
    if kept != trial["kept"]:
        # In this order a crash in between leaves files too many, never a promise of a file that is gone.
        rewrite_trial(directory, trial, kept=kept)
        for name in (PACKETS, EVENTS):
            if name not in kept:
                (directory / name).unlink(missing_ok=True)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Writes a JSON object, a top-level key a line, whole or not at all."""
    lines = (
        f"{json.dumps(key)}: {item if isinstance(item, JsonText) else JsonText.of(item)}"
        for key, item in value.items()
    )
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _relays(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the relays of a plan as flows of `trial.json`: their traffic across the path counts as
    theirs."""
    subjects = {flow.get("via") for flow in plan["flows"] if flow["role"] == "subject"}
    return [
        {
            "id": len(plan["flows"]) + place,
            "name": relay["name"],
            "role": "subject" if relay["name"] in subjects else "rival",
            "system": next(iter(relay["app"])),
            "ours": True,
        }
        for place, relay in enumerate(plan.get("relays") or ())
    ]


#: Machines of a plan that play nothing: traffic; the others are streaming systems.
_TRAFFIC = {told["name"] for told in json.loads(_native.systems()) if told["content"] == "none"}


def _flow(
    code: int, flow: Mapping[str, Any], scenario: Mapping[str, Any], ours: Mapping[str, bool] | None
) -> dict[str, Any]:
    """Returns one flow of `trial.json`: its description in the scenario's words, and whether its programs are
    ours."""
    app = flow["app"]
    machine = app if isinstance(app, str) else next(iter(app))
    said = (scenario.get("flows") or {}).get(flow["name"]) or {}
    entry: dict[str, Any] = {"id": code, "name": flow["name"], "role": flow["role"]}
    if said.get("traffic") or (not said.get("system") and machine in _TRAFFIC):
        entry["traffic"] = said.get("traffic") or machine
    else:
        entry["system"] = said.get("system") or machine
    return entry | {"ours": machine != "external" if ours is None else ours[flow["name"]]}
