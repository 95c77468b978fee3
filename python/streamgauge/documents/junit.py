"""JUnit XML, as GitHub's and GitLab's readers and Jenkins take it.

There is no standard. The output follows the schema of Jenkins's xUnit plug-in (junit-10.xsd, which Surefire's
format became): properties belong to suites alone, ``testsuites`` has no ``skipped``. GitLab shows the text of
``failure``, ``error``, ``skipped`` and of a case's ``system-out``, not their messages, and of cases with
equal names the first: texts are in both places, names are made unique.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from xml.etree import ElementTree

__all__ = ["JunitCase", "JunitOutcome", "JunitSuite", "junit_xml"]

JunitOutcome = Literal["passed", "failure", "error", "skipped"]
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 (section 2.2) has no way to write."""


@dataclass(frozen=True, kw_only=True)
class JunitCase:
    """A test case."""

    name: str
    outcome: JunitOutcome = "passed"
    message: str = ""
    """In a sentence, why it did not pass."""
    type: str = ""
    """The kind of failure or error in a word."""
    out: Sequence[str] = ()
    """Lines for ``system-out``."""


@dataclass(frozen=True, kw_only=True)
class JunitSuite:
    """A suite of test cases."""

    name: str
    cases: Sequence[JunitCase]
    properties: Mapping[str, str] = field(default_factory=dict)
    out: Sequence[str] = ()
    """Lines for ``system-out``."""


def junit_xml(suites: Sequence[JunitSuite], *, name: str, seconds: float = 0.0) -> str:
    """Returns the document.

    Args:
        suites: in order; two of one name stay two.
        name: of all of them.
        seconds: how long all took, s. Cases and suites have a time of 0, for trials are spent on many at
            once; readers require the attribute.
    """
    root = ElementTree.Element("testsuites", {"name": _text(name), **_counts(suites), "time": _s(seconds)})
    taken: Counter[tuple[str, str]] = Counter()
    for suite in suites:
        _add_suite(root, suite, taken)
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _add_suite(root: ElementTree.Element, suite: JunitSuite, taken: Counter[tuple[str, str]]) -> None:
    name = _text(suite.name)
    counts = {**_counts([suite]), "skipped": str(_count([suite], "skipped"))}
    there = ElementTree.SubElement(root, "testsuite", {"name": name, **counts, "time": _s(0.0)})
    if suite.properties:
        properties = ElementTree.SubElement(there, "properties")
        for key, value in suite.properties.items():
            ElementTree.SubElement(properties, "property", {"name": _text(key), "value": _text(value)})
    for case in suite.cases:
        called = _text(case.name)
        taken[name, called] += 1
        if taken[name, called] > 1:
            called = f"{called} ({taken[name, called]})"
        one = ElementTree.SubElement(there, "testcase", {"classname": name, "name": called, "time": _s(0.0)})
        if case.outcome != "passed":
            about = {"message": _text(case.message)}
            if case.type and case.outcome != "skipped":
                about["type"] = _text(case.type)
            ElementTree.SubElement(one, case.outcome, about).text = _text(case.message)
        _say(one, case.out)
    _say(there, suite.out)


def _say(element: ElementTree.Element, lines: Sequence[str]) -> None:
    if lines:
        ElementTree.SubElement(element, "system-out").text = _text("\n".join(lines))


def _counts(suites: Sequence[JunitSuite]) -> dict[str, str]:
    return {
        "tests": str(sum(len(suite.cases) for suite in suites)),
        "failures": str(_count(suites, "failure")),
        "errors": str(_count(suites, "error")),
    }


def _count(suites: Sequence[JunitSuite], outcome: JunitOutcome) -> int:
    return sum(case.outcome == outcome for suite in suites for case in suite.cases)


def _s(seconds: float) -> str:
    """With three decimals and no separator, which readers disagree about."""
    return f"{seconds:.3f}"


def _text(text: str) -> str:
    # Readers make one line's end of each of these.
    return _NOT_XML.sub("\ufffd", text).replace("\r\n", "\n").replace("\r", "\n")
