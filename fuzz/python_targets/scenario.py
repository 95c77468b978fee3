"""Any text is scenarios or an error that names the file."""

from __future__ import annotations

from pathlib import Path

from streamgauge.errors import ScenarioError
from streamgauge.scenario import from_text

HERE = Path("/nonexistent")


def target(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    try:
        made = from_text(text, file="fuzz.yaml", folder=HERE)
    except ScenarioError as error:
        assert error.file is not None
        return
    for scenario in made:
        assert scenario.id and scenario.model_dump(mode="json", by_alias=True)
