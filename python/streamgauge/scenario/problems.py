"""Validation errors of a model, as plain problems with a place and a remedy."""

from __future__ import annotations

from pydantic import ValidationError

from streamgauge.scenario.values import TAG_MARK, Problem, nearest

__all__ = ["problems_of"]

_EXPECTED = {
    "dict_type": "a mapping",
    "tuple_type": "a list",
    "bool_type": "true or false",
    "int_type": "a whole number",
}


def problems_of(error: ValidationError) -> list[Problem]:
    """Returns a model's errors as problems, in its order, each with the keys that lead to it."""
    found: list[Problem] = []
    for detail in error.errors(include_url=False):
        at = tuple(
            part for part in detail["loc"] if not (isinstance(part, str) and part.startswith(TAG_MARK))
        )
        context = detail.get("ctx", {})
        hint: str | None = None
        problems: list[Problem]
        match detail["type"]:
            case "issues":
                problems = [Problem((*at, *p.path), p.why, p.hint, p.depends) for p in context["issues"]]
            case "issue":
                problems = [
                    Problem((*at, *context["key"]), context["why"], context["hint"], context["depends"])
                ]
            case "missing" if isinstance(at[-1], int):
                problems = [Problem(at[:-1], f"the list ends too early, after {at[-1]} of its entries")]
            case "missing":
                problems = [Problem(at, f"the key '{at[-1]}' is missing", f"add '{at[-1]}:'")]
            case "literal_error":
                wanted = [
                    part.strip("'") for part in str(context["expected"]).replace(" or ", ", ").split(", ")
                ]
                close = nearest(str(detail["input"]), wanted)
                hint = f"did you mean '{close}'?" if close else None
                problems = [
                    Problem(
                        at, f"'{detail['input']}' is not known; expected one of {', '.join(wanted)}", hint
                    )
                ]
            case "string_type":
                said = detail["input"]
                problems = [
                    Problem(
                        at,
                        f"{said!r} stands where text was expected",
                        f"write '{said}' in quotes" if isinstance(said, int | float) else None,
                    )
                ]
            case "dict_type" | "tuple_type" | "bool_type" | "int_type":
                what = _EXPECTED[detail["type"]]
                problems = [Problem(at, f"{detail['input']!r} stands where {what} was expected")]
            case "quantity" | "text":
                problems = [Problem(at, detail["msg"])]
            case _:
                said = detail["msg"][0].lower() + detail["msg"][1:]
                plain = not isinstance(detail["input"], dict | list | tuple)
                problems = [Problem(at, f"{detail['input']!r}: {said}" if plain else said)]
        found += problems
    return found
