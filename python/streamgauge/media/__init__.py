"""Content: real sequences encoded to the rate and length that a scenario asks for.

`prepare` makes a playable file with ffmpeg and keeps it in the user's cache; `frame_sizes` gives the sizes of
coded frames. For built-in content these ship with the package, so that sim needs neither ffmpeg nor the
content; for a user's own file they are those of the file that `prepare` makes of it. `Content` is the type of
both: `content_of_clip` returns the content that sim plays, `content_of_file` that of a file. `prepare_ladder`
encodes at several rates; `prepare_own_ladder` takes files as they are; `prepare_presentation` cuts a ladder
into segments. `store_at` keeps the contents of a campaign by their digests.
"""

from streamgauge.media.clip import BUILT_IN, ClipEncoding
from streamgauge.media.content import Content, Encoding, Frames, Segment, Track
from streamgauge.media.encode import prepare
from streamgauge.media.frames import frame_interval_ns, frame_sizes, key_frames
from streamgauge.media.ladder import Ladder, ladder_of_files, prepare_ladder
from streamgauge.media.own_files import own_ladder, prepare_own_ladder, unreadable
from streamgauge.media.package import prepare_presentation
from streamgauge.media.probe import of_clip as content_of_clip
from streamgauge.media.probe import of_file as content_of_file
from streamgauge.media.store import (
    ContentStore,
    content_given,
    contents_of,
    store_at,
    with_frames,
)

__all__ = [
    "BUILT_IN",
    "ClipEncoding",
    "Content",
    "ContentStore",
    "Encoding",
    "Frames",
    "Ladder",
    "Segment",
    "Track",
    "content_given",
    "content_of_clip",
    "content_of_file",
    "contents_of",
    "frame_interval_ns",
    "frame_sizes",
    "key_frames",
    "ladder_of_files",
    "own_ladder",
    "prepare",
    "prepare_ladder",
    "prepare_own_ladder",
    "prepare_presentation",
    "store_at",
    "unreadable",
    "with_frames",
]
