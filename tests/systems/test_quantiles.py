"""Times that are drawn: one, or a list of quantiles."""

from __future__ import annotations

import pytest
from streamgauge.scenario import Scenario, lower
from streamgauge.systems.parameter import Parameter, Quantiles
from streamgauge.units import Time, UnitError

READ = Parameter(name="read", kind=Quantiles, default=None, help="")


def test_one_time_or_an_ascending_list() -> None:
    assert READ.parse("5 ms") == (Time("5 ms"),)
    assert READ.parse(["5 ms", "5 ms", "1 s"]) == (Time("5 ms"), Time("5 ms"), Time("1 s"))
    with pytest.raises(UnitError, match="4 ms follows 5 ms; give the times in ascending order"):
        READ.parse(["5 ms", "4 ms"])
    with pytest.raises(UnitError, match="not a time"):
        READ.parse("often")


def test_a_plan_has_them_in_nanoseconds() -> None:
    scenario = {
        "id": "quantiles",
        "title": "Drawn times",
        "path": {"down": {"rate": "1 Mbit/s", "queue": "droptail 20 kB"}, "up": {}},
        "flows": {
            "video": {
                "role": "subject",
                "system": "dash",
                "parameters": {"append": ["4 ms", "9 ms"], "set_up": "30 ms"},
                "clip": {
                    "source": "carphone",
                    "ladder": ["100k", "250k"],
                    "segment": "2 s",
                    "duration": "4 s",
                },
            }
        },
        "until": {"time": "5 s"},
    }
    plan = lower(Scenario.model_validate(scenario), "sim", 1)
    player = plan["flows"][0]["app"]["dash"]["player"]
    assert (player["append"], player["set_up"], player["read"]) == ([4_000_000, 9_000_000], [30_000_000], [])
