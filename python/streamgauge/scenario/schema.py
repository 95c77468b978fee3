"""The published JSON Schema of scenario files, made from the model, for editors and other languages."""

from __future__ import annotations

from typing import Any

from streamgauge.scenario.model import Scenario

__all__ = ["SCHEMA_ID", "json_schema"]

SCHEMA_ID = "https://streamgauge.dev/schema/scenario-1.json"


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a scenario file, ``variants`` and ``extends`` included.

    It covers keys, units and words; only `streamgauge run` checks rules across the whole scenario (a flow
    that starts after the end).
    """
    schema = Scenario.model_json_schema(by_alias=True, mode="validation")
    variant = {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {
            "type": ["object", "null"],
            "properties": {"label": {"type": "string", "description": "Added to the title."}},
            "description": "Addresses (path.down.rate) with their values here; null takes a key away.",
        },
    }
    schema["properties"]["variants"] = {
        "description": "Scenarios that differ from this one: the end of the id, and what changes. "
        "A list of such mappings is multiplied out.",
        "anyOf": [variant, {"type": "array", "items": variant, "minItems": 1}],
    }
    definitions = schema.pop("$defs")
    of_a_file = {"type": "string", "description": "A file with such a list, relative to the scenario's."}
    definitions["Population"]["properties"]["members"]["anyOf"].append(of_a_file)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "StreamGauge scenario",
        "type": "object",
        "if": {"required": ["extends"]},
        "then": _extending(schema["properties"]),
        "else": schema,
        "$defs": definitions,
    }


def _extending(properties: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema of a file that extends another: any part of a scenario, as the two together are
    whole."""
    one_of_several = {
        "type": "object",
        "properties": {"file": {"type": "string"}, "id": {"type": "string"}},
        "required": ["file"],
        "additionalProperties": False,
    }
    parts = {name: {"description": told.get("description", "")} for name, told in properties.items()}
    return {
        "type": "object",
        "required": ["extends", "id"],
        "properties": {
            **parts,
            "id": properties["id"],
            "variants": properties["variants"],
            "extends": {
                "description": "The scenario that this one is but for what it says itself: an id of the "
                "catalogue, a file, or one of several in a file. null takes a key away.",
                "anyOf": [{"type": "string"}, one_of_several],
            },
        },
        "patternProperties": {r"\.": {"description": "An address with its value."}},
        "additionalProperties": False,
    }
