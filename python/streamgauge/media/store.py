"""Contents of a campaign, each once, named by their digests: `OUT/content/<digest>.json`.

A plan has `"content": {"digest", "encoding"}` of a clip in place of its frames; for a ladder that third-party
programs received as it is, the flow has `"content": digest`. Plans of earlier versions, and those that stand
alone, have the frames written in; both are read.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from streamgauge.errors import MediaError
from streamgauge.media.content import Content

if TYPE_CHECKING:
    from streamgauge import _native

__all__ = [
    "FOLDER",
    "ContentStore",
    "content_given",
    "contents_of",
    "store_at",
    "with_frames",
]

FOLDER = "content"
"""Where a campaign's contents lie, in its folder."""
_DIGEST = re.compile(r"[0-9a-f]{32}")


class ContentStore:
    """The contents in one folder, shared by all trials beside it, of this process and of others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, Content] = {}
        self._loaded: set[str] = set()
        self._turn = Lock()

    def put(self, content: Content) -> str:
        """Stores it, unless it is there already, and returns its digest. Raises OSError."""
        digest = content.digest
        file = self._file(digest)
        with self._turn:
            known = digest in self._known
            if not (file.is_file() if known else _holds(file, digest)):
                _write(content, file)
            self._known[digest] = content
            if digest not in self._loaded:
                self.loaded.add(digest, json.dumps(content.to_json()))
                self._loaded.add(digest)
        return digest

    def get(self, digest: str) -> Content:
        """Returns the content of that digest. Raises MediaError if it is not here, or is another."""
        if digest not in self._known:
            file = self._file(digest)
            content = Content.load(file)
            if content.digest != digest:
                raise MediaError(
                    f"{file}: it is another content, of digest {content.digest}; fetch the file anew, or "
                    "delete it and run the trial again."
                )
            self._known[digest] = content
        return self._known[digest]

    @cached_property
    def loaded(self) -> _native.Contents:
        """Returns all that this process has put here, as sim takes it."""
        from streamgauge import _native  # late, so that looking at a catalogue needs no build

        return _native.Contents()

    def _file(self, digest: str) -> Path:
        return self.folder / f"{digest}.json"


def _holds(file: Path, digest: str) -> bool:
    try:
        return Content.load(file).digest == digest
    except MediaError:
        return False


def _write(content: Content, file: Path) -> None:
    """Writes the whole file or nothing, even if another process writes the same."""
    partial = file.with_name(f".{file.stem}.{os.getpid()}-{uuid.uuid4().hex[:8]}.partial")
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        content.save(partial)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


@lru_cache(maxsize=8)
def store_at(out: Path) -> ContentStore:
    """Returns the store of the campaign in the folder `out`."""
    return ContentStore(out / FOLDER)


def _clips_played(app: Any) -> Iterator[Mapping[str, Any]]:
    """Yields the clips that the plan of a flow (its `app`) plays: one, or of a ladder each level's."""
    for settings in app.values() if isinstance(app, Mapping) else ():
        ladder = (settings or {}).get("ladder") or {}
        levels = [*ladder.get("video", ()), *([ladder["audio"]] if ladder.get("audio") else [])]
        for clip in ((settings or {}).get("clip"), *(level["clip"] for level in levels)):
            if clip:
                yield clip


def _named(app: Any) -> Iterator[tuple[str, int]]:
    """Yields digest and encoding of the media in the plan of a flow (its `app`), if it names it so."""
    for clip in _clips_played(app):
        reference = clip.get("content")
        if reference is not None:
            yield str(reference["digest"]), int(reference.get("encoding", 0))


def _near(directory: Path, digest: str) -> Content:
    """Returns the content of that digest, for the record in `directory`: in its own folder `content`, in that
    of the folder above, and so on."""
    if _DIGEST.fullmatch(digest) is None:
        raise MediaError(f"{directory}: '{digest}' is no digest of a content; the plan is damaged.")
    directory = directory.absolute()
    for folder in (directory, *directory.parents):
        if (folder / FOLDER / f"{digest}.json").is_file():
            return store_at(folder).get(digest)
    raise MediaError(
        f"{directory}: its plan plays content {digest}, which is not here. Copy "
        f"{FOLDER}/{digest}.json of its campaign to {directory / FOLDER}, or run the trial "
        "again."
    )


def contents_of(plan: Mapping[str, Any], directory: Path) -> dict[str, Content]:
    """Returns the contents that the plan of the record in `directory` names for machines of ours, by their
    digests. Raises MediaError."""
    named = {digest for flow in plan["flows"] for digest, _ in _named(flow["app"])}
    return {digest: _near(directory, digest) for digest in sorted(named)}


def content_given(planned: Mapping[str, Any], directory: Path) -> Content | None:
    """Returns the content that third-party programs received, if the flow's plan (`planned`) names it;
    `directory` is its record's. Raises MediaError if it is nowhere near."""
    digest = planned.get("content")
    return None if digest is None else _near(directory, str(digest))


def with_frames(app: Any, directory: Path) -> Any:
    """Returns the `app` of a flow's plan with the frames that it plays written in; `directory` is its
    record's.

    Raises MediaError if the content that it names is nowhere near.
    """
    # A ladder names one content in each of its levels.
    contents = {digest: _near(directory, digest) for digest in dict(_named(app))}
    if not contents:
        return app
    ((system, settings),) = app.items()
    if settings.get("clip"):
        settings = {**settings, "clip": _clip_with_frames(settings["clip"], contents, directory)}
    if ladder := settings.get("ladder"):
        level = partial(_level_with_frames, contents=contents, directory=directory)
        audio = {"audio": level(ladder["audio"])} if ladder.get("audio") else {}
        settings = {**settings, "ladder": {**ladder, "video": [*map(level, ladder["video"])], **audio}}
    return {system: settings}


def _level_with_frames(
    level: Mapping[str, Any], *, contents: Mapping[str, Content], directory: Path
) -> Mapping[str, Any]:
    return {**level, "clip": _clip_with_frames(level["clip"], contents, directory)}


def _clip_with_frames(
    clip: Mapping[str, Any], contents: Mapping[str, Content], directory: Path
) -> Mapping[str, Any]:
    if (reference := clip.get("content")) is None:
        return clip
    number = int(reference.get("encoding", 0))
    content = contents[str(reference["digest"])]
    encodings = content.encodings
    if not 0 <= number < len(encodings):
        raise MediaError(
            f"{directory}: its plan plays encoding {number} of {content.name}, which has "
            f"{len(encodings)}; the plan is damaged."
        )
    given = {key: value for key, value in clip.items() if key != "content"}
    return given | encodings[number].frames.to_plan()
