"""What subjects and scenarios of a comparison are called: by the parts of their ids that tell them apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

__all__ = ["scenario_labels", "subject_labels"]

_PARTS = re.compile(r"[^/-]+|[/-]")


def subject_labels(ids: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Of subjects, by any key, with the ids of their scenarios: the parts that all of a subject's ids have
    and not all subjects' do. A subject's whole id, or its key, where that tells no two apart."""
    of_all = [id_ for mine in ids.values() for id_ in mine]
    everywhere = _shared(of_all)
    found = {}
    for key, mine in ids.items():
        own = [part for part in _words(mine[0]) if part in _shared(mine) and part not in everywhere]
        found[key] = "-".join(own)
    if "" not in found.values() and len(set(found.values())) == len(found):
        return found
    whole = {key: mine[0] if len(set(mine)) == 1 else key for key, mine in ids.items()}
    return whole if len(set(whole.values())) == len(whole) else {key: key for key in ids}


def scenario_labels(ids: Sequence[Sequence[str]]) -> list[str]:
    """Of scenarios, each by the ids under which its subjects ran: the parts that these have in common, but
    for those that all scenarios have; with the latter where there is one scenario, or no two would
    differ."""
    common = [_joined(mine) for mine in ids]
    if len(ids) > 1:
        everywhere = _shared([id_ for mine in ids for id_ in mine])
        short = ["-".join(part for part in _words(one) if part not in everywhere) for one in common]
        if "" not in short and len(set(short)) == len(short):
            return short
    if "" not in common and len(set(common)) == len(common):
        return common
    return [f"{place}" for place in range(1, len(ids) + 1)]


def _words(id_: str) -> list[str]:
    """The parts of an id; what was set, in parentheses, is one part."""
    plain, _, setting = id_.partition(" (")
    parts = [part for part in _PARTS.findall(plain) if part not in "/-"]
    return [*parts, *([setting.removesuffix(")")] if setting else [])]


def _shared(ids: Sequence[str]) -> set[str]:
    """The parts that all have."""
    return set.intersection(*(set(_words(id_)) for id_ in ids)) if ids else set()


def _joined(ids: Sequence[str]) -> str:
    """The first id without the parts that not all have."""
    if len(set(ids)) == 1:
        return ids[0]
    kept, shared = "", _shared(ids)
    for part in _PARTS.findall(ids[0].partition(" (")[0]):
        if part in "/-":
            kept += part if kept and kept[-1] not in "/-" else ""
        elif part in shared:
            kept += part
    return kept.strip("/-")
