"""Content: real sequences encoded to the rate and length that a scenario asks for.

`prepare` makes a playable file with ffmpeg and keeps it in the user's cache; `frame_sizes` gives the sizes of
coded frames. For built-in content these ship with the package, so that sim needs neither ffmpeg nor the
content; for a user's own file they are those of the file that `prepare` makes of it.
"""

from streamgauge.media.clip import BUILT_IN, Clip
from streamgauge.media.encode import prepare
from streamgauge.media.frames import frame_interval_ns, frame_sizes, key_frames

__all__ = ["BUILT_IN", "Clip", "frame_interval_ns", "frame_sizes", "key_frames", "prepare"]
