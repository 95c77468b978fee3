"""What Jenkins's xUnit plug-in takes for a JUnit report: the elements of its junit-10.xsd that we write, with
their attributes (required, further) and children."""

from __future__ import annotations

import re
from xml.etree import ElementTree

RESULT = (set[str](), {"type", "message"}, set[str]())
ELEMENTS: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"time", "skipped", "timestamp", "hostname", "id", "package", "file"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name"},
        {"classname", "time"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "failure": RESULT,
    "error": RESULT,
    "skipped": RESULT,
    "system-out": (set(), set(), set()),
}
_TIME = re.compile(r"\d{1,3}(\.\d+)?|\d{4,}(\.\d+)?")
RED = ("failure", "error")


def checked(text: str) -> ElementTree.Element:
    """The document, which keeps to the schema, counts right, and names no two cases alike."""
    root = ElementTree.fromstring(text.encode())
    assert root.tag == "testsuites"
    for element in root.iter():
        required, further, children = ELEMENTS[element.tag]
        assert required <= set(element.attrib) <= required | further, element.attrib
        assert {child.tag for child in element} <= children, element.tag
        assert "time" not in element.attrib or _TIME.fullmatch(element.attrib["time"])
    for above in (root, *root.iter("testsuite")):
        cases = list(above.iter("testcase"))
        assert above.attrib["tests"] == str(len(cases))
        for tag, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            if attribute in above.attrib:
                assert above.attrib[attribute] == str(sum(one.find(tag) is not None for one in cases))
    for one in root.iter("testcase"):
        results = [one.find(tag) for tag in ("failure", "error", "skipped")]
        told = [result for result in results if result is not None]
        assert len(told) <= 1
        for result in told:
            assert (result.text or "") == result.attrib["message"], "some show the one and some the other"
    called = [(one.attrib["classname"], one.attrib["name"]) for one in root.iter("testcase")]
    assert len(set(called)) == len(called), "GitLab shows the first of a name"
    return root


def outcomes(root: ElementTree.Element) -> list[str]:
    """Of each case in its order."""
    return [
        next((tag for tag in (*RED, "skipped") if one.find(tag) is not None), "passed")
        for one in root.iter("testcase")
    ]
