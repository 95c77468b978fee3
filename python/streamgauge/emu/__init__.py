"""emu: a scenario for real. Server and player processes and the kernel's TCP in network namespaces, joined by
our link emulator, inside a sandbox that vanishes with the trial.
"""

from streamgauge.emu.doctor import Finding, cannot_run, examine
from streamgauge.emu.errors import TrialBrokenError
from streamgauge.emu.options import EmuOptions
from streamgauge.emu.trial import run_trial

__all__ = ["EmuOptions", "Finding", "TrialBrokenError", "cannot_run", "examine", "run_trial"]
