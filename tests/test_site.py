"""The documentation builds as a site without warnings, with every link checked, and works as a folder: search
included, in light and dark, on a phone's width, with nothing of another host."""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
docs: Any = importlib.import_module("docs")
reference: Any = importlib.import_module("reference")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out: Path = tmp_path_factory.mktemp("docs") / "site"
    assert docs.build(out) == []
    return out


def test_every_page_is_in_the_site_and_none_is_twice(site: Path) -> None:
    nav = docs.in_nav(tomllib.loads(docs.CONFIG.read_text("utf-8"))["project"]["nav"])
    pages = {
        str(page.relative_to(ROOT / "docs").with_suffix(".html")) for page in (ROOT / "docs").rglob("*.md")
    }
    assert len(nav) == len(set(nav))
    assert not sorted(page for page in pages if not (site / page).exists())
    assert (site / "reference" / "commands.html").exists()
    # In the site a page is called by its title.
    index = (site / "index.html").read_text("utf-8")
    assert ">Architecture</a>" in index and ".md</a>" not in index
    assert "\u00a0±\u00a0" in (site / "findings.html").read_text("utf-8")


def test_faults_of_a_site_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html">1</a><a href="#no">2</a><a href="a.html#yes">3</a><p id="yes">'
        '<script src="https://example.org/x.js"></script><a href="https://example.org/">fine</a>'
    )
    assert docs.faults(tmp_path) == [
        "a.html names b.html, which does not exist",
        "a.html names #no, an anchor that does not exist",
        "a.html loads https://example.org/x.js from another host",
    ]


def test_the_reference_has_every_command_option_metric_event_and_parameter() -> None:
    from streamgauge.claims.names import METRICS
    from streamgauge.cli.app import command
    from streamgauge.systems.player_events import MEASURED
    from streamgauge.systems.registry import SYSTEMS, TRAFFIC

    pages = reference.pages()
    group: Any = command()
    for name, one in group.commands.items():
        section = pages["commands.md"].partition(f"\n## `{name}`\n")[2].partition("\n## ")[0]
        missing = [o for p in one.params for o in p.opts if o.startswith("--") and f"`{o}`" not in section]
        assert section and missing in ([], ["--help"]), (name, missing)
    assert all(f"| `{name}` |" in pages["metrics.md"] for name in METRICS)
    assert all(f"| `{name}` |" in pages["events.md"] for name in MEASURED)
    for entry in (*SYSTEMS.values(), *TRAFFIC.values()):
        section = pages["systems.md"].partition(f"\n## `{entry.name}`\n")[2].partition("\n## ")[0]
        assert section and all(f"| `{name}` |" in section for name in entry.parameters), entry.name
    assert (
        "## Flow" in pages["scenario-files.md"] and "| `congestion_control` |" in pages["scenario-files.md"]
    )
    # The same text each time: no address of an object, no order of a set.
    assert reference.pages() == pages and " at 0x" not in "".join(pages.values())


def test_generated_tables_of_pages_are_those_of_the_code() -> None:
    found: list[str] = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text("utf-8")
        found += re.findall(r"<!-- generated: (\S+) -->", text)
        assert reference.with_blocks(text) == text, f"{page.name}: run scripts/reference.py"
    assert sorted(found) == sorted(reference.blocks()), "each table stands in one page"


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_open_as_files_at_any_width(site: Path, browser: Any, scheme: str) -> None:
    for width in (420, 1000, 1440):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        errors: list[str] = []
        page.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
        page.on("console", lambda m, errors=errors: errors.append(m.text) if m.type == "error" else None)
        asked: list[str] = []
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        for name in ("index", "metrics", "reference/commands"):
            page.goto((site / f"{name}.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, width)
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, light[4:-1].split(", ")[:3])) > 3 * 128) == (scheme == "light"), light
        assert (
            errors == [] and [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
        )
        page.close()


@pytest.mark.browser
def test_search_works_in_a_folder(site: Path, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto((site / "index.html").as_uri())
    page.get_by_role("button", name="Search").click()
    # One letter after another: each is a query, and none may lose those before it.
    page.get_by_placeholder("Search").press_sequentially("drop-tail queue", delay=20)
    page.get_by_text("Queue disciplines, side by side").first.wait_for(timeout=60_000)
    assert page.get_by_placeholder("Search").input_value() == "drop-tail queue"
    page.close()
