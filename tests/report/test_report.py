"""The report: what it says, that it needs nothing but itself, and that its figures hold what was measured."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamgauge.errors import RecordError
from streamgauge.metrics import compute
from streamgauge.report import LoadedTrial, answer, build, for_entry, gather, save
from streamgauge.report.courses import MAX_POINTS
from streamgauge.report.model import load
from streamgauge.report.validity import verdicts
from synthetic import CROSS, PROBE, UP, Sent, SyntheticRecord, constant, record

CHECKS = {
    "low": {
        "that": "loss.video <= 50 %", "origin": "predicted", "strict": True, "published": {"video": "10 %"},
        "tolerance": "5 %", "note": "our queue is longer", "title": "It loses at most half",
    },
    "none": {"that": "loss.video == 0", "origin": "input", "strict": False},
}  # fmt: skip


def made(seed: int = 1, mode: str = "sim", id_: str = "test/udp-medium", **more: Any) -> SyntheticRecord:
    """Video at 500 kbit/s on 1 Mbit/s, joined for 20 s by cross traffic at 800 kbit/s, and a ping."""
    shift = seed / 97
    sent = constant(0, 62.5, 0, 40) + constant(1, 100, 10 + shift, 30 + shift, kind=CROSS, router=True)
    sent += [Sent(i + 0.1, 2, 56, kind=PROBE, seq=i) for i in range(40)]
    sent += [Sent(i + 0.2, 2, 56, kind=PROBE, seq=i, direction=UP) for i in range(40)]
    built = record(
        sent, flows=["video", "cross", "ping"], duration_s=40.0, seed=seed, mode=mode, scenario=id_, **more
    )  # fmt: skip
    built.trial["flows"][1]["role"] = "rival"
    built.trial["scenario"] |= {
        "title": "Video & company",
        "question": "Does video </script> back off?",
        "flows": {
            "video": {"role": "subject", "system": "rtp"},
            "cross": {"role": "rival", "traffic": "cbr"},
        },
        "checks": CHECKS,
        "figures": [{"draw": "cdf", "of": ["queue_delay"], "by": "flow"}],
    }
    return built


def loaded(built: SyntheticRecord) -> LoadedTrial:
    return LoadedTrial(built.trial, {"kernel": "6.1", "wall_s": 1.5}, compute(built))


@pytest.fixture(scope="module")
def trials() -> list[LoadedTrial]:
    found = [loaded(made(seed, mode)) for mode in ("sim", "emu") for seed in (1, 2, 3)]
    return [*found, loaded(made(4, "emu", valid=False))]


@pytest.fixture(scope="module")
def page(trials: list[LoadedTrial], tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("report") / "deep" / "report.html"
    assert build(trials, out) == out
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]
    return out.read_text(encoding="utf-8")


class Tags(HTMLParser):
    """Collects tags and checks that they nest."""

    VOID = frozenset({"meta", "link", "br", "hr", "img", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"


def tags(page: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(page)
    assert not parser.open
    return parser.seen


def figures_in(page: str) -> list[dict[str, Any]]:
    found = re.findall(r'<script type="application/json" class="figure-data">(.*?)</script>', page, re.S)
    return [json.loads(text) for text in found]


def rows_of(figure: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The rows of a figure as a page holds it."""
    columns = []
    for column in figure["data"]:
        runs = bool(column) and isinstance(column[0], list)
        columns.append([value for value, count in column for _ in range(count)] if runs else column)
    return list(zip(*columns, strict=True))


def test_the_page_is_whole_and_asks_for_nothing(page: str) -> None:
    for tag, attributes in tags(page):
        assert tag not in ("link", "img", "iframe")
        assert "src" not in attributes, f"{tag} loads {attributes['src']}"
        if tag == "a":
            assert (attributes["href"] or "").startswith("#")
    assert "@import" not in page
    assert len(page) < 2_000_000


def test_links_lead_somewhere(page: str) -> None:
    found = tags(page)
    ids = [attributes["id"] for _, attributes in found if "id" in attributes]
    for _, attributes in found:
        if (attributes.get("href") or "").startswith("#"):
            assert attributes["href"][1:] in ids  # type: ignore[index]


def test_the_answer_comes_first(page: str) -> None:
    body = page[page.index("<body") :]
    order = [
        body.index(mark)
        for mark in ("Does video", "did not back off", "Checks</h2>", "Scenarios</h2>", "Provenance")
    ]
    assert order == sorted(order)


