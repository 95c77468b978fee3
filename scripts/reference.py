"""Generates the site's reference pages from the code, one function a page, and tables of other pages.

`scripts/docs.py` writes the pages anew for each build, so that they cannot be older than the code. As a
program this writes the tables between `<!-- generated: NAME -->` and `<!-- end -->` in docs/, which a test
compares.

    .venv/bin/python scripts/reference.py
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import streamgauge
from streamgauge.claims.declaration import Metric
from streamgauge.claims.dimension import JSON_UNITS, UNITS
from streamgauge.claims.functions import DESCRIBED, FORMS, MANY, Function
from streamgauge.claims.names import METRICS, fed_by
from streamgauge.cli.app import command
from streamgauge.cli.systems import _json as system_as_json
from streamgauge.record.columns import COLUMNS
from streamgauge.record.schema import EVENTS, METRICS_FILE, PACKETS
from streamgauge.scenario.path import direction_in_words, find_preset, preset, preset_names
from streamgauge.scenario.schema import json_schema
from streamgauge.systems.player_events import MEASURED
from streamgauge.systems.registry import SYSTEMS, TRAFFIC

__all__ = ["blocks", "pages", "with_blocks"]

DOCS = Path(__file__).resolve().parent.parent / "docs"


def pages() -> dict[str, str]:
    """Returns every page by its file's name."""
    return {
        "commands.md": commands(),
        "scenario-files.md": scenario_files(),
        "systems.md": systems(),
        "metrics.md": metrics(),
        "events.md": events(),
        "presets.md": presets(),
        "python.md": python_api(),
    }


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Returns a Markdown table."""
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    lines += [f"| {' | '.join(_cell(str(cell)) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    # A bar ends a cell, and an angle opens a tag, but in code.
    parts = re.split(r"(`[^`]*`)", " ".join(text.replace("``", "`").split()).replace("|", "\\|"))
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in parts)


def code(text: object) -> str:
    """Returns code, or nothing for an empty text."""
    return f"`{text}`" if str(text) else ""


# --- commands -----------------------------------------------------------------------------------------------
def commands() -> str:
    """Returns every command, its arguments and options."""
    group: Any = command()
    parts = ["# Commands", _prose(group.help)]
    for name, one in group.commands.items():
        usage = " ".join(one.collect_usage_pieces(one.make_context(name, [], resilient_parsing=True)))
        parts += [f"## `{name}`", f"```\nstreamgauge {name} {usage}\n```", _prose(one.help or "")]
        arguments = [p for p in one.params if p.param_type_name == "argument"]
        options = [p for p in one.params if p.param_type_name == "option" and p.name != "help"]
        if arguments:
            rows = [(code(p.metavar or p.name), _plain(getattr(p, "help", "") or "")) for p in arguments]
            parts.append(table(("argument", ""), rows))
        if options:
            parts.append(table(("option", "value", "default", ""), map(_option, options)))
    return "\n\n".join(parts) + "\n"


def _option(one: Any) -> tuple[str, str, str, str]:
    names = " ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts))
    kind = one.type_descriptor.annotation
    choices = typing.get_args(kind) if typing.get_origin(kind) is typing.Literal else ()
    value = one.metavar or "|".join(map(str, choices)) or getattr(kind, "__name__", "")
    default = one.default if isinstance(one.default, str | int | float) else ""
    if one.is_flag:
        value = default = ""
    return names, code(value), code(default), _plain(one.help or "")


def _plain(text: str) -> str:
    return re.sub(r"\[/?b\]|\\(?=\[)", "", text)


def _prose(help_text: str) -> str:
    """Returns a description, with its examples as code."""
    found: list[str] = []
    for part in re.split(r"\n\s*\n", inspect.cleandoc(help_text.replace("\b", ""))):
        bold = re.fullmatch(r"\[b\](.*)\[/b\]", part.strip())
        if bold:
            found.append(f"**{bold[1]}**")
        elif re.match(r"\s*(sudo |tcpdump |mpv )?.*streamgauge [a-z-]+ |\s*mpv ", part) and len(part) < 400:
            text = f"```\n{inspect.cleandoc(_plain(part))}\n```"
            if found and found[-1].startswith("```"):
                found[-1] = found[-1].removesuffix("\n```") + text.removeprefix("```")
            else:
                found.append(text)
        else:
            found.append(_plain(" ".join(part.split())).replace("<", "&lt;"))
    return "\n\n".join(found)


# --- scenario files -----------------------------------------------------------------------------------------
def scenario_files() -> str:
    """Returns every key of a scenario file, from its JSON Schema."""
    schema = json_schema()
    parts = [
        "# Scenario files",
        "This page lists every key of a scenario file, from its JSON Schema. `streamgauge schema` prints the "
        "schema for editors. [scenarios.md](../scenarios.md) explains how to write one.",
        "## Scenario",
        _keys(schema["else"]),
    ]
    for name, one in sorted(schema["$defs"].items()):
        parts.append(f"## {name}")
        if text := one.get("description"):
            parts.append(_sentence(text))
        shapes = [
            shape for shape in (one, *one.get("anyOf", ()), *one.get("oneOf", ())) if "properties" in shape
        ]
        parts += [_keys(shape) for shape in shapes] or [f"Written as {_kind(one)}."]
    return "\n\n".join(parts) + "\n"


def _keys(shape: dict[str, Any]) -> str:
    required = set(shape.get("required", ()))
    rows = []
    for key, one in shape["properties"].items():
        default = one.get("default")
        usual = "required" if key in required else "" if default is None else code(_yaml(default))
        rows.append((code(key), _kind(one), usual, _sentence(one.get("description", ""))))
    return table(("key", "value", "default", ""), rows)


def _yaml(value: object) -> str:
    return {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _sentence(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


def _kind(one: dict[str, Any]) -> str:
    """Returns the values that a schema allows, in words, with links to their sections."""
    if "$ref" in one:
        name = one["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for key in ("anyOf", "oneOf"):
        if key in one:
            kinds = [_kind(part) for part in one[key] if part.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds))
    if "enum" in one:
        return " or ".join(code(_yaml(value)) for value in one["enum"])
    if "const" in one:
        return code(one["const"])
    if one.get("examples"):
        return f"such as {code(one['examples'][0])}"
    kind = one.get("type", "any value")
    if kind == "array" and isinstance(one.get("items"), dict):
        return f"list of {_kind(one['items'])}"
    if kind == "object" and isinstance(one.get("additionalProperties"), dict):
        return f"mapping of names to {_kind(one['additionalProperties'])}"
    words = {"string": "text", "object": "mapping", "array": "list", "boolean": "`on` or `off`"}
    return words.get(kind, kind) if isinstance(kind, str) else " or ".join(kind)


# --- systems and presets ------------------------------------------------------------------------------------
def systems() -> str:
    """Returns every system and kind of traffic, with its parameters."""
    parts = [
        "# Systems and parameters",
        "A flow names a `system` or `traffic`, and changes its `parameters`. "
        "`streamgauge systems NAME` prints the same.",
    ]
    for entry in (*SYSTEMS.values(), *TRAFFIC.values()):
        found = system_as_json("traffic" if entry.name in TRAFFIC else "system", entry)
        parts += [f"## `{found['name']}`", f"{found['title']}."]
        modes = [
            (code(mode), one["what"], "ours" if one["ours"] else "third-party")
            for mode, one in found["modes"].items()
        ]
        parts.append(table(("mode", "programs", "source"), modes))
        if found["parameters"]:
            parts.append(
                table(
                    ("parameter", "value", "default", "", "source"),
                    map(_parameter, found["parameters"].items()),
                )
            )
    return "\n\n".join(parts) + "\n"


def _parameter(item: tuple[str, dict[str, Any]]) -> tuple[str, str, str, str, str]:
    name, one = item
    kind = " or ".join(map(code, one["kind"])) if isinstance(one["kind"], list) else one["kind"]
    default = "required" if one["required"] else code(one["default"] or one["usual"] or "")
    return code(name), kind, default, one["help"], one["source"] or ""


def presets() -> str:
    """Returns every path that ships, with its sources."""
    parts = [
        "# Paths and traces",
        "`path: {preset: NAME}` in a scenario, or `streamgauge link --preset NAME`.",
    ]
    for name in preset_names():
        one, path = find_preset(name), preset(name)
        parts += [f"## `{name}`", f"{one.title}. {one.description}"]
        rows = [("down", direction_in_words(path.down)), ("up", direction_in_words(path.up))]
        rows += [(f"source: {s.what}", f"[{s.cite}]({s.url})" if s.url else s.cite) for s in one.sources]
        rows += [("assumed", text) for text in one.assumed]
        parts.append(table(("", ""), rows))
    return "\n\n".join(parts) + "\n"


# --- metrics and events -------------------------------------------------------------------------------------
def _unit(one: Metric) -> str:
    return JSON_UNITS.get(one.dimension, (str(one.dimension), 1.0))[0] or "number"


def metrics() -> str:
    """Returns every metric that a check, a figure or an option may name."""
    rows = [
        (
            code(one.name),
            one.title,
            _unit(one),
            one.of,
            {"more": "more is better", "less": "less is better"}.get(one.better, ""),
        )
        for one in METRICS.values()
    ]
    return (
        "# Names of metrics\n\nChecks, figures and `--metric` use these names. "
        "[How metrics are measured](../metrics.md) defines each one.\n\n"
        + table(("name", "title", "unit", "of", ""), rows)
        + "\n"
    )


def events() -> str:
    """Returns every event that metrics are measured from."""
    rows = [
        (code(one.name), code(one.unit), one.says, ", ".join(map(code, fed_by(one.name))), one.absence)
        for one in MEASURED.values()
    ]
    return (
        "# Names of events\n\nA player writes these events, and metrics are measured from them. "
        "[Player events](../player-events.md) explains how.\n\n"
        + table(("name", "unit", "time and value", "metrics", "without it"), rows)
        + "\n"
    )


# --- Python -------------------------------------------------------------------------------------------------
def python_api() -> str:
    """Returns the public names of the package."""
    parts = [
        "# Python API",
        "These names are public. They change only with a note in the changelog. "
        "Everything else may change at any time. "
        "[notebook.md](../notebook.md) has examples.",
    ]
    for name in streamgauge.__all__:
        one = getattr(streamgauge, name)
        if not callable(one):
            parts += [f"## `{name}`", "The version of the package."]
            continue
        parts += [
            f"## `{name}`",
            f"```python\n{name}{_signature(one)}\n```",
            inspect.cleandoc(one.__doc__ or "").split("\n\n")[0],
        ]
        if inspect.isclass(one) and not issubclass(one, Exception):
            found = [
                (code(key), inspect.cleandoc(value.__doc__).split("\n\n")[0])
                for key, value in inspect.getmembers(one)
                if not key.startswith("_") and value.__doc__ and _is_ours(value)
            ]
            if found:
                parts.append(table(("member", ""), found))
    return "\n\n".join(parts) + "\n"


def _is_ours(member: Any) -> bool:
    """Returns whether it is a method or a property that this package defines, and not one of its bases'."""
    defined = member.fget if isinstance(member, property) else member
    return callable(defined) and getattr(defined, "__module__", "").startswith("streamgauge")


