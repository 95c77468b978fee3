"""What the emulator does on this machine, here and now, against what is asked of it."""

from streamgauge.calibrate.run import Progress, busy, calibrate

__all__ = ["Progress", "busy", "calibrate"]
