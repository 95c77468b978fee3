"""docs/tcp.md names what there is."""

from __future__ import annotations

import re
from pathlib import Path

from streamgauge.systems.registry import TRAFFIC
from streamgauge.systems.tcp import LINUX_CONGESTION_CONTROLS, MECHANISMS, SIM_CONGESTION_CONTROLS

PAGE = (Path(__file__).parent.parent.parent / "docs/tcp.md").read_text(encoding="utf-8")


def first_cells(heading: str) -> dict[str, str]:
    """The rows of the first table after a heading, by the names in their first cells."""
    part = PAGE.partition(f"{heading} |")[2].partition("\n\n")[0]
    rows = [line.split(" | ") for line in part.splitlines()[2:]]
    return {name: " | ".join(row[1:]) for row in rows for name in re.findall(r"`([a-z0-9_]+)`", row[0])}


def test_every_controller_of_sim_and_which_mode_has_it() -> None:
    rows = first_cells("| `congestion_control`")
    assert set(SIM_CONGESTION_CONTROLS) <= set(rows) <= {*SIM_CONGESTION_CONTROLS, *LINUX_CONGESTION_CONTROLS}
    for name, row in rows.items():
        sim, emu = row.rstrip(" |").split(" | ")[-2:]
        assert (sim == "yes") == (name in SIM_CONGESTION_CONTROLS), name
        assert emu.startswith("no") == (name not in LINUX_CONGESTION_CONTROLS), name


def test_every_mechanism() -> None:
    assert tuple(first_cells("| name")) == MECHANISMS


def test_every_parameter_with_its_default() -> None:
    rows = first_cells("| parameter")
    of_bulk = ("bytes", "control_connection")
    parameters = {name: one for name, one in TRAFFIC["bulk"].parameters.items() if name not in of_bulk}
    assert list(rows) == list(parameters) and all(f"`{name}" in PAGE for name in of_bulk)
    for name, row in rows.items():
        assert row.partition("|")[0].strip().strip("`") == (parameters[name].default or ""), name
