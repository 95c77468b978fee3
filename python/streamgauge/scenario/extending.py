"""``extends``: a scenario that differs from another one in its own keys alone.

It begins as the other's data. Mappings are merged, key by key and into words (``queue: codel 100 packets``
has a target too); lists and all else are replaced, ``null`` takes a key away, and one form of a thing takes
the place of another (``queue: {pie: ...}`` that of ``codel``). A key with dots is an address, as in
``variants``.

Claims belong to one scenario alone: ``source``, ``checks``, ``assumed`` and the ``like`` of figures are not
inherited, unless the other is a file without ``source``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from streamgauge.errors import ScenarioError
from streamgauge.scenario.anchoring import anchor
from streamgauge.scenario.document import Document, Key, expanded, key_text, parse_document, read_text
from streamgauge.scenario.limits import MOST_EXTENDED
from streamgauge.scenario.overrides import switch_kind
from streamgauge.scenario.path.delay import JITTERS
from streamgauge.scenario.path.loss import LOSSES
from streamgauge.scenario.path.presets import expand
from streamgauge.scenario.path.queue import QUEUES
from streamgauge.scenario.path.shaper import SHAPERS
from streamgauge.scenario.path.text import spelt_out
from streamgauge.scenario.shipped import SUFFIXES, catalogue_ids, shipped_file
from streamgauge.scenario.values import nearest

__all__ = ["documents"]

_CLAIMS = ("source", "checks", "assumed")
_WORDS = (*_CLAIMS, "id", "title", "question", "figures", "based_on")
"""Keys without an effect on the experiment."""
_MOST_IN_TITLE = 3

_Trail = tuple[Path, ...]
"""The files that extend one another, so far."""


def documents(
    text: str, *, file: str, folder: Path | None, only: str | None = None, trail: _Trail = ()
) -> list[Document]:
    """Returns one document for each scenario of a file's text: the extended file is merged in, variants are
    expanded. With ``only``, returns the variant of that id alone.

    Raises ScenarioError with file, line and key, in whichever file they are.
    """
    own = parse_document(text, file)
    if "extends" not in own.data:
        return expanded(own, only)
    base, shipped = _base(own, folder, trail)
    merged = _Merge(own, base, claims=not shipped and "source" not in base.data).document()
    experiment = {key: value for key, value in base.data.items() if key not in _WORDS}
    found = expanded(merged, only)
    for document in found:
        now = {key: value for key, value in document.data.items() if key not in _WORDS}
        changed = list(dict.fromkeys(map(_address, _differences(experiment, now, ()))))
        document.data["based_on"] = {"scenario": str(base.data.get("id")), "changes": changed}
    return found


def _base(own: Document, folder: Path | None, trail: _Trail) -> tuple[Document, bool]:
    """Returns the file that a file extends, and whether it is the catalogue's."""
    said = own.data["extends"]

    def refuse(why: str, hint: str | None = None, *inner: str) -> ScenarioError:
        file, line = own.place(("extends", *inner))
        return ScenarioError(why, file=file, line=line, key=key_text(("extends", *inner)), hint=hint)

    name = said.get("file") if isinstance(said, dict) else said
    wanted = said.get("id") if isinstance(said, dict) else None
    if not isinstance(name, str) or (isinstance(said, dict) and set(said) - {"file", "id"}):
        raise refuse(
            f"{said!r} names no scenario",
            "expected an id of the catalogue, a file, or '{file: FILE, id: ID}' for one of several in it",
        )
    shipped = not isinstance(said, dict) and not name.endswith(SUFFIXES)
    if shipped:
        path, wanted = _shipped(name, refuse).resolve(), name
        shown = str(path)
    else:
        path = ((folder or Path()) / Path(name).expanduser()).resolve()
        shown = str(Path(own.file).parent / Path(name).expanduser())
        if not path.is_file():
            raise refuse(f"there is no file '{name}'", "paths are relative to the scenario's file")
        here = Path(own.file).resolve()
        if path in (*trail, here):
            told = " -> ".join(one.name for one in (*trail, here, path))
            raise refuse(f"goes round: {told}", "one of them has to stand by itself")
        trail = (*trail, here)
        if len(trail) > MOST_EXTENDED:
            raise refuse(f"more than {MOST_EXTENDED} files extend one another", "merge some of them")
    found = documents(read_text(path), file=shown, folder=path.parent, trail=trail)
    ids = [str(document.data.get("id")) for document in found]
    if wanted is None and len(found) > 1:
        one = f"write such as 'extends: {{file: {name}, id: {ids[0]}}}'"
        raise refuse(f"'{name}' is {len(found)} scenarios: {', '.join(ids)}", one)
    if wanted is not None and str(wanted) not in ids:
        close = nearest(str(wanted), ids)
        hint = f"did you mean '{close}'?" if close else None
        raise refuse(f"there is no '{wanted}' in {name}; there are {', '.join(ids)}", hint, "id")
    base = found[0] if wanted is None else found[ids.index(str(wanted))]
    if "id" not in own.data:
        raise refuse("a scenario that extends another has an id of its own", "add 'id:'")
    if own.data["id"] == base.data.get("id"):
        file, line = own.place(("id",))
        why = f"'{own.data['id']}' is what it extends; two scenarios need two ids"
        raise ScenarioError(why, file=file, line=line, key="id")
    anchor(base, path.parent)
    return base, shipped


