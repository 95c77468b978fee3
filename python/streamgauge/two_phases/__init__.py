"""A model of a stream that fills its player's buffer first and then plays: its use of a link in each
phase."""

from streamgauge.two_phases.model import StreamInputs, StreamPhase, TwoPhases, predict
from streamgauge.two_phases.parameters import ModelParameters

__all__ = ["ModelParameters", "StreamInputs", "StreamPhase", "TwoPhases", "predict"]
