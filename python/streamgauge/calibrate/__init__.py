"""What the emulator does on this machine, here and now, against what is asked of it."""

from streamgauge.calibrate.run import CalibrationProgress, busy, calibrate

__all__ = ["CalibrationProgress", "busy", "calibrate"]
