"""The page of a trial that runs, in a real Chromium."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from live_client import PATIENCE_S, Shown, left, shown
from streamgauge.scenario import load

pytestmark = pytest.mark.browser

SCENARIO = "today/demo-rtsp-udp-medium"


def opened(browser: Any, live: Shown, **context: Any) -> Any:
    page = browser.new_context(**context).new_page()
    page.set_default_timeout(1000 * PATIENCE_S)
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.goto(live.url)
    page.wait_for_selector("#plot-rate canvas")
    return page


def grave_faults(page: Any) -> list[Any]:
    """Serious faults that axe finds in a page as it is."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not here"
    )
    # The page allows no script but its own, and axe is one.
    source = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    page.evaluate(source)
    found = page.evaluate("axe.run()")
    assert len(found["passes"]) > 10, "it looked"
    return [
        (one["id"], node["target"], node["failureSummary"])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]


def numbers(page: Any, way: str) -> list[int]:
    cells = page.query_selector_all(f"#totals tr[data-way={way}] td")
    return [int(cell.inner_text()) for cell in cells]


def test_a_slider_is_moved_by_keys_and_the_page_ends_with_the_numbers_of_the_record(
    browser: Any, tmp_path: Path
) -> None:
    with shown(["run", SCENARIO, "--mode", "sim", "--live", "--pace", "4", "--out", str(tmp_path)]) as live:
        page = opened(browser, live, viewport={"width": 1440, "height": 1000})
        page.focus('[id="knob-down.rate"]')
        page.keyboard.press("ArrowLeft")
        page.locator("#said", has_text="down.rate").wait_for()
        page.fill("#word", "tight")
        page.keyboard.press("Enter")
        page.locator("#said", has_text="mark tight").wait_for()
        page.locator("#verdict", has_text=re.compile("^over")).wait_for()
        ended = {way: numbers(page, way) for way in ("down", "up")}
        # What is shown stays when the trial and its server are gone, and can be saved.
        with page.expect_download() as saved:
            page.click("#scenario")
        kept = tmp_path / "steered.yaml"
        saved.value.save_as(kept)
        assert live.wait() == 0, live.said
        assert page.faults == []
    record, file = left(tmp_path)
    assert kept.read_text() == file.read_text()
    (scenario,) = load(str(kept))
    (rate,) = [one.down_rate for one in scenario.path.changes or () if one.down_rate is not None]
    events = pl.read_parquet(record / "events.parquet")
    assert rate.bps in events.filter(pl.col("name") == "rate")["value"].to_list()
    assert events.filter(pl.col("name") == "mark")["reason"].to_list() == [" tight"]
    packets = pl.read_parquet(record / "packets.parquet")
    path = json.loads((record / "trial.json").read_text())["plan"]["path"]
    for code, way in enumerate(("down", "up")):
        rows = packets.filter(pl.col("dir") == code)
        end = len(path["down"]) - 1 + (len(path["up"]) if way == "up" else 0)
        out = rows.filter((pl.col("stage") == end) & (pl.col("fate") == 0))
        dropped = len(rows.filter(pl.col("fate") == 1))
        assert ended[way] == [rows["pkt"].n_unique(), len(out), out["wire_bytes"].sum(), dropped]


@pytest.mark.parametrize(("width", "scheme"), [(420, "dark"), (1440, "light"), (2560, "light")])
def test_the_page_fits_and_a_keyboard_reaches_all_of_it(
    browser: Any, tmp_path: Path, width: int, scheme: str
) -> None:
    arguments = ["run", SCENARIO, "--mode", "sim", "--live", "--pace", "1", "--out", str(tmp_path)]
    with shown(arguments) as live:
        page = opened(browser, live, viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.locator("#totals td", has_text=re.compile("^[1-9]")).first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        reached = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement.id || document.activeElement.ariaLabel"))
        wanted = "[...document.querySelectorAll('button, select, input')].filter(one => one.offsetParent)"
        named = page.evaluate(f"{wanted}.map(one => one.id || one.ariaLabel)")
        assert set(named) <= reached
        assert grave_faults(page) == []
        page.click("#pause")
        assert page.is_visible("#scroll") and page.get_attribute("#pause", "aria-pressed") == "true"
        with page.expect_download() as saved:
            page.click("#picture")
        picture = Path(saved.value.path()).read_bytes()
        assert picture.startswith(b"\x89PNG") and len(picture) > 10_000
        assert page.faults == []


RATE = "[aria-label='down.rate, with its unit']"
HAS = "([place, value]) => document.querySelector(place).value === value"


def test_two_pages_steer_and_one_that_is_closed_and_opened_again_has_the_past(
    browser: Any, tmp_path: Path
) -> None:
    arguments = ["run", SCENARIO, "--mode", "sim", "--live", "--pace", "1", "--out", str(tmp_path)]
    with shown(arguments) as live:
        first, second = opened(browser, live), opened(browser, live)
        first.locator("#pages", has_text="2").wait_for()
        for page, rate in ((first, "700 kbit/s"), (second, "900 kbit/s")):
            field = page.locator(RATE)
            field.fill(rate)
            field.blur()
            # Both show it, whichever asked.
            for one in (first, second):
                one.wait_for_function(HAS, arg=[RATE, rate])
        second.close()
        before = numbers(first, "down")[0]
        again = opened(browser, live)
        again.locator("#totals td", has_text=re.compile("^[1-9]")).first.wait_for()
        assert numbers(again, "down")[0] >= before
        again.wait_for_function(HAS, arg=[RATE, "900 kbit/s"])
        assert first.faults == again.faults == []
