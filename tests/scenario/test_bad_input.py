"""Each slip that a person may make, answered with file, line, key and the nearest spelling."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamgauge.errors import ScenarioError
from streamgauge.scenario import ScenarioErrors, from_text, load, load_file


def refused(text: str, settings: tuple[str, ...] = ()) -> ScenarioError:
    with pytest.raises(ScenarioError) as caught:
        from_text(text, file="bad.yaml", settings=settings)
    return caught.value


def edit(base: str, old: str, new: str) -> str:
    assert base.count(old) == 1, f"{old!r} stands {base.count(old)} times in the base"
    return base.replace(old, new)


# (name, what is replaced, by what, line, key, words of the message)
SLIPS = [
    # Keys
    (
        "unknown key at the top",
        "until:",
        "untill:",
        17,
        "untill",
        ["unknown key 'untill'", "did you mean 'until'?"],
    ),
    (
        "unknown key in a flow",
        "    role: subject",
        "    rolle: subject",
        8,
        "flows.ftp.rolle",
        ["did you mean 'role'?"],
    ),
    (
        "unknown key in the path",
        "queue: droptail",
        "queu: droptail",
        4,
        "path.down.queu",
        ["did you mean 'queue'?"],
    ),
    ("missing key", "title: A download beside a probe", "", 1, "title", ["'title' is missing"]),
    ("two flows with one name", "  probe:", "  ftp:", 12, "ftp", ["duplicate key", "every name once"]),
    # Units
    ("no unit", "1 Mbit/s", "1000000", 4, "path.down.rate", ["has no unit", "480 kbit/s"]),
    ("bad unit", "1 Mbit/s", "1 Mbps", 4, "path.down.rate", ["'Mbps'", "did you mean 1 Mbit/s?"]),
    ("a unit of something else", "1 Mbit/s", "1 ms", 4, "path.down.rate", ["not a unit of a bit rate"]),
    ("no unit in a parameter", "16 KiB", "16384", 11, "flows.ftp.parameters.receive_window", ["has no unit"]),
    ("no unit in a start", "ftp.start + 1 s", "ftp.start + 1", 15, "flows.probe.start", ["has no unit"]),
    # Words
    ("unknown role", "role: rival", "role: rivel", 13, "flows.probe.role", ["did you mean 'rival'?"]),
    (
        "unknown traffic",
        "traffic: ping",
        "traffic: pingg",
        14,
        "flows.probe.traffic",
        ["did you mean 'ping'?"],
    ),
    ("a system as traffic", "traffic: bulk", "traffic: rtp", 9, "flows.ftp.traffic", ["write 'system: rtp'"]),
    (
        "unknown congestion control",
        "congestion_control: reno",
        "congestion_control: rino",
        10,
        "flows.ftp.congestion_control",
        ["unknown congestion control 'rino'", "did you mean 'reno'?"],
    ),
    (
        "congestion control without TCP",
        "traffic: ping",
        "traffic: ping\n    congestion_control: reno",
        15,
        "flows.probe.congestion_control",
        ["does not run over TCP"],
    ),
    (
        "unknown parameter",
        "receive_window:",
        "recieve_window:",
        11,
        "flows.ftp.parameters.recieve_window",
        ["did you mean 'receive_window'?"],
    ),
    (
        "unknown queue",
        "droptail 100",
        "drop-tail 100",
        4,
        "path.down.queue",
        ["did you mean 'droptail 100 packets'?"],
    ),
    (
        "unknown model",
        "delay: 10 ms}\n  up",
        "loss: {gilbet: {}}}\n  up",
        4,
        "path.down.loss.gilbet",
        ["'gilbert'"],
    ),
    (
        "neither system nor traffic",
        "    traffic: ping\n",
        "",
        12,
        "flows.probe",
        ["neither 'system' nor 'traffic'"],
    ),
    ("both", "traffic: ping", "traffic: ping\n    system: rtp", 14, "flows.probe.traffic", ["both"]),
    # Impossible values
    (
        "queue below one packet",
        "100 packets",
        "1500 B",
        4,
        "path.down.queue",
        ["cannot hold one packet of 1514 B"],
    ),
    (
        "queue of no packets",
        "100 packets",
        "0 packets",
        4,
        "path.down.queue.droptail",
        ["cannot hold one packet"],
    ),
    (
        "part of a packet",
        "100 packets",
        "1.5 packets",
        4,
        "path.down.queue.droptail",
        ["whole number of packets"],
    ),
    (
        "queue too short in time",
        "100 packets",
        "1 ms",
        4,
        "path.down.queue",
        ["125 B", "cannot hold one packet"],
    ),
    (
        "queue below one packet in BDP",
        "100 packets",
        "0.1 BDP",
        4,
        "path.down.queue",
        ["250 B", "cannot hold"],
    ),
    ("rate 0", "1 Mbit/s", "0 bit/s", 4, "path.down.rate", ["rate of 0"]),
    ("negative rate", "1 Mbit/s", "-1 Mbit/s", 4, "path.down.rate", ["negative"]),
    ("rate without queue", ", queue: droptail 100 packets", "", 4, "path.down.rate", ["needs a queue"]),
    ("queue without rate", "rate: 1 Mbit/s, ", "", 4, "path.down.queue", ["needs the rate"]),
    (
        "loss above 100 %",
        "delay: 10 ms}\n  up",
        "loss: 101 %}\n  up",
        4,
        "path.down.loss.bernoulli",
        ["101 %"],
    ),
    (
        "starts after the end",
        "start: ftp.start + 1 s",
        "start: 11 s",
        15,
        "flows.probe.start",
        ["trial ends at 10 s"],
    ),
    ("stops before it starts", "stop: 8 s", "stop: 0.5 s", 16, "flows.probe.stop", ["stops at 0.5 s"]),
    (
        "relative to nobody",
        "ftp.start",
        "fpt.start",
        15,
        "flows.probe.start",
        ["no flow 'fpt'", "did you mean 'ftp'?"],
    ),
    ("relative to an unknown edge", "ftp.start", "ftp.begin", 15, "flows.probe.start", ["ftp.start"]),
    ("relative to a stop that is not", "ftp.start", "ftp.stop", 15, "flows.probe.start", ["has no 'stop'"]),
    (
        "starts before the trial",
        "ftp.start + 1 s",
        "ftp.start - 1 s",
        15,
        "flows.probe.start",
        ["before the trial"],
    ),
    ("no end", "{time: 10 s}", "{}", 17, "until", ["says no end"]),
    (
        "ends with media of no clip",
        "{time: 10 s}",
        "{media_end: ftp}",
        17,
        "until.media_end",
        ["plays no clip"],
    ),
    # Clips
    ("no clip", "traffic: ping", "system: rtp", 12, "flows.probe", ["plays a clip", "carphone-550k"]),
    (
        "a clip that is not",
        "traffic: ping",
        "system: rtp\n    clip: carfone-550k",
        15,
        "flows.probe.clip",
        ["carphone-550k"],
    ),
    (
        "a clip for nothing",
        "traffic: ping",
        "traffic: ping\n    clip: carphone-550k",
        15,
        "flows.probe.clip",
        ["plays no clip"],
    ),
    # YAML
    ("a rate beyond all", "1 Mbit/s", "1e30 Mbit/s", 4, "path.down.rate", ["too much", "bit/s at most"]),
    ("not YAML", "{time: 10 s}", "{time: 10 s", 18, None, ["not YAML"]),
]


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "words"), [s[1:] for s in SLIPS], ids=[s[0] for s in SLIPS]
)
def test_slips(base: str, old: str, new: str, line: int, key: str | None, words: list[str]) -> None:
    error = refused(edit(base, old, new))
    first = error.errors[0] if isinstance(error, ScenarioErrors) else error
    assert (first.file, first.line, first.key) == ("bad.yaml", line, key)
    for word in words:
        assert word in str(first)
    assert str(first).startswith(f"bad.yaml:{line}: {key}: " if key else f"bad.yaml:{line}: ")


ADDITIONS = [
    (
        "a check of a flow that is not there",
        "checks:\n  X-1: {that: loss.fpt <= 1 %, origin: predicted}\n",
        19,
        "checks.X-1.that",
        ["there is no flow 'fpt'", "did you mean 'ftp'?"],
    ),
    (
        "a check that is not in the language",
        "checks:\n  X-1:\n    that: loss.ftp <=\n    origin: predicted\n",
        20,
        "checks.X-1.that",
        ["line 1, column"],
    ),
    (
        "a check without origin",
        "checks:\n  X-1: {that: loss.ftp <= 1 %}\n",
        19,
        "checks.X-1.origin",
        ["missing"],
    ),
    (
        "a mutant of nothing",
        "checks:\n  X-1: {that: loss.ftp <= 1 %, origin: input, breaks: {path.down.rat: 1 kbit/s}}\n",
        19,
        "checks.X-1.breaks.path.down.rat",
        ["did you mean 'path.down.rate'?"],
    ),
    (
        "a mutant that cannot run",
        "checks:\n  X-1: {that: loss.ftp <= 1 %, origin: input, breaks: {path.down.rate: 0 bit/s}}\n",
        19,
        "checks.X-1.breaks",
        ["cannot run", "rate of 0"],
    ),
    (
        "an assumption about nothing",
        "assumed:\n  flows.ftp.parameters.wind: {try: [1 kB]}\n",
        19,
        "assumed.flows.ftp.parameters.wind",
        ["there is no 'wind'"],
    ),
    (
        "an alternative that cannot run",
        "assumed:\n  flows.ftp.congestion_control:\n    try: [reno, rino]\n",
        20,
        "assumed.flows.ftp.congestion_control.try.1",
        ["rino"],
    ),
    (
        "a window past the end",
        "measure: {window: [0 s, 11 s]}\n",
        18,
        "measure.window",
        ["trial ends at 10 s"],
    ),
    (
        "a window backwards",
        "measure: {window: [5 s, 1 s]}\n",
        18,
        "measure.window",
        ["ends before it begins"],
    ),
    ("no repetitions", "repetitions: {sim: 0}\n", 18, "repetitions.sim", ["greater than or equal to 1"]),
    (
        "a draw of nobody's start",
        "randomize: {fpt.start: uniform 0 to 1 ms}\n",
        18,
        "randomize.fpt.start",
        ["'ftp'"],
    ),
    (
        "a draw backwards",
        "randomize: {ftp.start: uniform 2 ms to 1 ms}\n",
        18,
        "randomize.ftp.start",
        ["above"],
    ),
    (
        "a figure of nothing",
        "figures: [{draw: series, of: [thruput]}]\n",
        18,
        "figures.0.of.0",
        ["unknown metric"],
    ),
    ("an odd id", "host_jitter: 5\n", 18, "host_jitter", ["has no unit"]),
]


@pytest.mark.parametrize(
    ("more", "line", "key", "words"), [a[1:] for a in ADDITIONS], ids=[a[0] for a in ADDITIONS]
)
def test_additions(base: str, more: str, line: int, key: str, words: list[str]) -> None:
    error = refused(base + more)
    assert (error.file, error.line, error.key) == ("bad.yaml", line, key)
    for word in words:
        assert word in str(error)


def test_cycle(base: str) -> None:
    text = base.replace("    parameters: {receive_window: 16 KiB}", "    start: probe.start + 1 s")
    assert "ftp.start -> probe.start -> ftp.start" in str(refused(text))


EVENTS = [
    ("[{at: 9 s, do: pause}]", "at", "not before its stop"),
    ("[{at: 0.1 s, do: pause}]", "at", "before its start"),
    ("[{at: 2 s, do: resume}]", "do", "not paused"),
    ("[{at: 2 s, do: pause}, {at: 3 s, do: pause}]", "do", "paused already"),
    ("[{at: 4 s, do: pause}, {at: 3 s, do: resume}]", "at", "before the event before it"),
    ("[{at: 2 s, do: stop}, {at: 3 s, do: pause}]", "do", "already been stopped"),
]


@pytest.mark.parametrize(("events", "key", "word"), EVENTS)
def test_events(base: str, events: str, key: str, word: str) -> None:
    error = refused(edit(base, "    stop: 8 s", f"    stop: 8 s\n    events: {events}"))
    assert error.line == 17
    assert str(error.key).endswith(key) and word in str(error)


def test_every_error_of_a_file_is_told_in_order(base: str) -> None:
    text = edit(edit(base, "1 Mbit/s", "1 Mbps"), "role: rival", "role: rivel")
    error = refused(text)
    assert isinstance(error, ScenarioErrors)
    assert [(one.line, one.key) for one in error.errors] == [(4, "path.down.rate"), (13, "flows.probe.role")]
    assert len(str(error).splitlines()) == 2


SETTINGS = [
    ("path.down.rate=300", "path.down.rate", "has no unit"),
    ("path.down.rate=300kbps", "path.down.rate", "did you mean 300 kbit/s?"),
    ("path.down.rat=300kbit/s", "path.down.rat", "did you mean 'path.down.rate'?"),
    ("flows.fpt.start=1s", "flows.fpt.start", "did you mean 'flows.ftp'?"),
    ("flows.ftp.parameters.wind=1kB", "flows.ftp.parameters.wind", "there is no 'wind'"),
]


@pytest.mark.parametrize(("setting", "key", "word"), SETTINGS)
def test_settings_are_answered_as_well(base: str, setting: str, key: str, word: str) -> None:
    error = refused(base, (setting,))
    assert (error.file, error.line, error.key) == (f"--set {setting}", None, key)
    assert word in str(error)


@pytest.mark.parametrize("setting", ["path.down.rate", "=5", "path.down.rate="])
def test_a_setting_without_a_value(base: str, setting: str) -> None:
    assert "is not an assignment" in str(refused(base, (setting,)))


UP_AND_ARRIVALS = [
    (
        "flows.ftp.direction=both",
        "flows.ftp.direction",
        ["media that goes both ways are two flows", "'direction: down' and one with 'direction: up'"],
    ),
    ("flows.ftp.direction=sideways", "flows.ftp.direction", ["expected one of down, up"]),
    (
        "flows.probe.arrivals={rate: 2 /s, size: 30 kB}",
        "flows.probe.arrivals",
        ["'ping' has no transfers that could arrive", "write 'traffic: bulk'"],
    ),
    ("flows.ftp.arrivals={rate: 2, size: 30 kB}", "flows.ftp.arrivals.rate", ["has no unit"]),
    ("flows.ftp.arrivals={rate: 0 /s, size: 30 kB}", "flows.ftp.arrivals.rate", ["nothing ever arrives"]),
    ("flows.ftp.arrivals={rate: 2 /s, size: 0 B}", "flows.ftp.arrivals.size", ["carry nothing"]),
    (
        "flows.ftp.arrivals={rate: 20000 /s, size: 30 kB}",
        "flows.ftp.arrivals.rate",
        ["200000 transfers until", "expected 100000 at most", "lower the rate"],
    ),
]


@pytest.mark.parametrize(("setting", "key", "words"), UP_AND_ARRIVALS)
def test_media_up_and_arrivals_are_refused_where_they_make_no_sense(
    base: str, setting: str, key: str, words: list[str]
) -> None:
    said = str(refused(base, (setting,)))
    assert all(word in said for word in (key, *words)), said


def test_transfers_have_no_size_as_a_whole(base: str) -> None:
    settings = ("flows.ftp.arrivals={rate: 2 /s, size: 30 kB}", "flows.ftp.parameters.bytes=1 MB")
    assert "a size for each of them, and none as a whole" in str(refused(base, settings))


def test_what_enters_at_the_bottleneck_does_not_go_up(base: str) -> None:
    said = str(refused(base, ("flows.ftp.from=router", "flows.ftp.direction=up")))
    assert "what enters at the bottleneck goes down" in said


def test_a_distribution_of_two_kinds(base: str) -> None:
    assert "not a unit of a size" in str(refused(base, ("population={size: 7, rtt: uniform 1 ms to 2 kB}",)))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no such file"):
        load(tmp_path / "none.yaml")
    with pytest.raises(ScenarioError, match="folder"):
        load_file(tmp_path)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00id")
    with pytest.raises(ScenarioError, match="UTF-8"):
        load_file(tmp_path / "binary.yaml")
    (tmp_path / "list.yaml").write_text("- a\n- b\n")
    with pytest.raises(ScenarioError, match="mapping of keys"):
        load_file(tmp_path / "list.yaml")


def test_a_media_file_that_is_not_there(base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.yaml"
    clip = "system: rtp\n    clip: {file: mine.mp4, rate: 500 kbit/s}"
    file.write_text(edit(base, "traffic: ping", clip))
    with pytest.raises(ScenarioError) as caught:
        load(file)
    assert (caught.value.file, caught.value.line) == (str(file), 15)
    assert caught.value.key == "flows.probe.clip.file"
    monkeypatch.setenv("PATH", str(tmp_path))  # without ffprobe no more of it is known
    (tmp_path / "mine.mp4").write_bytes(b"some")
    (scenario,) = load(file)
    assert scenario.flows["probe"].clip.file == str(tmp_path / "mine.mp4")  # type: ignore[union-attr]


def test_commands_run_beside_their_scenario(base: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(edit(base, "traffic: ping", "system: {server: ./serve, player: ./play}"))
    assert load(file)[0].flows["probe"].system.folder == str(tmp_path)  # type: ignore[union-attr]
    file.write_text(edit(base, "traffic: ping", "system: {server: ./serve, player: ./play, folder: sub}"))
    assert load(file)[0].flows["probe"].system.folder == str(tmp_path / "sub")  # type: ignore[union-attr]


def test_an_id_that_is_not_in_the_catalogue() -> None:
    with pytest.raises(ScenarioError, match="did you mean 'hessler/ftp-heavy'"):
        load("hessler/ftp-hevy")
