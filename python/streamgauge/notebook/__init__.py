"""The Python interface for notebooks and scripts: `import streamgauge as sg` offers these names.

docs/notebook.md is the tour.
"""

from streamgauge.campaign.loaded import LoadedTrial
from streamgauge.notebook.finding import Scenarios, load_scenario, scenarios
from streamgauge.notebook.judged import Checks
from streamgauge.notebook.running import run, sweep
from streamgauge.notebook.runs import Runs, load, open_record
from streamgauge.record import Record
from streamgauge.scenario import Scenario

__all__ = [
    "Checks",
    "LoadedTrial",
    "Record",
    "Runs",
    "Scenario",
    "Scenarios",
    "load",
    "load_scenario",
    "open_record",
    "run",
    "scenarios",
    "sweep",
]
