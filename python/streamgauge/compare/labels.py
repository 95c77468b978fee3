"""Names of subjects and scenarios of a comparison: by the distinct parts of their ids."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from streamgauge.compare.conditions import differences
from streamgauge.scenario.settings import setting_labels, taken_apart

__all__ = ["difference_labels", "scenario_labels", "subject_labels"]

_LONGEST = 60
"""Characters of a label."""
_PARTS = re.compile(r"[^/-]+|[/-]")


def subject_labels(ids: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Returns labels of subjects, by any key, with the ids of their scenarios: the parts and the settings
    that all of a subject's ids have and not all subjects' do. A subject's whole id, or its key, where no two
    would differ."""
    of_all = [id_ for mine in ids.values() for id_ in mine]
    everywhere, settings = _shared(of_all), _settings_shared(of_all)
    plain, varied = {}, {}
    for key, mine in ids.items():
        kept = _shared(mine)
        plain[key] = "-".join(part for part in _words(mine[0]) if part in kept and part not in everywhere)
        varied[key] = [one for one in _settings_shared(mine) if one not in settings]
    if any(varied.values()):
        said = setting_labels(varied)
        none = not any(plain.values())
        found = {
            key: said[key]
            if none
            else ", ".join(filter(None, [plain[key], said[key] if varied[key] else ""]))
            for key in ids
        }
    else:
        found = plain
    if "" not in found.values() and len(set(found.values())) == len(found):
        return found
    whole = {key: mine[0] if len(set(mine)) == 1 else key for key, mine in ids.items()}
    return whole if len(set(whole.values())) == len(whole) else {key: key for key in ids}


def difference_labels(subjects: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Returns labels of subjects, by any key, with their tested parts: the values in which they differ,
    ``preset paper``; their number where these are too many to read, or do not differ."""
    keys = list(subjects)
    changed = [dict[str, str]() for _ in keys]
    first: dict[str, str] = {}
    for place, key in enumerate(keys[1:], 1):
        for address, mine, theirs in differences(subjects[keys[0]], subjects[key]):
            first[address], changed[place][address] = mine, theirs
    found = {}
    for key, own in zip(keys, changed, strict=True):
        values = {address: own.get(address, usual) for address, usual in first.items()}
        found[key] = ", ".join(
            f"{at.rpartition('.')[2].replace('_', ' ')} {value}" for at, value in values.items()
        )
    if len(set(found.values())) == len(keys) and max(map(len, found.values()), default=0) <= _LONGEST:
        return found
    return {key: f"subject {place}" for place, key in enumerate(keys, 1)}


def scenario_labels(ids: Sequence[Sequence[str]]) -> list[str]:
    """Returns labels of scenarios, each by the ids under which its subjects ran: the common parts of these,
    but for those that all scenarios have; with the latter where there is one scenario, or no two would
    differ. Scenarios with different settings are labelled by these."""
    common = [_joined(mine) for mine in ids]
    if len(ids) > 1:
        everywhere = _shared([id_ for mine in ids for id_ in mine])
        plain = ["-".join(part for part in _words(one) if part not in everywhere) for one in common]
        settings = setting_labels(dict(enumerate(_settings_shared(mine) for mine in ids)))
        differ = len(set(settings.values())) > 1
        short = [
            ", ".join(filter(None, [one, settings[place] if differ else ""]))
            for place, one in enumerate(plain)
        ]
        if "" not in short and len(set(short)) == len(short):
            return short
    if "" not in common and len(set(common)) == len(common):
        return common
    return [f"{place}" for place in range(1, len(ids) + 1)]


def _words(id_: str) -> list[str]:
    """Returns the parts of an id, without its settings."""
    return [part for part in _PARTS.findall(taken_apart(id_)[0]) if part not in "/-"]


def _shared(ids: Sequence[str]) -> set[str]:
    """Returns the parts that all have."""
    return set.intersection(*(set(_words(id_)) for id_ in ids)) if ids else set()


def _settings_shared(ids: Sequence[str]) -> list[str]:
    """Returns the settings that all have, in order."""
    sets = [taken_apart(id_)[1] for id_ in ids]
    return [one for one in sets[0] if all(one in mine for mine in sets)] if sets else []


def _joined(ids: Sequence[str]) -> str:
    """Returns the first id without the parts that not all have."""
    if len(set(ids)) == 1:
        return ids[0]
    kept, shared = "", _shared(ids)
    for part in _PARTS.findall(taken_apart(ids[0])[0]):
        if part in "/-":
            kept += part if kept and kept[-1] not in "/-" else ""
        elif part in shared:
            kept += part
    return kept.strip("/-")