def test_text_from_scenarios_is_escaped(page: str) -> None:
    assert "Does video &lt;/script&gt; back off?" in page
    assert "Video &amp; company" in page


def test_invalid_trials_are_shown_and_left_out(page: str) -> None:
    assert "1 of them invalid" in page
    assert "seed 4" in page
    assert "conservation failed" in page
    assert "3 of 4 valid" in page


def test_verdicts_published_and_ours(page: str) -> None:
    # What holds and is further from the printed number than its tolerance has no green tick.
    assert page.count("≠</span> differs in size") >= 2 and "✓</span> pass" not in page
    assert page.count("✗</span> fail") >= 2
    assert "Differs from the paper" in page
    assert "our queue is longer" in page


def test_a_pass_does_not_hide_a_difference(page: str, trials: list[LoadedTrial]) -> None:
    (entry,) = gather(trials)
    differing = [one for one in entry.checks if one.verdict == "pass" and one.differs]
    assert [(one.id, one.mode) for one in differing] == [("low", "sim"), ("low", "emu")]
    assert "2 pass (of them 2 differ from the published numbers)" in page
    table = page[page.index("Checks</h2>") : page.index("Scenarios</h2>")]
    assert table.count("≠</span> differs in size") == 2 and "✓" not in table


def test_whiskers_end_where_a_quantity_does() -> None:
    """One lossy trial of three: the interval of the loss would reach below 0 %."""
    trials = []
    for seed, rate in ((1, 10), (2, 10), (3, 200)):
        sent = constant(0, 25, 0, 10) + constant(1, rate, 2, 8, kind=CROSS)
        built = record(sent, flows=["v", "cross"], duration_s=10.0, seed=seed)
        built.trial["scenario"]["figures"] = [{"draw": "bars", "of": ["loss"]}]
        trials.append(loaded(built))
    (entry,) = gather(trials)
    (bars,) = [figure for figure in for_entry(entry) if "asked" in figure.id]
    lows = [row[4] for row in bars.rows]
    assert lows and min(lows) == 0


def test_what_a_verdict_measured_is_said_without_powers_of_ten() -> None:
    built = made()
    measured = {
        "system_calls": 91_420.7, "rate_bps": 123_456_789.0, "sent_packets": 12_345_678,
        "error_percent": 0.00001, "late_s": 1e-10, "unaccounted": 0, "share": 0.5,
    }  # fmt: skip
    built.trial["validity"] = {"valid": True, "measured": measured}
    (entry,) = gather([loaded(built)])
    cells = {row["name"]: row["cells"][0] for row in verdicts(entry.groups[0])["rows"]}
    assert cells == {
        "system calls": "91\u202f421", "rate": "123.456789 Mbit/s", "sent": "12345678 packets",
        "error": "0.00001 %", "late": "0.100 ns", "unaccounted": "0", "share": "0.5",
    }  # fmt: skip


def test_figures_hold_what_was_measured(trials: list[LoadedTrial], page: str) -> None:
    (entry,) = gather(trials)
    wanted = {figure.id: figure for figure in for_entry(entry)}
    assert {name.removeprefix("test-udp-medium-") for name in wanted} == {"time", "asked-0"}
    over_time = wanted["test-udp-medium-time"]
    metrics = [trial.metrics for trial in trials if trial.mode == "sim"]
    lost = [one.series("loss_rate", "cross").samples() / 1e3 for one in metrics if one is not None]
    received = [one.series("receiver_rate", "cross").samples() / 1e3 for one in metrics if one is not None]
    drawn = [row for row in over_time.rows if row[:4] == ("Received, kbit/s", "sim", "cross", "line")]
    assert [row[6] for row in drawn] == pytest.approx(list(np.median(received, axis=0)), rel=1e-3)
    assert [row[7] for row in drawn] == pytest.approx(list(np.min(received, axis=0)), rel=1e-3)
    assert [row[8] for row in drawn] == pytest.approx(list(np.max(received, axis=0)), rel=1e-3)
    drawn = [row for row in over_time.rows if row[:4] == ("Lost, mean, kbit/s", "sim", "cross", "line")]
    assert [row[6] for row in drawn] == pytest.approx(list(np.mean(lost, axis=0)), rel=1e-3)
    assert [list(figure.rows) for figure in wanted.values()] == [rows_of(one) for one in figures_in(page)]


