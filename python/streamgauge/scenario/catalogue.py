"""Finding scenarios: by file, by id, by glob; the catalogue that ships, and a folder of the user's own."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from streamgauge.errors import ScenarioError
from streamgauge.scenario.loading import load_file
from streamgauge.scenario.model import Scenario
from streamgauge.scenario.shipped import SUFFIXES, catalogue_folder, catalogue_ids, shipped_file
from streamgauge.scenario.values import nearest

__all__ = ["catalogue_folder", "catalogue_ids", "find", "load"]


_PATTERN = re.compile(r"[*?[]")
"""Where the beginning of a pattern ends that every id which it matches has."""


def _is_file(text: str) -> bool:
    return text.endswith(SUFFIXES) or Path(text).is_file()


def load(path_or_id: str | Path, *, settings: Iterable[str] = (), mutants: bool = True) -> list[Scenario]:
    """Returns the scenarios of a file, or of the catalogue by id or glob (``hessler/ftp-*``).

    ``settings`` are ``ADDRESS=VALUE``; ``mutants`` as in `from_text`. Raises ScenarioError: nothing is found,
    or with file, line and key.
    """
    settings = list(settings)
    text = str(path_or_id)
    if isinstance(path_or_id, Path) or _is_file(text):
        return load_file(Path(text), settings=settings, mutants=mutants)
    file = shipped_file(text)
    if file is not None:
        return load_file(file, settings=settings, only=text, mutants=mutants)
    known = catalogue_ids(_PATTERN.split(text, maxsplit=1)[0])
    wanted = [name for name in known if fnmatch.fnmatchcase(name, text)]
    if not wanted:
        # A family's name selects all of its scenarios.
        wanted = [name for name in known if name.startswith((f"{text}-", f"{text}/"))]
    if not wanted:
        known = catalogue_ids()
        families = {name.partition("/")[0] for name in known}
        close = nearest(text, [*known, *sorted(families)])
        raise ScenarioError(
            f"there is no scenario '{text}', neither as a file nor in the catalogue",
            hint=f"did you mean '{close}'?" if close else "'streamgauge list' names them",
        )
    return _load_ids(known, wanted, settings, mutants)


def _load_ids(
    known: Mapping[str, Path], wanted: Sequence[str], settings: Sequence[str], mutants: bool
) -> list[Scenario]:
    """Returns the scenarios of these ids, in order. Reads a file once if all of its scenarios are asked
    for."""
    whole = Counter(known.values())
    asked = Counter(known[name] for name in wanted)
    found: dict[str, Scenario] = {}
    for name in wanted:
        path = known[name]
        if name in found:
            continue
        is_whole = asked[path] == whole[path]
        made = load_file(path, settings=settings, only=None if is_whole else name, mutants=mutants)
        names = [one for one, file in known.items() if file == path] if is_whole else [name]
        found |= dict(zip(names, made, strict=True))
    return [found[name] for name in wanted]


def find(
    names: Iterable[str | Path], *, settings: Iterable[str] = (), mutants: bool = True
) -> list[Scenario]:
    """Returns every scenario that ``names`` select, each id once, in the order asked."""
    settings = list(settings)
    found: dict[str, Scenario] = {}
    for name in names:
        for scenario in load(name, settings=settings, mutants=mutants):
            if scenario.id in found and found[scenario.id] != scenario:
                raise ScenarioError(f"two scenarios are called '{scenario.id}'; ids are unique in a run")
            found[scenario.id] = scenario
    return list(found.values())
