"""Plain YAML by libyaml is what Python's own parser makes of it; what is not plain is left to that."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from ruamel.yaml import __with_libyaml__
from streamgauge.errors import ScenarioError
from streamgauge.scenario import plain_yaml
from streamgauge.scenario.document import _by_ruamel, parse_document
from streamgauge.scenario.shipped import catalogue_ids

needs_libyaml = pytest.mark.skipif(not __with_libyaml__, reason="ruamel.yaml.clib is not installed")
FILES = sorted(set(catalogue_ids().values()))


def _typed(data: object) -> object:
    """With the type of each scalar: True and 1 are equal."""
    if isinstance(data, dict):
        return [(key, _typed(value)) for key, value in data.items()]
    if isinstance(data, list):
        return [_typed(value) for value in data]
    return type(data), repr(data)


def _agree(text: str) -> bool:
    """Whether it was plain; then both read the same, on the same lines."""
    found = plain_yaml.read_plain(text)
    if found is None:
        return False
    data, lines = found
    other = _by_ruamel(text, "file")
    assert _typed(data) == _typed(other.data), text
    assert {key: ("file", line) for key, line in lines.items()} == other.places, text
    return True


@needs_libyaml
def test_nearly_all_of_the_catalogue_is_plain() -> None:
    texts = [path.read_text(encoding="utf-8") for path in FILES]
    left = [text for text in texts if plain_yaml.read_plain(text) is None]
    # These have a tag, or what looks like one.
    assert all(" !" in text for text in left)
    assert len(left) < len(FILES) / 8


@needs_libyaml
@pytest.mark.parametrize("path", FILES[::4], ids=lambda path: path.stem)
def test_a_scenario_is_the_same_by_both(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert _agree(text) or " !" in text


@needs_libyaml
@pytest.mark.parametrize(
    "value",
    ["true", "yes", "no", "~", "", "0o17", "017", "0x1f", "1_000", "1e3", ".inf", "-0", "1:30", "'1'",
     '"\\u00e9"',
     "|\n  a\n   b\n", ">-\n  a\n\n  b\n", "\n  - a\n  -\n  - {b: [c, d e]}", "http://a:80/#b", "a # b",
     "&x 1", "&x true", "&x {a: [1]}\nother: *x", "{a, b: }",
     "&x {a: 1, b: 2}\nother:\n  c: 3\n  <<: *x\n  b: 4\n",
     "&x {a: 1}\nthen: &y {<<: *x, b: 2}\nother: {<<: *y, a: 3}\n",
     "[a: b]"],
)  # fmt: skip
def test_scalars_are_of_the_same_type(value: str) -> None:
    assert _agree(f"key: {value}\nlast: 1\n")


@pytest.mark.parametrize(
    "text",
    ["a: 1\na: 2\n", "a: [1\n", "a:\t1\n", "a: !!str 1\n", "a: !own b\n", "%YAML 1.1\n---\na: yes\n",
     "a: 1\n---\nb: 2\n", "- a\n", "a", "", "a: &x [*x]\n", "? [a]\n: b\n", "a: &x {b: 1}\nc: {<<: [*x]}\n",
     "a: &x {<<: *x}\n",
     "a: 2001-01-01\n",
     "a: b\u2028c\n", "a: *x\n", "a: " + "[" * 100_000],
)  # fmt: skip
def test_what_is_wrong_or_not_plain_is_left(text: str) -> None:
    assert plain_yaml.read_plain(text) is None


@needs_libyaml
def test_a_text_with_slips_is_the_same_by_both_or_left() -> None:
    chosen, plain = random.Random(5), 0
    signs = [
        ":",
        " ",
        "\n",
        "- ",
        "#",
        "'",
        '"',
        "{",
        "}",
        "[",
        "]",
        ",",
        "&a ",
        "*a",
        "!",
        "|",
        ">",
        "%",
        "? ",
        "<<: ",
    ]
    texts = [text for path in FILES if len(text := path.read_text(encoding="utf-8")) < 3000]
    for _ in range(150):
        text = chosen.choice(texts)
        for _ in range(2):
            at = chosen.randrange(len(text))
            text = text[:at] + chosen.choice(signs) + text[at + chosen.randrange(2) :]
        plain += _agree(text)
    assert plain > 20


def test_a_bool_with_an_anchor_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_document("a: &x true\nb: *x\n", "with").data == {"a": True, "b": True}
    monkeypatch.setattr(plain_yaml, "read_plain", lambda text: None)
    assert parse_document("a: &x true\nb: *x\n", "without").data["b"] is True


def test_a_refusal_says_the_same_without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ScenarioError) as with_it:
        parse_document("a: 1\nb: [1\nc: 2\n", "file")
    monkeypatch.setattr(plain_yaml, "__with_libyaml__", False)
    with pytest.raises(ScenarioError) as without:
        parse_document("a: 1\nb: [1\nc: 2\n\n", "file")
    assert str(with_it.value) == str(without.value)