def _signature(one: Any) -> str:
    if typing.is_typeddict(one) or (inspect.isclass(one) and issubclass(one, Exception)):
        return "(message)"
    try:
        found = re.sub(r"streamgauge(\.\w+)+\.(?=\w)", "", str(inspect.signature(one)))
        # A model has the keys of its file, and validators that have no text.
        return "(**keys)" if " at 0x" in found else found
    except (TypeError, ValueError):
        return "(...)"


# --- tables of other pages ----------------------------------------------------------------------------------
def blocks() -> dict[str, str]:
    """Returns every generated table by its name."""
    return {
        "check-forms": table(
            ("expression", "meaning"), [(_examples(one.examples), one.meaning) for one in FORMS]
        ),
        "check-functions": table(
            ("function", "arguments", "of", "meaning", "example"), map(_function, DESCRIBED)
        ),
        "check-units": table(("quantity", "units"), _units()),
        "packets-columns": _columns(PACKETS),
        "events-columns": _columns(EVENTS),
        "metrics-columns": _columns(METRICS_FILE),
        **{f"metrics-{section or 'flow'}": _formulas(section) for section in _SECTIONS},
        **{
            f"events-{group}": _events(group)
            for group in dict.fromkeys(one.slug for one in MEASURED.values())
        },
    }


