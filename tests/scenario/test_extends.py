"""A scenario that extends another: the same where it says nothing, what it says where it does, and every slip
told at its place, in whichever file that is."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_scenario import BASE
from streamgauge.campaign import run
from streamgauge.errors import ScenarioError
from streamgauge.record import Record
from streamgauge.scenario import Scenario, catalogue_ids, from_text, json_schema, load, load_file, lower
from streamgauge.scenario.words import in_words

EXPERIMENT = ("path", "flows", "relays", "until", "randomize", "population", "host_jitter", "start_phase")


def experiment(scenario: Scenario) -> dict[str, Any]:
    data = scenario.normalised()
    return {key: data.get(key) for key in EXPERIMENT}


def extend(base: str, *lines: str, id: str = "my/one") -> Scenario:
    (found,) = from_text("\n".join([f"extends: {base}", f"id: {id}", *lines]))
    return found


@given(st.sampled_from(sorted(catalogue_ids())), st.integers(1, 10**6))
@settings(max_examples=40)
def test_without_a_change_the_plan_is_the_same(base: str, seed: int) -> None:
    (theirs,), ours = load(base), extend(base)
    assert experiment(ours) == experiment(theirs) and ours.title == theirs.title
    assert ours.measure == theirs.measure and ours.repetitions == theirs.repetitions
    for mode in theirs.supported_modes():
        assert lower(ours, mode, seed) == lower(theirs, mode, seed) | {"scenario": "my/one"}


def test_without_a_change_the_record_is_the_same(tmp_path: Path) -> None:
    base = "hessler/ftp-burst"
    both = [load(base)[0], extend(base)]
    result = run(both, {one.id: ["sim"] for one in both}, tmp_path, repeat=1)
    tables = {
        (trial["packets_digest"], trial["events_digest"])
        for outcome in result.outcomes
        if outcome.job.scenario.id in (base, "my/one")
        for trial in [Record.open(outcome.job.directory).trial]
    }
    assert len(tables) == 1
    assert len({outcome.job.key for outcome in result.outcomes}) == len(result.outcomes), "two experiments"


# (address, value): what `--set` makes of it and what a file makes of it that says the same key by key.
CHANGES: list[tuple[str, Any]] = [
    ("path.down.rate", "2 Mbit/s"),
    ("path.down.rate", {"square": {"first": "1 Mbit/s", "second": "2 Mbit/s", "period": "10 s"}}),
    ("path.down.queue", "codel 50 packets target 10 ms"),
    ("path.down.queue", {"pie": {"limit": "100 packets"}}),
    ("path.down.shaper", "cbq"),
    ("path.down.delay", "20 ms"),
    ("path.up.delay", "20 ms"),
    ("flows.cross", None),
    ("flows.cross.stop", None),
    ("flows.cross.parameters.rate", "60 packets/s"),
    ("flows.ftp.congestion_control", "cubic"),
    ("flows.ftp.parameters.receive_window", None),
    ("flows.more", {"role": "rival", "traffic": "ping"}),
    ("until.time", "30 s"),
    ("until.idle", "5 s"),
    ("host_jitter", "0 s"),
    ("randomize", {"path.down.delay": "uniform 10 to 50 ms"}),
]


def nested(address: str, value: Any) -> dict[str, Any]:
    for key in reversed(address.split(".")):
        value = {key: value}
    assert isinstance(value, dict)
    return value


def merged(into: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    for key, value in more.items():
        both = isinstance(into.get(key), dict) and isinstance(value, dict)
        into[key] = merged(into[key], value) if both else value
    return into


@given(st.lists(st.sampled_from(CHANGES), max_size=4, unique_by=lambda one: one[0]), st.booleans())
@settings(max_examples=60)
def test_what_a_file_says_is_what_its_settings_would(changes: list[tuple[str, Any]], dotted: bool) -> None:
    """Whether it says it key by key or by address."""
    if {"flows.cross", "until.time"} <= {address for address, _ in changes}:
        changes = [one for one in changes if one[0] != "until.time"]
    if ("flows.cross", None) in changes:
        changes = [one for one in changes if not one[0].startswith("flows.cross.")]
    base = "hessler/ftp-medium"
    own: dict[str, Any] = {"extends": base, "id": "my/one"}
    for address, value in changes:
        merged(own, {address: value} if dotted else nested(address, value))
    assigned = ["checks=null", "assumed=null"]
    assigned += [f"{address}={json.dumps(value)}" for address, value in changes]
    try:
        (wanted,) = load(base, settings=assigned)
    except ScenarioError:
        with pytest.raises(ScenarioError):
            from_text(json.dumps(own))
        return
    (found,) = from_text(json.dumps(own))
    assert experiment(found) == experiment(wanted)
    told = found.based_on
    assert told is not None and told.scenario == base
    assert all(any(one.startswith(address) for address, _ in changes) for one in told.changes)
    assert bool(told.changes) == (experiment(found) != experiment(load(base)[0]))


def test_claims_stay_with_who_made_them(tmp_path: Path) -> None:
    (paper,) = load("hessler/ftp-medium")
    ours = extend("hessler/ftp-medium", "path: {down: {rate: 2 Mbit/s}}")
    assert paper.source and paper.checks and paper.assumed and paper.figures[0].like
    assert not ours.source and not ours.checks and not ours.assumed and not ours.figures[0].like
    assert not extend("today/http-medium").checks, "what the catalogue expects it expects of its own"
    again = "checks: {mine: {that: loss.ftp <= 5 %, origin: predicted}}"
    assert set(extend("hessler/ftp-medium", again).checks) == {"mine"}

    check = "checks: {fills: {that: goodput.ftp > 1 kbit/s, origin: predicted}}\n"
    (tmp_path / "own.yaml").write_text(BASE + check)
    (tmp_path / "cited.yaml").write_text(BASE + check + "source: {paper: A paper}\n")
    for file, kept in (("own", True), ("cited", False)):
        (tmp_path / "more.yaml").write_text(f"extends: {file}.yaml\nid: my/more\n")
        (found,) = load_file(tmp_path / "more.yaml")
        assert bool(found.checks) == kept
    (tmp_path / "less.yaml").write_text("extends: own.yaml\nid: my/less\nchecks: {fills: null}\n")
    assert not load_file(tmp_path / "less.yaml")[0].checks


def test_words_and_forms() -> None:
    """A mapping reaches into words; another form takes the place of the one that stands there."""

    def down(base: str, own: str) -> str:
        text = BASE.replace("{rate: 1 Mbit/s, queue: droptail 100 packets, delay: 10 ms}", base)
        path = Path("base.yaml")
        path.write_text(text)
        found = extend("base.yaml", f"path: {{down: {own}}}")
        return "; ".join(line.strip() for line in in_words(found) if line.startswith("  down: "))

    with pytest.MonkeyPatch.context() as patch:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            patch.chdir(folder)
            line = "{rate: 1 Mbit/s, queue: codel 40 packets, delay: 10 ms}"
            kept = "CoDel queue of 40 packets (target 9 ms, interval 100 ms)"
            assert kept in down(line, "{queue: {codel: {target: 9 ms}}}")
            long = "{rate: 1 Mbit/s, queue: {codel: 40 packets}}"
            assert kept in down(long, "{queue: {codel: {target: 9 ms}}}")
            assert "PIE queue of 1000 packets" in down(long, "{queue: {pie: {target: 9 ms}}}")
            assert "10 ms of delay with jitter of up to 2 ms" in down(line, "{delay: {jitter: 2 ms}}")
            steps = "{delay: {steps: [{at: 0 s, delay: 1 ms}, {at: 1 s, delay: 2 ms}]}}"
            assert "1 ms from 0 s, 2 ms from 1 s" in down(line, steps)
            assert down(line, "{stages: [{name: far, delay: 5 ms}]}") == "down: 5 ms of delay"
            assert down(line, "{rate: null}") == "down: 10 ms of delay"
            stages = "{stages: [{name: dsl, rate: 1 Mbit/s, queue: droptail 10 kB}]}"
            with pytest.raises(ScenarioError, match=r"has the stages dsl there .*path\.down\.dsl\.rate"):
                down(stages, "{rate: 2 Mbit/s}")
            found = extend("base.yaml", "path.down.dsl.rate: 2 Mbit/s")
            assert found.based_on is not None and found.based_on.changes == ("path.down.dsl.rate",)
            # A preset is filled in before it is changed, and one of one's own replaces all of the path.
            Path("lte.yaml").write_text(
                BASE.replace("  down:", "  preset: lte\n  down:").replace(
                    "{rate: 1 Mbit/s, queue: droptail 100 packets, delay: 10 ms}", "{delay: 7 ms}"
                )
            )
            theirs, ours = load("lte.yaml")[0].path, extend("lte.yaml", "path: {down: {delay: 9 ms}}").path
            assert (str(theirs.down.delay), str(ours.down.delay)) == ("7 ms", "9 ms")
            assert ours.down.rate == theirs.down.rate and ours.up == theirs.up
            assert extend("hessler/ftp-no", "path: {preset: lte}").path.up.rate is not None


def test_another_system_keeps_what_it_knows_too() -> None:
    found = extend("hessler/ftp-medium", "flows: {cross: {traffic: ping}}").flows["cross"]
    assert found.traffic == "ping" and found.entry == "router" and "rate" not in found.parameters


def test_files_chains_and_several_in_one(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "line.csv").write_text("time_s,rate_kbps\n0,500\n10,800\n")
    family = BASE + "variants: {slow: {path.down.rate: {csv: line.csv}}, fast: {path.down.rate: 9 Mbit/s}}\n"
    (inner / "family.yaml").write_text(family)
    (inner / "next.yaml").write_text(
        "extends: {file: family.yaml, id: test/base-slow}\nid: my/next\nuntil: {time: 9 s}\n"
    )
    (tmp_path / "last.yaml").write_text(
        "extends: inner/next.yaml\nid: my/last\nvariants: {a: {label: plain}, b: {until.time: 8500 ms}}\n"
    )
    plain, short = load_file(tmp_path / "last.yaml")
    assert (plain.id, short.id) == ("my/last-a", "my/last-b")
    assert (str(plain.until.time), str(short.until.time)) == ("9 s", "8.5 s")
    assert str(plain.normalised()["path"]["down"]["rate"]["trace"]["file"]) == str(inner / "line.csv")
    assert "  extends my/next, changed: until.time" in in_words(short)
    assert "  extends my/next, changed: nothing" in in_words(plain)
    assert plain.title == "A download beside a probe, changed: until.time: plain"
    assert load_file(tmp_path / "last.yaml", settings=["until.time=9100ms"], only="my/last-b")[0].until.time


SLIPS = [
    # (what the file says, line, key, words)
    ("id: my/a\nextends: hessler/ftp-medum", 2, "extends", ["did you mean 'hessler/ftp-medium'?"]),
    ("id: my/a\nextends: hessler/ftp", 2, "extends", ["is 5 scenarios", "name one of them"]),
    ("id: my/a\nextends: gone.yaml", 2, "extends", ["no file 'gone.yaml'", "relative to the"]),
    ("id: my/a\nextends: [x]", 2, "extends", ["names no scenario"]),
    ("id: my/a\nextends: {file: base.yaml, name: x}", 2, "extends", ["names no scenario"]),
    ("id: my/a\nextends: {file: base.yaml, id: test/bas}", 2, "extends.id", ["did you mean 'test/base'?"]),
    ("id: my/a\nextends: two.yaml", 2, "extends", ["is 2 scenarios", "id: test/base-x}"]),
    ("extends: hessler/ftp-medium", 1, "extends", ["has an id of its own"]),
    ("id: test/base\nextends: base.yaml", 1, "id", ["two scenarios need two ids"]),
    ("extends: base.yaml\nid: my/a\nflows:\n  prob: null", 4, "flows.prob", ["did you mean 'probe'?"]),
    ("extends: hessler/ftp-no\nid: my/a\nchecks: {HW-3: null}", 3, "checks.HW-3", ["not taken over"]),
    ("extends: base.yaml\nid: my/a\npath: {down: {rate: 2 Mbps}}", 3, "path.down.rate", ["2 Mbit/s?"]),
    ("extends: base.yaml\nid: my/a\npath.down.rat: 2 Mbit/s", 3, "path.down.rat", ["'path.down.rate'?"]),
    ("extends: base.yaml\nid: my/a\nuntill: {time: 1 s}", 3, "untill", ["did you mean 'until'?"]),
    ("extends: base.yaml\nid: my/a\nvariants: {b: {extends: x}}", 3, "extends", ["there is no 'extends'"]),
    ("extends: round.yaml\nid: my/a", 1, "extends", ["goes round: a.yaml -> round.yaml -> a.yaml"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "key", "words"), SLIPS, ids=[one[0] for one in SLIPS])
def test_a_slip(
    text: str, line: int, key: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("base.yaml").write_text(BASE)
    Path("two.yaml").write_text(BASE + "variants: {x: {}, y: {}}\n")
    Path("round.yaml").write_text("extends: a.yaml\nid: my/round\n")
    Path("a.yaml").write_text(text + "\n")
    with pytest.raises(ScenarioError) as caught:
        load("a.yaml")
    told = caught.value
    where = "round.yaml" if "round" in text else "a.yaml"
    assert (told.file, told.line, told.key) == (where, line, key), told
    for word in words:
        assert word in str(told)


def test_what_is_wrong_in_the_other_file_is_told_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("base.yaml").write_text(BASE.replace("10 ms}\nflows", "10 msec}\nflows"))
    Path("a.yaml").write_text("extends: base.yaml\nid: my/a\npath: {down: {rate: 2 Mbit/s}}\n")
    with pytest.raises(ScenarioError) as caught:
        load("a.yaml")
    assert (caught.value.file, caught.value.line, caught.value.key) == ("base.yaml", 5, "path.up.delay")


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("extends: hessler/ftp-no\nid: my/a\nflows: {ftp: {stop: null}}\npath.down.rate: 2 Mbit/s", True),
        ("extends: {file: a.yaml, id: my/b}\nid: my/a\nvariants: {x: {until.time: 1 s}}", True),
        ("extends: hessler/ftp-no", False),
        ("extends: {id: my/b}\nid: my/a", False),
        ("extends: hessler/ftp-no\nid: my/a\nuntill: {time: 1 s}", False),
    ],
)
def test_the_schema(text: str, valid: bool) -> None:
    from ruamel.yaml import YAML

    validator = jsonschema.Draft202012Validator(json_schema())
    assert validator.is_valid(YAML(typ="safe", pure=True).load(text)) == valid


def test_what_breaks_and_variants_set_may_be_nothing() -> None:
    """A ``null`` there takes a key away in what they make, and not of what the file extends."""
    text = """\
    extends: hessler/ftp-medium
    id: my/two
    checks:
      more: {that: sent.ftp >= 1 kB, origin: predicted, breaks: {flows.cross: null}}
    variants:
      with: {label: as it is}
      without: {flows.cross: null, checks: null}
    """
    both = {one.id: one for one in from_text(textwrap.dedent(text))}
    assert both["my/two-with"].checks["more"].breaks == {"flows.cross": None}
    assert "cross" in both["my/two-with"].flows and "cross" not in both["my/two-without"].flows
