"""Whatever stands in a file, the answer is a scenario or an error with a place, never a traceback."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_scenario import BASE
from streamgauge.errors import ScenarioError
from streamgauge.scenario import from_text

MORE = """\
measure: {window: [0 s, 10 s], sample: 1 s}
repetitions: {sim: 2}
randomize: {ftp.start: uniform 0 to 1 ms}
assumed: {flows.ftp.congestion_control: {try: [reno, cubic]}}
checks:
  X.1: {that: loss.ftp <= 1 %, origin: input, published: {loss: 1 %}, breaks: {path.down.rate: 9 Mbit/s}}
figures: [{draw: series, of: [throughput]}]
variants: {a: {label: A, flows.probe: }, b: {path.down.loss: 1 %}}
"""
TEXT = BASE + MORE
TOKENS = sorted(
    {*TEXT.replace("{", " ").replace("}", " ").split(), "{", "}", "[", "]", ":", "-", "~", "0", "''"}
)


def answered(text: str) -> None:
    try:
        made = from_text(text, file="f.yaml")
    except ScenarioError as error:
        assert str(error).startswith("f.yaml")
    else:
        assert made


@given(st.integers(0, len(TEXT)), st.integers(0, 12), st.text(max_size=6))
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_any_slip_of_the_keyboard(at: int, length: int, typed: str) -> None:
    answered(TEXT[:at] + typed + TEXT[at + length :])


@given(st.data())
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_any_word_in_the_place_of_another(data: st.DataObject) -> None:
    words = TEXT.split(" ")
    for _ in range(data.draw(st.integers(1, 3))):
        words[data.draw(st.integers(0, len(words) - 1))] = data.draw(st.sampled_from(TOKENS))
    answered(" ".join(words))


scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
trees = st.recursive(
    scalars, lambda t: st.one_of(st.lists(t, max_size=3), st.dictionaries(st.text(max_size=5), t, max_size=3))
)
KEYS = ["path", "flows", "until", "measure", "checks", "assumed", "variants", "randomize", "figures", "modes"]


@given(st.sampled_from(KEYS), trees)
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
def test_any_value_under_any_key(key: str, tree: object) -> None:
    import json

    lines = [line for line in BASE.splitlines() if not line.startswith((f"{key}:", "  ")) or key == "id"]
    answered("\n".join([*lines, f"{key}: {json.dumps(tree)}"]))


@pytest.mark.parametrize("value", ["!!python/object/apply:os.system [x]", "!a {b: c}", "!a b"])
def test_a_tag_is_refused(value: str) -> None:
    with pytest.raises(ScenarioError, match=r"^f\.yaml:\d+: .*the tag .* is not read"):
        from_text(f"{BASE}\nquestion: {value}\n", file="f.yaml")


@pytest.mark.parametrize("value", ["a" * 100_000, "9" * 5_000])
def test_an_error_repeats_no_long_value(value: str) -> None:
    text = f"id: a/b\ntitle: t\npath: {{down: {{rate: 1 Mbit/s, queue: droptail {value}}}}}\nflows: {{}}\n"
    with pytest.raises(ScenarioError) as raised:
        from_text(text)
    assert len(str(raised.value)) < 1500
