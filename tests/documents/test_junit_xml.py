"""JUnit XML that readers take, whatever is said in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from junit_schema import checked, outcomes
from streamgauge.documents import JunitCase, JunitSuite, junit_xml

anything = st.text(max_size=20)
cases = st.builds(
    JunitCase,
    name=anything,
    outcome=st.sampled_from(("passed", "failure", "error", "skipped")),
    message=anything.filter(lambda text: "\r" not in text),
    type=anything,
    out=st.lists(anything, max_size=3),
)
suites = st.builds(
    JunitSuite,
    name=anything,
    cases=st.lists(cases, max_size=4),
    properties=st.dictionaries(anything, anything, max_size=3),
    out=st.lists(anything, max_size=2),
)


@given(st.lists(suites, max_size=4), anything, st.floats(0, 1e7))
def test_readers_take_whatever_is_said(some: list[JunitSuite], name: str, seconds: float) -> None:
    root = checked(junit_xml(some, name=name, seconds=seconds))
    assert outcomes(root) == [case.outcome for suite in some for case in suite.cases]
    assert len(root.findall("testsuite")) == len(some)


def test_what_xml_cannot_say_is_marked() -> None:
    root = checked(junit_xml([JunitSuite(name="a\x1b[31m", cases=[JunitCase(name="<&\"'>")])], name="\0"))
    assert root.attrib["name"] == "\ufffd"
    assert [one.attrib["name"] for one in root.iter("testsuite")] == ["a\ufffd[31m"]
    assert [one.attrib["name"] for one in root.iter("testcase")] == ["<&\"'>"]


def test_cases_of_one_name_stay_apart() -> None:
    suite = JunitSuite(name="s", cases=[JunitCase(name="loss")] * 3)
    root = checked(junit_xml([suite, suite], name="n"))
    assert [one.attrib["name"] for one in root.iter("testcase")][:3] == ["loss", "loss (2)", "loss (3)"]
