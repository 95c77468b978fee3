"""Cost of named content outside trials: a file by HTTP from `serve`, and through `proxy` by names.

    python benches/names.py [--megabytes N] [--rounds N]

The file is of random bytes; each round fetches it once each way, in turn. `store` is the proxy that has it in
its content store. Where ndnd is here (make setup-ndnd), its own client fetches it from our producer too.
Rates are of the content; CPU time is that of our programs on the way.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamgauge.emu.engine import engine

MEGA = 10**6


class Running:
    """A program of the engine's that listens, until it is ended."""

    def __init__(self, *words: str) -> None:
        command = [str(engine()), words[0], "--json", "--listen", "127.0.0.1:0", *words[1:]]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        said: dict[str, Any] = json.loads(self.process.stdout.readline())
        self.port = said["port"]

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=20)


def fetched(port: int, path: str) -> float:
    """Fetches it; how long it took, s."""
    begun = time.perf_counter()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=120) as answer:
        while answer.read(1 << 20):
            pass
    return time.perf_counter() - begun


def by_ndnd(program: str, port: int) -> float:
    """Fetches it by ndnd's client; how long that took with its start, s."""
    environment = {**os.environ, "NDN_CLIENT_TRANSPORT": f"tcp4://127.0.0.1:{port}"}
    begun = time.perf_counter()
    subprocess.run(
        [program, "cat", "/clip/film.ts"],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "film.ts").write_bytes(os.urandom(options.megabytes * MEGA))
        origin = Running("serve", "--system=dash", folder)
        producer = Running("serve", "--system=ccn", folder)
        upstream = f"ndn://127.0.0.1:{producer.port}/clip"
        passing = Running("proxy", "--set=store_bytes=0", upstream)
        storing = Running("proxy", f"--set=store_bytes={2 * options.megabytes * MEGA}", upstream)
        fetched(storing.port, "film.ts")
        ways: dict[str, tuple[Callable[[], float], list[Running]]] = {
            "HTTP": (lambda: fetched(origin.port, "film.ts"), [origin]),
            "names": (lambda: fetched(passing.port, "film.ts"), [producer, passing]),
            "store": (lambda: fetched(storing.port, "film.ts"), [storing]),
        }
        if ndnd := shutil.which(
            "ndnd", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        ):
            ways["ndnd"] = (lambda: by_ndnd(ndnd, producer.port), [producer])
        took: dict[str, list[float]] = {name: [] for name in ways}
        spent = dict.fromkeys(ways, 0.0)
        for _ in range(options.rounds):
            for name, (fetch, programs) in ways.items():
                before = sum(one.cpu_s() for one in programs)
                took[name].append(fetch())
                spent[name] += sum(one.cpu_s() for one in programs) - before
        print(f"{options.megabytes} MB, median of {options.rounds} rounds in turn")
        plain = statistics.median(took["HTTP"])
        hundreds = options.megabytes / 100
        for name, times in took.items():
            seconds = statistics.median(times)
            cpu_ms = 1000 * spent[name] / options.rounds / hundreds
            print(
                f"{name:6} {8 * options.megabytes / seconds / 1000:6.2f} Gbit/s, "
                f"{seconds / plain:5.2f} x the time of HTTP, {cpu_ms:6.0f} ms of CPU for 100 MB"
            )
        for one in (storing, passing, producer, origin):
            one.end()


if __name__ == "__main__":
    main()