_SECTIONS = tuple(dict.fromkeys(["", *(metric.section for metric in METRICS.values())]))
"""Tables of docs/metrics.md; the metrics of flows have no name."""
_UNITS = {"bps": "bit/s", "percent": "%", "packets_per_s": "packets/s", "bytes_per_packet": "bytes"}


def _formulas(section: str) -> str:
    """Returns a table of metrics; that of bottlenecks has those that flows have as well."""
    rows = []
    for one in METRICS.values():
        if one.section == section or (section == "bottleneck" and not one.section and "stage" in one.of):
            unit = _unit(one)
            name = f"`{one.name}`{f' ({one.number})' if one.number else ''}"
            rows.append((name, _UNITS.get(unit, unit), one.formula, ", ".join(map(code, one.keys))))
    return table(("name", "unit", "formula", "JSON"), rows)


def _events(group: str) -> str:
    """Returns a group's table of docs/player-events.md."""
    rows = [
        (code(one.name), one.unit, one.says, ", ".join(map(code, fed_by(one.name))), one.absence)
        for one in MEASURED.values()
        if one.slug == group
    ]
    return table(("event", "unit", "time and value", "metrics", "without it"), rows)


def _examples(examples: Iterable[str]) -> str:
    return ", ".join(map(code, examples))


def _function(one: Function) -> tuple[str, str, str, str, str]:
    count = str(one.least)
    if one.most != one.least:
        count = f"{one.least} to {one.most}" if one.most < MANY - 1 else f"{one.least} or more"
    return code(one.name), count, one.over, one.meaning, _examples(one.examples)


def _units() -> list[tuple[str, str]]:
    found: dict[str, list[str]] = {}
    for unit, (_, dimension) in UNITS.items():
        found.setdefault(str(dimension), []).append(unit)
    return [(dimension, ", ".join(map(code, units))) for dimension, units in found.items()]


def _columns(file: str) -> str:
    rows = [(code(one.name), one.type, one.unit, one.meaning) for one in COLUMNS[file]]
    return table(("column", "type", "unit", "meaning"), rows)


def with_blocks(text: str) -> str:
    """Returns a page with its generated tables as they are now. A name that nothing generates is an error."""
    found = blocks()
    return re.sub(
        r"(<!-- generated: (\S+) -->\n).*?(<!-- end -->)",
        lambda match: f"{match[1]}{found[match[2]]}\n{match[3]}",
        text,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    for page in sorted(DOCS.rglob("*.md")):
        before = page.read_text(encoding="utf-8")
        if (after := with_blocks(before)) != before:
            page.write_text(after, encoding="utf-8")
            print(f"reference: {page.relative_to(DOCS.parent)}")
