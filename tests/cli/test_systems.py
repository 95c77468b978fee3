"""``systems``: a line each, one with its parameters, TCP's once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from streamgauge.systems.registry import SYSTEMS, TCP_PARAMETERS, TRAFFIC

Cli = Callable[..., Any]

KNOWN = {**SYSTEMS, **TRAFFIC}


def parameters_in(text: str) -> set[str]:
    """What a table's rows begin with."""
    return {line.split()[0] for line in text.splitlines() if line.startswith("    ")}


def test_a_line_each_says_whose_it_is_in_which_mode(cli: Cli) -> None:
    head, *lines = cli("systems").out.splitlines()
    assert head.split() == ["name", "kind", "sim", "emu", "title"]
    told = {line.split()[0]: line.split()[1:4] for line in lines}
    assert list(told) == list(KNOWN)
    assert told["rtsp"] == ["system", "-", "third-party"]
    assert told["darwin"] == ["system", "ours", "ours"]
    assert told["bulk"] == ["traffic", "ours", "third-party"]


@pytest.mark.parametrize("name", KNOWN)
def test_one_has_all_of_its_parameters_but_tcps(cli: Cli, name: str) -> None:
    said = cli("systems", name).out
    tcps = {one for one, parameter in KNOWN[name].parameters.items() if TCP_PARAMETERS.get(one) == parameter}
    assert parameters_in(said) == set(KNOWN[name].parameters) - tcps
    assert ("those of TCP: 'streamgauge systems tcp'" in said) == bool(tcps)


def test_tcps_stand_by_themselves(cli: Cli) -> None:
    assert {"receive_window", "send_buffer", "mss", "initial_window", "hystart"} <= set(TCP_PARAMETERS)
    said = cli("systems", "tcp").out
    assert parameters_in(said) == set(TCP_PARAMETERS)
    named = "rtp, darwin, http, dash, ccn, realvideo, windows_media, bulk"
    assert named in said and "3 MiB" in said and "RFC 6928" in said
    (told,) = json.loads(cli("systems", "tcp", "--json").out)["systems"]
    assert set(told["parameters"]) == set(TCP_PARAMETERS) and told["of"] == [
        "rtp",
        "darwin",
        "http",
        "dash",
        "ccn",
        "realvideo",
        "windows_media",
        "bulk",
    ]


def test_as_json_each_has_all_of_its_parameters(cli: Cli) -> None:
    systems = {one["name"]: one for one in json.loads(cli("systems", "--json").out)["systems"]}
    assert {name: set(one["parameters"]) for name, one in systems.items()} == {
        name: set(entry.parameters) for name, entry in KNOWN.items()
    }
    assert systems["rtsp"]["modes"]["emu"]["ours"] is False
    assert systems["bulk"]["parameters"]["receive_window"]["default"] == "3 MiB"
    assert systems["bulk"]["parameters"]["initial_window"]["source"] == "RFC 6928"
    assert set(systems["bulk"]["modes"]["emu"]["versions"]) == {"machine", "adapter"}
    assert set(systems["rtsp"]["modes"]["emu"]["versions"]) == {"adapter"}


def test_one_says_where_its_values_are_from(cli: Cli) -> None:
    said = cli("systems", "darwin").out
    assert "preference reliable_udp" in said and "machine version" in said and "traffic:" not in said
    (varies,) = [line for line in said.splitlines() if line.startswith("    fixed_timeout ")]
    assert "varies" in varies and "Default: paper: 250 ms; source: none; fitted: none" in varies
    (one,) = json.loads(cli("systems", "darwin", "--json").out)["systems"]
    server = [told for told in one["parameters"].values() if told["group"] == "server"]
    assert len(server) > 40 and all(told["source"] for told in server)
    unknown = cli("systems", "darvin")
    assert unknown.status == 3 and "did you mean 'darwin'?" in unknown.err


def test_no_bound_is_a_power_of_ten(cli: Cli) -> None:
    assert "[[30 s, 90 s]]" in cli("systems", "cbr").out
    assert "e+0" not in cli("systems", "--json").out
