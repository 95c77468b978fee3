"""Which name servers a command in a link may ask."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamgauge.link_command.names import name_servers


@pytest.mark.parametrize(
    ("said", "behind", "found"),
    [
        ("nameserver 192.0.2.53\n", "nameserver 198.51.100.1\n", ["192.0.2.53"]),
        ("nameserver 192.0.2.53\nnameserver 192.0.2.54\n", None, ["192.0.2.53", "192.0.2.54"]),
        # systemd-resolved's stub is this machine; what it asks is elsewhere.
        ("nameserver 127.0.0.53\noptions edns0\n", "nameserver 198.51.100.1\n", ["198.51.100.1"]),
        ("nameserver 127.0.0.1\n", None, []),
        ("nameserver 2001:db8::53\nsearch example\n", None, []),
        # As a link shows it to what runs inside: nobody, and certainly not who is behind.
        ("# by streamgauge link\n", "nameserver 198.51.100.1\n", []),
        (None, None, []),
    ],
)  # fmt: skip
def test_name_servers(tmp_path: Path, said: str | None, behind: str | None, found: list[str]) -> None:
    files = tmp_path / "resolv.conf", tmp_path / "upstream"
    for file, text in zip(files, (said, behind), strict=True):
        if text is not None:
            file.write_text(text)
    assert name_servers(*files) == found