def test_a_single_trial_has_no_band_and_says_so() -> None:
    (figure, _) = for_entry(gather([loaded(made(7))])[0])
    assert {row[7] for row in figure.rows} == {None}
    assert "One trial is drawn of sim (seed 7)" in figure.caption and "bands" not in figure.caption
    assert "sim, one trial (seed 7)" in json.dumps(figure.spec) and "_band" not in json.dumps(figure.spec)


def test_cross_traffic_is_shaded_where_it_sends(trials: list[LoadedTrial]) -> None:
    (figure, _) = for_entry(gather(trials)[0])
    periods = [
        (row["begin"], row["end"])
        for layer in figure.spec["hconcat"][0]["vconcat"][0]["layer"]
        for row in layer.get("data", {}).get("values", ())
        if "begin" in row
    ]
    assert periods == [(10.0, 30.0)]
    assert "Shaded: cross sends" in figure.caption


def test_a_window_that_does_not_vary_is_not_drawn() -> None:
    from streamgauge.metrics.result import Series

    def panels(kilobytes: np.ndarray[Any, Any]) -> set[str]:
        trial = loaded(made())
        metrics = trial.metrics
        assert metrics is not None
        ones = np.ones(len(metrics.grid))
        video = metrics.flows["video"]
        with_window = dataclasses.replace(
            video, series={**video.series, "cwnd": Series(8e3 * kilobytes * ones, ones)}
        )
        held = dataclasses.replace(metrics, flows={**metrics.flows, "video": with_window})
        (figure, _) = for_entry(gather([dataclasses.replace(trial, held=held)])[0])
        return {row[0] for row in figure.rows}

    flat, steps = np.full(80, 30.0), np.linspace(10, 30, 80)
    assert panels(steps) - panels(flat) == {"Congestion window, kB"}


def test_long_series_are_thinned_without_changing_their_mean() -> None:
    trial = loaded(made(measure={"sample": "10 ms"}))
    (entry,) = gather([trial])
    for figure in for_entry(entry):
        lines: dict[tuple[Any, ...], int] = {}
        for row in figure.rows:
            lines[row[:4]] = lines.get(row[:4], 0) + 1
        assert max(lines.values()) <= MAX_POINTS
    over_time = for_entry(entry)[0]
    sent = [row[6] for row in over_time.rows if row[:3] == ("Sent, kbit/s", "sim", "video")]
    assert sum(sent) / len(sent) * 1e3 == pytest.approx(trial.metrics.value("throughput", "video"), rel=2e-3)  # type: ignore[union-attr]
    assert "samples of 0.01 s make one point" in over_time.notes


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_one_description_gives_files(trials: list[LoadedTrial], tmp_path: Path, suffix: str) -> None:
    figure = for_entry(gather(trials)[0])[0]
    written = save(figure, tmp_path / f"figure{suffix}").read_bytes()
    start = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF"}[suffix]
    assert written.startswith(start)
    if suffix == ".svg":
        for word in ("time, s", "Received, kbit/s", "cross", "emu, n = 3", "capacity"):
            assert word.encode() in written


def test_other_files_are_refused(trials: list[LoadedTrial], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="gif"):
        save(for_entry(gather(trials)[0])[0], tmp_path / "figure.gif")


def encodings(spec: Any) -> Iterator[dict[str, Any]]:
    """Every layer's."""
    if isinstance(spec, dict):
        if "mark" in spec and "encoding" in spec:
            yield spec["encoding"]
        for inner in spec.values():
            yield from encodings(inner)
    elif isinstance(spec, list):
        for inner in spec:
            yield from encodings(inner)


def test_lines_differ_in_dash_and_plots_name_their_units(trials: list[LoadedTrial]) -> None:
    (over_time, distribution) = for_entry(gather(trials)[0])
    for figure in (over_time, distribution):
        drawn = [one for one in encodings(figure.spec) if "strokeDash" in one]
        assert drawn
        for encoding in drawn:
            dashes = [tuple(dash) for dash in encoding["strokeDash"]["scale"]["range"]]
            colours = encoding["color"]["scale"]["range"]
            assert len(set(zip(dashes, colours, strict=True))) >= len(set(colours))
    titles = {row[0] for row in over_time.rows}
    assert {title.rpartition(", ")[2] for title in titles} == {"kbit/s", "kB", "ms"}
    assert {one["x"]["title"] for one in encodings(distribution.spec)} == {"Queueing delay, ms"}


