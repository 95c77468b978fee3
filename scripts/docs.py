#!/usr/bin/env python3
"""Builds the documentation as a site that works offline, as a folder, in dist/docs (`make docs`).

    .venv/bin/python scripts/docs.py [OUT]

It fails on a link to a page or an anchor that does not exist, and on anything that another host would have to
serve. The pages under "Reference" are generated from the code (scripts/reference.py).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import reference

ROOT = Path(__file__).resolve().parent.parent
REPOSITORY = "https://github.com/streamgauge/streamgauge"
"""Not the configuration's `repo_url`, for which each page would ask GitHub about stars."""
CONFIG = ROOT / "zensical.toml"
OFFLINE = Path(__file__).with_name("docs-offline.js")
SHIM = "assets/javascripts/offline.js"
_OUTSIDE = re.compile(r"\]\(\s*\.\./(?!\.\.)([^)\s]+)\)")
#: A link with a page's file name as its words, which are right in the repository.
_NAMED_BY_FILE = re.compile(r"\[([\w-]+\.md)\]\(\1(#[^)\s]*)?\)")
#: A figure and its interval in a table, which belong on one line.
_INTERVAL = re.compile(r"(?<=^\|)(?:.*\d ± \d.*)$", re.M)
_TITLE = re.compile(r"^# (.+)$", re.M)
_FOREIGN_SHIM = re.compile(r'<script src="https://unpkg\.com/iframe-worker/shim"[^>]*></script>')


def in_nav(nav: Any) -> list[str]:
    """Returns the pages that a navigation names, in their order."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [page for part in parts for page in in_nav(part)]


def title_of(page: Path) -> str:
    """Returns the first heading of a page, or its file name."""
    found = _TITLE.search(page.read_text(encoding="utf-8"))
    return page.name if found is None else found[1]


def stage(source: Path) -> None:
    """Writes the pages to build: those of docs/, and those generated from the code."""
    shutil.copytree(ROOT / "docs", source)
    titles = {page.name: title_of(page) for page in source.glob("*.md")}
    for page in source.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        text = _INTERVAL.sub(lambda row: row[0].replace(" ± ", "\u00a0±\u00a0"), text)
        # A page of the site has a title, and no file name.
        text = _NAMED_BY_FILE.sub(
            lambda link: f"[{titles.get(link[1], link[1])}]({link[1]}{link[2] or ''})", text
        )
        # Files outside docs/ are read in the repository.
        page.write_text(_OUTSIDE.sub(rf"]({REPOSITORY}/blob/main/\1)", text), encoding="utf-8")
    (source / "reference").mkdir()
    for name, text in reference.pages().items():
        (source / "reference" / name).write_text(text, encoding="utf-8")


def configured(source: Path, out: Path) -> str:
    """Returns the configuration for these folders, with pages that no section names after the guides."""
    text = CONFIG.read_text(encoding="utf-8")
    named = in_nav(tomllib.loads(text)["project"]["nav"])
    assert len(named) == len(set(named)), "zensical.toml names a page twice"
    more = sorted({str(page.relative_to(source)) for page in source.rglob("*.md")} - set(named))
    if more:
        print(f"docs: in no section of zensical.toml, so after the guides: {', '.join(more)}")
        listed = ", ".join(f'"{page}"' for page in more)
        text = text.replace('{ "Extend" = [', f'{{ "More" = [ {listed} ] }},\n    {{ "Extend" = [', 1)
    folders = f'docs_dir = "{source.name}"\nsite_dir = "{out.name}"\n'
    return text.replace("[project]\n", f"[project]\n{folders}", 1)


def build(out: Path) -> list[str]:
    """Builds the site into `out`, which is replaced, and returns the faults of its pages."""
    with tempfile.TemporaryDirectory(prefix="streamgauge-docs-") as folder:
        work = Path(folder)
        stage(work / "source")
        (work / "zensical.toml").write_text(configured(work / "source", work / "site"), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "zensical", "build", "--strict", "-f", str(work / "zensical.toml")],
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr).partition("Traceback")[0]
            sys.exit(f"{said}\ndocs: the pages have the faults above (line numbers are those of docs/)")
        work_offline(work / "site")
        shutil.rmtree(out, ignore_errors=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(work / "site", out)
    return faults(out)


def work_offline(site: Path) -> None:
    """Puts our script for workers in the place of the one of another host."""
    shutil.copy(OFFLINE, site / SHIM)
    for page in site.rglob("*.html"):
        up = "../" * (len(page.relative_to(site).parts) - 1)
        text = page.read_text(encoding="utf-8")
        page.write_text(_FOREIGN_SHIM.sub(f'<script src="{up}{SHIM}"></script>', text), encoding="utf-8")


class _Page(HTMLParser):
    """The anchors of a page, its links, and the files that it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps the tag's names."""
        found = {name: value for name, value in attrs if value}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif "src" in found:
            self.loads.append(found["src"])
        elif tag == "link" and found.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.loads.append(found.get("href", ""))


def faults(site: Path) -> list[str]:
    """Lists the links of a site that lead nowhere, and the files that it would load from other hosts."""
    pages = {file: _Page(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))}
    found: list[str] = []
    for file, page in pages.items():
        name = file.relative_to(site)
        for address in (*page.links, *page.loads):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.loads and parts.scheme != "data":
                    found.append(f"{name} loads {address} from another host")
                continue
            # Error pages are served from anywhere, so that their addresses begin at the root.
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if name.name == "404.html":
                continue
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{name} names {address}, which does not exist")
            elif parts.fragment and target in pages and parts.fragment not in pages[target].anchors:
                found.append(f"{name} names {address}, an anchor that does not exist")
    return found


def main() -> int:
    """Builds the site; returns 1 if it has faults."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / "docs"
    found = build(out.resolve())
    print(*found, sep="\n", end="\n" if found else "")
    if not found:
        print(f"docs: {out}/index.html, {sum(1 for _ in out.rglob('*.html'))} pages")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