def _shipped(name: str, refuse: Any) -> Path:
    """Returns the file of the catalogue that has this id."""
    file = shipped_file(name)
    if file is not None:
        return file
    known = catalogue_ids()
    family = [one for one in known if one.startswith((f"{name}-", f"{name}/"))]
    if family:
        raise refuse(f"'{name}' is {len(family)} scenarios: {', '.join(family)}", "name one of them")
    close = nearest(name, known)
    raise refuse(
        f"there is no scenario '{name}' in the catalogue",
        f"did you mean '{close}'?" if close else f"a file's name ends with {' or '.join(SUFFIXES)}",
    )


class _Merge:
    """Merges one file's own data over the extended data."""

    def __init__(self, own: Document, base: Document, *, claims: bool) -> None:
        self._own = own
        self._base = base
        self._claims = claims

    def document(self) -> Document:
        """Returns the scenario of the file, ``variants`` still to be expanded."""
        own, base = self._own, self._base
        made = Document(copy.deepcopy(base.data), own.file, dict(base.places))
        made.data.pop("based_on", None)
        if not self._claims:
            for key in _CLAIMS:
                made.data.pop(key, None)
            for figure in made.data.get("figures") or ():
                if isinstance(figure, dict):
                    figure.pop("like", None)
        addresses = [key for key in own.data if "." in key]
        plain = {key: value for key, value in own.data.items() if key not in ("extends", *addresses)}
        self._into(made, made.data, plain, ())
        for address in addresses:
            made.set(address, own.data[address], own.place((address,)))
        self._title(made)
        return made

    def _title(self, made: Document) -> None:
        base = self._base.data
        if "title" in self._own.data or "title" not in base:
            return
        unlike = _differences(
            {key: value for key, value in base.items() if key not in _WORDS},
            {key: value for key, value in made.data.items() if key not in (*_WORDS, "variants")},
            (),
        )
        changed = list(dict.fromkeys(map(_address, unlike)))
        if changed:
            more = f" and {len(changed) - _MOST_IN_TITLE} more" if len(changed) > _MOST_IN_TITLE else ""
            made.data["title"] = f"{base['title']}, changed: {', '.join(changed[:_MOST_IN_TITLE])}{more}"

    def _into(self, made: Document, here: dict[str, Any], own: dict[str, Any], at: Key) -> None:
        """Merges ``own`` into ``here``, the data of ``made`` at ``at``."""
        self._replace_forms(made, here, own, at)
        for key, value in own.items():
            where = (*at, key)
            if value is None:
                self._take_away(made, here, where)
                continue
            if key in ("system", "traffic") and at[:1] == ("flows",) and here.get(key) != value:
                here[key] = value
                switch_kind(here, key)
            if isinstance(value, dict) and not _whole(where, value):
                inner = _as_mapping(where, here.get(key), value)
                self._forget(made, where, keep_inner=isinstance(here.get(key), dict))
                here[key] = inner
                made.places[where] = self._own.place(where)
                self._into(made, inner, value, where)
                continue
            here[key] = copy.deepcopy(value)
            self._forget(made, where)
            inside = {one: place for one, place in self._own.places.items() if one[: len(where)] == where}
            made.places.update(inside)

    def _replace_forms(self, made: Document, here: dict[str, Any], own: dict[str, Any], at: Key) -> None:
        """Removes keys that conflict with those of ``own``."""
        if at == ("path",) and "preset" in own:
            here.clear()
        elif at == ("path",) and "preset" in here:
            filled_in = expand(here)
            here.clear()
            here.update(filled_in)
        in_direction = len(at) == 2 and at[0] == "path"
        if in_direction and "stages" in own:
            here.clear()
        elif in_direction and "stages" in here and own:
            names = [str(stage.get("name")) for stage in here["stages"] if isinstance(stage, dict)] or ["0"]
            key = next(iter(own))
            such = f"{key_text(at)}.{names[0]}.{key}: ..."
            file, line = self._own.place((*at, key))
            raise ScenarioError(
                f"{self._name()} has the stages {', '.join(names)} there",
                file=file,
                line=line,
                key=key_text((*at, key)),
                hint=f"set one by its address, such as '{such}', or give 'stages' of your own",
            )
        if in_direction and own.get("rate", "") is None:
            for key in ("queue", "shaper"):
                here.pop(key, None)
        for forms in _forms(at):
            given = [key for key in own if key in forms and own[key] is not None]
            if given:
                for key in forms:
                    if key in here and key not in given:
                        del here[key]

    def _take_away(self, made: Document, here: dict[str, Any], where: Key) -> None:
        *above, key = where
        if key not in here and not (key in ("queue", "shaper") and len(where) == 3):
            file, line = self._own.place(where)
            close = nearest(str(key), here)
            hint = f"did you mean '{close}'?" if close else None
            if where[0] in _CLAIMS and not self._claims:
                hint = "what it claims is not taken over (docs/scenarios.md)"
            inside = f" in '{key_text(tuple(above))}'" if above else ""
            raise ScenarioError(
                f"there is no '{key}' to take away{inside} of {self._name()}",
                file=file,
                line=line,
                key=key_text(where),
                hint=hint,
            )
        here.pop(str(key), None)
        self._forget(made, where)

    def _name(self) -> str:
        return str(self._base.data.get("id"))

    @staticmethod
    def _forget(made: Document, where: Key, *, keep_inner: bool = False) -> None:
        """Removes the places of deleted data."""
        for one in [one for one in made.places if one[: len(where)] == where]:
            if not keep_inner or one == where:
                del made.places[one]


