"""Common parts of all pages: a template, style and script, in one file that needs no other."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from importlib.metadata import version
from typing import Any

import jinja2
from markupsafe import Markup

from streamgauge import __version__
from streamgauge.documents import write_whole
from streamgauge.media.sources import cache_folder
from streamgauge.report.chart import THEMES
from streamgauge.report.exports import program_template
from streamgauge.report.placing import Placing, dark_style
from streamgauge.report.words import tie

__all__ = ["render_page"]

STYLES = ("page.css", "tables.css", "first.css", "report.css", "figures.css", "print.css")
"""Style sheets of all pages, in order; report.css is that of figures."""


def render_page(package: str, template: str, **values: Any) -> str:
    """Returns a page as text: a template from the folder ``templates`` of a package, or of the report where
    that has none of the name, with these values and the common ones of all pages. In the template ``figure``
    places a `DrawnFigure`, and ``tie`` keeps numbers and units on one line."""
    shared = resources.files("streamgauge.report") / "templates"

    def part(*names: str) -> str:
        return "".join((shared / name).read_text(encoding="utf-8") for name in names)

    found = _environment(package).get_template(template)
    with Placing() as placing:
        text = found.render(
            version=__version__,
            made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            style=Markup(part(*STYLES) + dark_style()),
            script=Markup(_constants() + part("report.js", "narrow.js", "figures.js", "series.js")),
            page_script=Markup(part("page.js")),
            bundle=_bundle(),
            figure=placing.place,
            **values,
        )
        return placing.fill(text)


@cache
def _environment(package: str) -> jinja2.Environment:
    """Returns the templates of a package, each compiled once."""
    folders = [resources.files(of) / "templates" for of in (package, "streamgauge.report")]

    def read(name: str) -> str | None:
        file = next((folder / name for folder in folders if (folder / name).is_file()), None)
        return None if file is None else file.read_text(encoding="utf-8")

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(read),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["tie"] = tie
    return environment


def _constants() -> str:
    """Returns the data with which figures.js redraws, and writes a figure as a program."""
    values = {"THEME": THEMES["light"], "PROGRAM": program_template()}
    return "".join(f"const {name} = {json.dumps(value)};\n" for name, value in values.items()).replace(
        "</", "<\\/"
    )


@cache
def _bundle() -> Markup:
    """Returns the code that draws in the browser: made of a megabyte of JavaScript in a second, and always
    the same."""
    kept = cache_folder() / f"vega-{version('vl-convert-python')}.js"
    try:
        bundle = kept.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        import vl_convert

        bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
        # A cache that cannot be written costs that second each time, and nothing else.
        with contextlib.suppress(OSError):
            write_whole(kept, bundle)
    # In a function, as it declares thousands of short names, and which runs when it is needed: few pages are
    # looked at so closely.
    return Markup("window.loadVega = () => {" + bundle + "};").replace("</script", "<\\/script")
