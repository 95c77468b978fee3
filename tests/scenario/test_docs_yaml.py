"""Every YAML example of the documentation loads, and every example of the link's tables."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from streamgauge.infer.unknowns import load_unknowns
from streamgauge.scenario import Scenario, find, from_text, lower
from streamgauge.scenario.flow import Flow
from streamgauge.scenario.paper_readings import SOURCES, load_readings
from streamgauge.scenario.shipped import READINGS_FILE, UNKNOWNS_FILE

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.glob("*.md"))
# They are of what the page's walk adds, and load when it has been walked: tests/newcomer/test_walks.py.
OF_WALKS = ("id: my/push\n", "id: my/headdrop\n", "id: my/pages\n", "id: my/last\n")

BASE: dict[str, Any] = {
    "id": "docs/example",
    "title": "What an example leaves out",
    "path": {"down": {"rate": "1 Mbit/s", "queue": "droptail 100 packets", "delay": "10 ms"}},
    "flows": {
        "video": {"role": "subject", "system": "rtp", "clip": "carphone-550k"},
        "download": {"role": "rival", "traffic": "bulk"},
        "cross": {"role": "rival", "traffic": "cbr", "parameters": {"rate": "60 packets/s"}},
        "far": {"role": "rival", "traffic": "ping"},
        "ftp": {"role": "subject", "traffic": "bulk"},
        "tcp_1": {"role": "rival", "traffic": "bulk"},
    },
    "until": {"time": "200 s"},
}


LINE = "time_s,rate_kbps,delay_ms,loss_percent\n0,500,20,0\n10,800,40,1.5\n"


def blocks() -> list[Any]:
    found = []
    for page in PAGES:
        for number, text in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL), 1):
            if text.startswith(OF_WALKS):
                continue
            found.append(pytest.param(textwrap.dedent(text), id=f"{page.name}-{number}"))
    return found


def load(data: dict[str, Any], folder: Path) -> list[Scenario]:
    return from_text(json.dumps(data), folder=folder)


@pytest.mark.parametrize("text", blocks())
def test_a_block_loads(text: str, tmp_path: Path) -> None:
    part = YAML(typ="safe", pure=True).load(text)
    (tmp_path / "my-line.csv").write_text(LINE)
    if "unknowns" in part:
        (tmp_path / UNKNOWNS_FILE).write_text(text, encoding="utf-8")
        assert len(load_unknowns(tmp_path / UNKNOWNS_FILE, find(["hessler/*"]))) == len(part["unknowns"])
        return
    if SOURCES in part:
        # A paper's readings, of Hessler and Welzl.
        (tmp_path / READINGS_FILE).write_text(text)
        load_readings(tmp_path / READINGS_FILE, "hessler").check(find(["hessler/*"], mutants=False))
        return
    if set(part) <= set(Flow.keys()):
        part = {"flows": {**BASE["flows"], "video": {"role": "subject", **part}}}
    if "extends" in part:
        found = from_text(text, folder=tmp_path)
    else:
        assert set(part) <= {*Scenario.keys(), "variants"}, "an example is a part of a scenario"
        found = load({**BASE, **part}, tmp_path)
    for scenario in found:
        for mode in scenario.supported_modes():
            assert lower(scenario, mode, 1)["path"]["down"]


def rows() -> list[str]:
    """The last cell of each row of docs/link.md whose table ends with examples."""
    found, inside = [], False
    for line in (DOCS / "link.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
        elif cells[-1] == "example":
            inside = True
        elif inside and set(line) - set("|-: "):
            found.append(cells[-1])
    return found


def test_every_element_has_a_row() -> None:
    from streamgauge.scenario.path.delay import JITTERS
    from streamgauge.scenario.path.loss import LOSSES
    from streamgauge.scenario.path.queue import QUEUES
    from streamgauge.scenario.path.shaper import SHAPERS
    from streamgauge.scenario.path.stages import STAGES

    page = (DOCS / "link.md").read_text()
    models = set(LOSSES) - {"bernoulli"}
    elements = set(STAGES) - {"rate", "loss", "delay"}
    for name in (*QUEUES, *SHAPERS, *models, *elements):
        assert f"\n| `{name}`" in page, name
    for name in JITTERS:
        assert f"`{name}`" in page, name


@pytest.mark.parametrize("cell", rows())
def test_an_example_of_a_table_loads(cell: str, tmp_path: Path) -> None:
    (tmp_path / "my-line.csv").write_text(LINE)
    match = re.fullmatch(r"`(.*)`", cell)
    assert match, cell
    part = YAML(typ="safe", pure=True).load(match[1])
    down = {**BASE["path"]["down"], **part} if set(part) & {"rate", "queue", "shaper"} else part
    (scenario,) = load({**BASE, "path": {"down": down}}, tmp_path)
    assert lower(scenario, "sim", 1)["path"]["down"]


def test_defaults_of_the_queues_are_those_of_the_page() -> None:
    from streamgauge.scenario.path.queue import QUEUES
    from streamgauge.units import Quantity

    page = (DOCS / "link.md").read_text()
    for name in ("codel", "fq_codel", "pie", "dualpi2"):
        (row,) = (line for line in page.splitlines() if line.startswith(f"| `{name}`"))
        settings: Any = QUEUES[name].model_fields[name].annotation
        for key, field in settings.model_fields.items():
            assert f"`{key}`" in row, f"{name}.{key}"
            said = row.partition(f"`{key}` ")[2].split("|")[0]
            if isinstance(field.default, Quantity):
                number = re.match(r"[\d.]+ [^\s,]+", said)
                assert number and type(field.default)(number[0]) == field.default, f"{name}.{key}"
            elif isinstance(field.default, bool):
                assert said.startswith("on" if field.default else "off"), f"{name}.{key}"


def test_the_python_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (source,) = re.findall(r"```python\n(.*?)```", (DOCS / "link.md").read_text(), re.DOTALL)
    exec(compile(source, "docs/link.md", "exec"), {})
    assert "CoDel queue of 100 packets (target 10 ms, interval 100 ms)" in capsys.readouterr().out


def test_the_line_of_the_page_is_a_direction() -> None:
    from streamgauge.scenario.path import direction_of_text, text_of_direction

    (line,) = (line for line in (DOCS / "link.md").read_text().splitlines() if line.startswith("rate "))
    direction = direction_of_text(line)
    assert direction_of_text(text_of_direction(direction)) == direction