def _whole(where: Key, value: dict[str, Any]) -> bool:
    """Returns whether a mapping is one value: commands for both sides are another system, files another clip.
    A mapping of addresses to values, which may be ``null``, is one value too."""
    last = where[-1]
    if where == ("variants",) or (where[0] == "checks" and last in ("breaks", "without")):
        return True
    return where[:1] == ("flows",) and (
        (last == "system" and {"server", "player"} <= set(value)) or (last == "clip" and "files" in value)
    )


def _forms(at: Key) -> Iterator[Sequence[str]]:
    """Yields the alternative keys of the data at this place: one of them is enough."""
    match at:
        case ("path", _, "queue"):
            yield list(QUEUES)
        case ("path", _, "shaper"):
            yield list(SHAPERS)
        case ("path", _, "loss"):
            yield list(LOSSES)
        case ("path", _, "rate"):
            yield ("steps", "square", "csv", "trace")
        case ("path", _, "delay"):
            yield ("constant", "steps", "trace")
        case ("path", _, "delay", "jitter"):
            yield list(JITTERS)
        case ("path", _, "reorder"):
            yield ("probability", "every")
        case ("flows", _, "clip") | ("flows", _, "sim" | "emu", "clip"):
            yield ("source", "file", "files")
            yield ("rate", "ladder", "files")


def _as_mapping(where: Key, here: Any, own: dict[str, Any]) -> dict[str, Any]:
    """Returns the mapping at this place, with words spelt out, for ``own`` to be merged into. It is empty if
    there is none, or data of another kind."""
    if isinstance(here, dict):
        return here
    if not isinstance(here, str) or where[:1] != ("path",):
        return {}
    if len(where) == 3:
        deep = any(isinstance(value, dict) for value in own.values())
        found = spelt_out(str(where[-1]), here, ["", ""] if deep else [""])
        return found if isinstance(found, dict) else {}
    if len(where) == 4:  # the settings of a form: `codel: 100 packets`
        found = spelt_out(str(where[2]), f"{where[3]} {here}", ["", ""])
        inner = found.get(str(where[3])) if isinstance(found, dict) else None
        return inner if isinstance(inner, dict) else {}
    return {}


def _differences(base: Any, now: Any, at: Key) -> Iterator[Key]:
    """Yields where two scenarios' data differ."""
    if base == now:
        return
    if isinstance(base, str) != isinstance(now, str) and (isinstance(base, dict) or isinstance(now, dict)):
        # One file may have it in words, the other key by key.
        base = _as_mapping(at, base, now) if isinstance(base, str) and isinstance(now, dict) else base
        now = _as_mapping(at, now, base) if isinstance(now, str) and isinstance(base, dict) else now
    if _are_named(base) and _are_named(now) and len(base) == len(now):
        base, now = ({one["name"]: one for one in several} for several in (base, now))
    if not isinstance(base, dict) or not isinstance(now, dict):
        yield at
        return
    for key in dict.fromkeys((*base, *now)):
        yield from _differences(base.get(key), now.get(key), (*at, key))


def _are_named(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) and "name" in one for one in value)


def _address(key: Key) -> str:
    """Returns the address in the form of ``--set``: a stage by its name."""
    return ".".join(str(part) for part in key if part != "stages" or key[0] != "path")
