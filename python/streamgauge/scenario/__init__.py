"""Scenarios: experiments as data, in YAML and in Python, and their lowering to the plan of a trial.

::

    from streamgauge.scenario import load, lower

    (scenario,) = load("hessler/ftp-heavy")
    plan = lower(scenario, mode="sim", seed=1)
"""

from streamgauge.scenario.catalogue import catalogue_ids, find, load
from streamgauge.scenario.commands import Command, CommandProcess
from streamgauge.scenario.expect import (
    Assumed,
    Check,
    Figure,
    Measure,
    Population,
    Repetitions,
    Source,
    Until,
)
from streamgauge.scenario.flow import Arrivals, Clip, Flow, FlowEvent, StandIn
from streamgauge.scenario.loading import ScenarioErrors, from_text, load_file
from streamgauge.scenario.lower import lower
from streamgauge.scenario.model import MODES, Scenario
from streamgauge.scenario.overrides import OverrideError, override
from streamgauge.scenario.path import (
    Bernoulli,
    Bottleneck,
    Delay,
    DelaySettings,
    DelayStep,
    Direction,
    DropTail,
    Gilbert,
    GilbertRuns,
    Loss,
    Path,
    RateStep,
    RateSteps,
    Square,
    SquareWave,
    Switch,
)
from streamgauge.scenario.schema import json_schema
from streamgauge.scenario.values import Instant, Uniform

__all__ = [
    "MODES",
    "Arrivals",
    "Assumed",
    "Bernoulli",
    "Bottleneck",
    "Check",
    "Clip",
    "Command",
    "CommandProcess",
    "Delay",
    "DelaySettings",
    "DelayStep",
    "Direction",
    "DropTail",
    "Figure",
    "Flow",
    "FlowEvent",
    "Gilbert",
    "GilbertRuns",
    "Instant",
    "Loss",
    "Measure",
    "OverrideError",
    "Path",
    "Population",
    "RateStep",
    "RateSteps",
    "Repetitions",
    "Scenario",
    "ScenarioErrors",
    "Source",
    "Square",
    "SquareWave",
    "StandIn",
    "Switch",
    "Uniform",
    "Until",
    "catalogue_ids",
    "find",
    "from_text",
    "json_schema",
    "load",
    "load_file",
    "lower",
    "override",
]
