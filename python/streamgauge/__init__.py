"""StreamGauge: the test bed for streaming media under congestion.

::

    import streamgauge as sg

    runs = sg.run("hessler/ftp-medium", mode="sim", repeat=5)
    runs.metrics("goodput")
    runs.plot.rates()

docs/notebook.md is the tour. ``__init__.pyi`` describes each name, for editors.
"""

import importlib

__version__ = "0.9.0"

# Where each public name is, looked up when it is first asked for: the program's `--help` imports this package
# too, and all that is below takes half a second. No name is that of a room, such as `scenario` or `record`:
# an import of the room would take its place.
_PLACES = {
    **dict.fromkeys(
        (
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
        ),
        "streamgauge.notebook",
    ),
    **dict.fromkeys(
        ("CannotRunError", "MediaError", "RecordError", "ScenarioError", "StreamGaugeError"),
        "streamgauge.errors",
    ),
}

__all__ = ["__version__", *sorted(_PLACES)]


def __getattr__(name: str) -> object:
    """A public name, imported at its first use (PEP 562)."""
    if name not in _PLACES:
        raise AttributeError(f"module 'streamgauge' has no attribute {name!r}")
    found: object = getattr(importlib.import_module(_PLACES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