def test_no_legend_of_a_single_line(trials: list[LoadedTrial]) -> None:
    alone = record(constant(0, 62.5, 0, 10), flows=["video"], duration_s=10.0)
    alone.trial["scenario"]["figures"] = [
        {"draw": "cdf", "of": ["queue_delay"]},
        {"draw": "bars", "of": ["loss"]},
    ]
    for figure in for_entry(gather([loaded(alone)])[0]):
        assert all(
            one["color"]["legend"] is None
            for one in encodings(figure.spec)
            if "legend" in one.get("color", {})
        )


def test_the_answer_in_plain_words(trials: list[LoadedTrial]) -> None:
    said = answer(trials)
    assert "did not back off: it sent 514 kbit/s alone and 514 kbit/s beside cross" in said
    assert "n = 3" in said
    assert "1 Mbit/s, queue drop-tail, 10 kB, 20 ms base RTT" in said


def test_a_flow_that_backs_off_is_said_to() -> None:
    sent = (
        constant(0, 62.5, 0, 10) + constant(0, 20, 10, 30) + constant(1, 50, 10, 30, kind=CROSS, router=True)
    )
    built = record(sent, flows=["video", "cross"], duration_s=30.0)
    built.trial["flows"][1]["role"] = "rival"
    assert "backed off by 68" in answer([loaded(built)])


def test_no_valid_trial_no_answer() -> None:
    assert "No valid trial" in answer([loaded(made(valid=False))])


def test_a_trial_that_left_nothing_is_shown(tmp_path: Path) -> None:
    header = {**made().trial, "validity": {"valid": False, "why": ["player was killed"]}}
    text = build([LoadedTrial(header, {}, None)], tmp_path / "r.html").read_text()
    assert "player was killed" in text


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="holds no trial"):
        load(tmp_path)


def test_a_paper_s_table_stands_beside_ours(tmp_path: Path) -> None:
    trials = []
    for class_ in ("no", "medium"):
        built = made(id_=f"hessler/ftp-{class_}")
        built.trial["flows"][0]["name"] = "ftp"
        built.trial["scenario"]["checks"] = {}
        trials.append(loaded(built))
    text = build(trials, tmp_path / "r.html").read_text()
    assert "13977.9" in text
    assert "8069.7" in text
    ours = compute(dataclasses.replace(built)).value("sent", "ftp") / 8e3
    assert f"{ours:.1f}" in text
    assert "6314.6" not in text, "a class that was not run has no row"
    rows = answer(trials).splitlines()
    assert [row.split()[:2] for row in rows[-2:]] == [["no", "13977.9"], ["medium", "8069.7"]]
    loss = 100 * compute(built).value("loss", "ftp")
    assert rows[-1].split()[-2:] == ["0.00", f"{loss:.2f}"]


def test_every_figure_as_a_file(trials: list[LoadedTrial], tmp_path: Path) -> None:
    from streamgauge.report import write_figures

    written = write_figures(trials, tmp_path / "figures", formats=("svg", "pdf"))
    assert len(written) == 2 * len(for_entry(gather(trials)[0]))
    assert all(path.stat().st_size > 1000 for path in written)


def test_slivers_beside_the_window_are_not_drawn() -> None:
    """A window from 0.1 s cuts samples of 0.1 s and 0.4 s off; their rates would show as spikes."""
    trial = loaded(made(measure={"window": ["0.1 s", "39.9 s"]}))
    rows = for_entry(gather([trial])[0])[0].rows
    times = [row[4] for row in rows if row[0] == "Sent, kbit/s" and row[2] == "video"]
    assert times[0] == pytest.approx(0.35)
    assert min(later - earlier for earlier, later in pairwise(times)) > 0.25


def test_a_name_cannot_end_the_script(tmp_path: Path) -> None:
    built = made()
    built.trial["flows"][0]["name"] = "a</script><b>"
    text = build([loaded(built)], tmp_path / "r.html").read_text()
    rows = rows_of(figures_in(text)[0])
    assert any("a</script><b>" in row for row in rows)
    tags(text)
